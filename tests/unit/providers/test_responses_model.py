"""A provider's model that is asked by responses: opened as the product opens it, and what it learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.domain.conversation import Sampling, StopReason, ToolMessage, ToolResult, Usage
from orchestrator.domain.model_access import ModelEntry, Patience, Provider
from orchestrator.errors import ContextTooLong, InputError, ModelError
from orchestrator.llm.providers.capabilities import Capabilities, find_capabilities, learned
from tests.model_lab import HELLO, ModelLab, model_at, model_lab
from tests.model_servers.base import Answer, Call, Turn
from tests.model_servers.responses import ResponsesServer
from tests.model_servers.responses_rules import ResponsesStrictness

FINE = Turn(text="All is well.")
WARM = Sampling(seed=1, max_output_tokens=1000, temperature=0.5)
THINKING = Turn(
    reasoning="Let me look.",
    calls=(Call(name="look", arguments='{"at": 1}'), Call(name="look", arguments='{"at": 2}')),
    input_tokens=100,
    cached_tokens=50,
    output_tokens=40,
    reasoning_tokens=30,
)


@contextmanager
def responses_lab(
    script: list[Answer], *, rules: ResponsesStrictness | None = None, **fields: Any
) -> Iterator[ModelLab]:
    patience = Patience(request_seconds=20, chunk_seconds=10, outage_seconds=20)
    with (
        ResponsesServer(script, rules=rules) as server,
        model_at(server, Provider.OPENAI, patience=patience, api="responses", **fields) as lab,
    ):
        yield lab


def test_an_entry_says_by_which_protocol_its_model_is_asked() -> None:
    with responses_lab([THINKING, FINE]) as lab:
        lab.model.check()
        first = lab.ask()
        assert first.stop is StopReason.TOOLS
        assert first.usage == Usage(
            input_tokens=100,
            cached_input_tokens=50,
            output_tokens=40,
            reasoning_tokens=30,
            usd=Decimal(100 * 3 + 40 * 15) / 10**6 + Decimal("0.3") * 50 / 10**6,
        )
        results = tuple(ToolResult(call_id=call.id, text="seen") for call in first.message.tool_calls)
        conversation = HELLO.plus(first.message, ToolMessage(results=results))
        assert lab.ask(conversation).message.text == "All is well."
        kinds = [each.get("type") for each in lab.server.requests[1].body["input"]]
        assert kinds == [None, "reasoning", *["function_call"] * 2, *["function_call_output"] * 2]
        assert lab.server.requests[1].body["store"] is False
        assert lab.model.samples_at_once == 1
        assert lab.notes == []
    with model_lab(Provider.OPENAI, [FINE], api="chat") as lab:
        assert lab.ask().message.text == "All is well."


def test_refused_parameters_are_left_out_one_after_the_other_and_remembered() -> None:
    refused = ResponsesStrictness(refused=frozenset({"temperature", "include", "instructions"}))
    with responses_lab([FINE], rules=refused) as lab:
        for _ in range(2):
            assert lab.ask(sampling=WARM).message.text == "All is well."
        assert len(lab.server.refused) == 3
        assert len(lab.notes) == 3
        first = lab.server.requests[0].body
        assert not {"temperature", "include", "instructions"} & set(first)
        assert first["input"][0]["content"].startswith("You answer.")


def test_a_conversation_goes_on_where_its_thoughts_cannot_be_read_any_more() -> None:
    with responses_lab([THINKING, FINE]) as lab:
        first = lab.ask()
        assert first.message.native is not None
        lab.server.forget()
        results = tuple(ToolResult(call_id=call.id, text="seen") for call in first.message.tool_calls)
        assert lab.ask(HELLO.plus(first.message, ToolMessage(results=results))).message.text == "All is well."
        assert lab.notes == ["openai/test-model refuses 'include'; it is asked without from now on"]


def test_a_parameter_of_the_options_that_is_refused_is_named() -> None:
    with (
        responses_lab([FINE], options={"nonsense": 1}) as lab,
        pytest.raises(ModelError, match=r"refuses.*'nonsense'"),
    ):
        lab.ask()


def test_too_long_a_conversation_is_told_of() -> None:
    with responses_lab([FINE], rules=ResponsesStrictness(context_tokens=2)) as lab, pytest.raises(ContextTooLong):
        lab.ask()


def test_a_reply_without_a_word_on_usage_is_estimated() -> None:
    with responses_lab([Turn(text="Yes.", without_usage=True)]) as lab:
        reply = lab.ask()
    assert reply.is_estimate
    assert reply.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("model", "api"),
    [
        ("gpt-6.1-terra", "responses"),
        ("gpt-6.2-astra", "responses"),
        ("gpt-5.6-luna", "responses"),
        ("gpt-5.5-pro", "responses"),
        ("gpt-5.4-mini", "responses"),
        ("gpt-5-codex", "responses"),
        ("o3-pro", "responses"),
        ("gpt-5.2", "chat"),
        ("gpt-4o", "chat"),
        ("o3", "chat"),
    ],
)
def test_the_table_knows_which_models_of_openai_want_responses(model: str, api: str) -> None:
    found = find_capabilities(ModelEntry(provider=Provider.OPENAI, model=model))
    assert found.api == api
    assert found.max_output_tokens is not None
    assert (found.output_field == "max_output_tokens") is (api == "responses")
    elsewhere = ModelEntry(provider=Provider.OPENAI, model=model, base_url="http://127.0.0.1:9/v1")
    assert find_capabilities(elsewhere).api == "chat"


def test_the_users_word_goes_before_the_table() -> None:
    chat = find_capabilities(ModelEntry(provider=Provider.OPENAI, model="gpt-6.1-terra", api="chat"))
    assert (chat.api, chat.output_field, chat.effort_with_tools) == ("chat", "max_completion_tokens", "none")
    responses = find_capabilities(ModelEntry(provider=Provider.OPENAI, model="gpt-4o", api="responses"))
    assert (responses.api, responses.samples, responses.encrypted_reasoning) == ("responses", 1, False)


def test_anthropic_has_one_protocol_only() -> None:
    with pytest.raises(ValidationError, match="provider anthropic has one protocol only; leave `api` out"):
        ModelEntry(provider=Provider.ANTHROPIC, model="claude-opus-5", api="responses")


@pytest.mark.parametrize("name", ["input", "instructions", "previous_response_id", "conversation", "background"])
def test_options_cannot_set_what_a_request_says(name: str) -> None:
    with pytest.raises(InputError, match=rf"'{name}' cannot be set there"):
        find_capabilities(ModelEntry(provider=Provider.OPENAI, model="x", options={name: "y"}))


def test_each_refusal_leads_to_something_else_or_to_the_end() -> None:
    capabilities = Capabilities(api="responses", output_field="max_output_tokens", cache_marks=True)
    for name in ("temperature", "include", "prompt_cache_key", "instructions"):
        after = learned(capabilities, name)
        assert after is not None
        assert not after.accepts(name)
        assert learned(after, name) is None
        capabilities = after
    assert capabilities.system_role == "user"
    assert not any((capabilities.temperature, capabilities.encrypted_reasoning, capabilities.cache_marks))
    for name in ("max_output_tokens", "input", "reasoning.effort", "reasoning_effort", "seed", "n", "store", "top_p"):
        assert learned(capabilities, name) is None
