"""Real providers, by hand: `make test-live`. Needs their keys, and spends at most what `--live-usd` says."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.domain.conversation import (
    Conversation,
    StopReason,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.domain.model_access import Price
from orchestrator.errors import InputError, ModelError
from tests.command_line import CommandLine, Ended
from tests.live.conftest import Purse
from tests.live.providers import LiveProvider

if TYPE_CHECKING:
    from orchestrator.llm.providers.model import ProviderModel

pytestmark = pytest.mark.live

OpenLive = Callable[..., "ProviderModel"]
WEIGHT = ToolSpec(
    name="weigh",
    description="Weighs the thing of a name; gives grams.",
    parameters={
        "type": "object",
        "properties": {"thing": {"type": "string"}},
        "required": ["thing"],
        "additionalProperties": False,
    },
)
RUN_USD = Decimal("0.20")
RUN_SECONDS = 1800


def said(text: str, system: str = "Answer in one short sentence.") -> Conversation:
    return Conversation(system=system, messages=(UserMessage(text=text),))


def test_it_serves_the_model_and_streams_a_reply(open_live: OpenLive, purse: Purse) -> None:
    model = open_live()
    model.check()
    reply = purse.ask(model, said("What is the capital of Norway?"), most=2000)
    assert "oslo" in reply.message.text.lower()
    assert reply.stop is StopReason.END


def test_a_tool_is_called_answered_and_its_answer_used(
    provider: LiveProvider, open_live: OpenLive, purse: Purse
) -> None:
    model = open_live(options=dict(provider.thinking))
    grams = 1000 + secrets.randbelow(9000)
    asked = said("Weigh the thing named 'lamp' with the tool, then tell me its grams as a plain number.")
    calling = purse.ask(model, asked, (WEIGHT,), most=3000)
    assert calling.stop is StopReason.TOOLS
    assert [call.name for call in calling.message.tool_calls] == ["weigh"]
    (call,) = calling.message.tool_calls
    assert call.arguments == {"thing": "lamp"}
    answered = asked.plus(calling.message, ToolMessage(results=(ToolResult(call_id=call.id, text=str(grams)),)))
    reply = purse.ask(model, answered, (WEIGHT,), most=3000)
    digits = "".join(character for character in reply.message.text if character.isdigit())
    assert str(grams) in digits


def test_a_long_prefix_that_comes_again_is_read_from_the_cache(
    provider: LiveProvider, open_live: OpenLive, purse: Purse
) -> None:
    model = open_live()
    fresh = secrets.token_hex(8)  # nobody has sent this prefix before
    system = f"Ledger {fresh}. " + "".join(
        f"Entry {n}: {n * 37 % 1009} coins. " for n in range(provider.cached_prefix_tokens // 8)
    )
    asked = said("Say 'ready'.", system=system)
    first = purse.ask(model, asked, most=1500)
    assert first.usage.cached_input_tokens < 1024
    cached = 0
    for _ in range(3):  # a cache may take a moment
        asked = asked.plus(first.message, UserMessage(text="Say it again."))
        cached = purse.ask(model, asked, most=1500).usage.cached_input_tokens
        if cached:
            break
    assert cached >= 1024


def test_a_parameter_that_is_refused_is_named_and_costs_nothing(
    provider: LiveProvider, open_live: OpenLive, purse: Purse
) -> None:
    if not provider.refuses_unknown:
        pytest.skip(f"{provider.label} passes over what it does not know")
    model = open_live(options={"no_such_parameter": 1})
    before = purse.ledger.snapshot()
    with pytest.raises(ModelError, match="no_such_parameter"):
        purse.ask(model, said("Hello."))
    assert purse.ledger.snapshot() == before


def test_a_model_without_a_known_price_is_not_asked(open_live: OpenLive, purse: Purse) -> None:
    model = open_live(model="a-model-that-nobody-sells")
    with pytest.raises(InputError, match="price of this model is unknown"):
        purse.ask(model, said("Hello."))


@pytest.mark.timeout(2 * RUN_SECONDS)
def test_a_run_of_one_commit_stays_within_its_budget(provider: LiveProvider, purse: Purse, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command_line = CommandLine.beside(writable_home(find_places(None, None)), home)
    models = tmp_path / "models.yaml"
    entry = {**provider.entry.model_dump(mode="json", exclude_none=True), "max_output_tokens": 6000}
    models.write_text(yaml.safe_dump({"models": {"live": entry}}))

    def run(most: Decimal) -> Decimal:
        process = command_line.start(
            *("run", "online_bin_packing", "--public-seed", "--islands", "1", "--commits", "1", "--no-analysis"),
            *("--requests", "12", "--final-splits", "none", "--model", "live", "--models", str(models)),
            *("--budget-usd", str(most), "--json"),
        )
        out, err = process.communicate(timeout=RUN_SECONDS)
        ended = Ended(process.returncode, out, err)
        assert ended.code in (0, 4), ended.err
        document = ended.document
        assert document["requests"] >= 1
        usd = Decimal(str(document["usage"]["usd"]))
        assert Decimal(0) < usd <= most
        _assert_secret(os.environ[provider.key], ended.out + ended.err, home)
        assert command_line.call("run", "online_bin_packing", "--model", f"replay/{document['run']}").code == ended.code
        return usd

    purse.let_spend(RUN_USD, run)


def _assert_secret(key: str, printed: str, home: Path) -> None:
    assert key not in printed
    for file in home.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), f"{file} holds the key"


def test_a_price_that_is_given_is_what_is_paid(open_live: OpenLive, purse: Purse) -> None:
    price = Price(input=Decimal(100), output=Decimal(100))
    reply = purse.ask(open_live(price=price), said("Say 'yes'."), most=200)
    assert reply.usage.usd == Decimal(reply.usage.tokens) * 100 / 1_000_000
