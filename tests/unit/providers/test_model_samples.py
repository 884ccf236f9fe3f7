"""Several replies to one request: their usages add up, and a server that gives fewer is asked for one at a time."""

from __future__ import annotations

from decimal import Decimal

import pytest

from orchestrator.domain.conversation import Reply, Sampling, Usage
from orchestrator.domain.model_access import Provider
from orchestrator.errors import LostReply
from orchestrator.ports.models import LanguageModel, ManySamples
from tests.model_lab import HELLO, PRICE, TOOL, ModelLab, model_lab
from tests.model_servers.base import Trouble, Turn
from tests.model_servers.openai import Flavour
from tests.model_servers.openai_errors import unsupported_parameter

SAMPLINGS = [Sampling(seed=seed, max_output_tokens=1000) for seed in range(3)]
TURNS = [Turn(text=text, output_tokens=50) for text in ("one", "two " * 50, "three " * 20)]


def many(lab: ModelLab) -> list[Reply]:
    """What the model gives for three samplings; a local server is not known to give several until it is said so."""
    return lab.model.complete_samples(HELLO, [TOOL], SAMPLINGS)


def total(usages: list[Usage]) -> Usage:
    return sum(usages, Usage())


def test_a_provider_model_has_both_ports() -> None:
    with model_lab(Provider.OPENAI, [Turn()]) as lab:
        port: LanguageModel = lab.model
        assert isinstance(port, ManySamples)
        assert not port.is_repeatable


def test_samples_share_the_input_and_their_usages_add_up_exactly() -> None:
    with model_lab(Provider.OPENAI, [TURNS], samples=8) as lab:
        assert lab.model.samples_at_once >= 3
        replies = many(lab)
        assert [reply.message.text for reply in replies] == [turn.text for turn in TURNS]
        whole = total([reply.usage for reply in replies])
        assert (whole.input_tokens, whole.output_tokens) == (100, 150)
        assert whole.usd == (100 * PRICE.input + 150 * PRICE.output) / Decimal(1_000_000)
        assert [reply.usage.input_tokens for reply in replies] == [100, 0, 0]
        outputs = [reply.usage.output_tokens for reply in replies]
        assert outputs[0] < outputs[2] < outputs[1]
        assert lab.calls == 1


def test_a_server_that_gives_fewer_is_asked_for_one_at_a_time_from_then_on() -> None:
    with model_lab(Provider.OPENAI, [TURNS], server={"flavour": Flavour(ignores_n=True)}, samples=8) as lab:
        assert len(many(lab)) == 1
        assert lab.model.samples_at_once == 1
        assert len(many(lab)) == 1
        assert lab.server.requests[1].body.get("n", 1) == 1
        assert len(lab.notes) == 1


def test_a_server_that_refuses_to_give_several_gives_one() -> None:
    refusal = Trouble(status=400, body=unsupported_parameter("n").body)
    with model_lab(Provider.OPENAI, [refusal, TURNS[0]], samples=8) as lab:
        assert [reply.message.text for reply in many(lab)] == ["one"]
        assert lab.model.samples_at_once == 1
        assert "n" not in lab.server.requests[1].body
        assert lab.calls == 2


def test_samples_without_a_usage_are_estimated_as_a_whole() -> None:
    turns = [Turn(text="word " * 100, without_usage=True)] * 3
    with model_lab(Provider.OPENAI, [turns], samples=8) as lab:
        whole = total([reply.usage for reply in many(lab)])
        worst = total(lab.model.worst_case_of_samples(HELLO, [TOOL], SAMPLINGS))
        assert whole.input_tokens == worst.input_tokens
        assert 750 <= whole.output_tokens <= worst.output_tokens


def test_the_worst_case_of_samples_is_the_input_once_and_every_output() -> None:
    with model_lab(Provider.OPENAI, [Turn()]) as lab:
        one = lab.model.worst_case(HELLO, [TOOL], SAMPLINGS[0])
        parts = lab.model.worst_case_of_samples(HELLO, [TOOL], SAMPLINGS)
        assert parts[0] == one
        assert total(parts).input_tokens == one.input_tokens
        assert total(parts).output_tokens == 3000
        dearest = PRICE.cache_write or PRICE.input
        assert total(parts).usd == (one.input_tokens * dearest + 3000 * PRICE.output) / 1_000_000


def test_samples_are_lost_together() -> None:
    with model_lab(Provider.OPENAI, [Trouble(drop_after=6, turn=TURNS[1])], samples=8) as lab:
        with pytest.raises(LostReply):
            many(lab)
        assert lab.calls == 1


def test_where_one_call_gives_one_reply_so_does_this() -> None:
    with model_lab(Provider.ANTHROPIC, [Turn(text="one")]) as lab:
        assert lab.model.samples_at_once == 1
        assert [reply.message.text for reply in many(lab)] == ["one"]
