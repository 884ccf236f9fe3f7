"""Requests of chat completions: what is sent, and that strict servers take it, whatever a model did before."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    NativeMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from orchestrator.llm.providers.capabilities import Capabilities
from tests.model_servers.base import Turn
from tests.model_servers.openai import OpenAIServer
from tests.model_servers.openai_client import ACCOUNT, HELLO, bash, called, client
from tests.model_servers.openai_strictness import Strictness

FINE = Turn(text="All is well.")


def sent(
    *messages: Any, entry: dict[str, Any] | None = None, strictness: Strictness | None = None, **further: Any
) -> Any:
    """The body that a strict server got."""
    with OpenAIServer([FINE], strictness=strictness) as server, client(server, **(entry or {})) as asked:
        assert asked.ask(*messages, **further).messages[0].text == "All is well."
        return server.requests[0].body


def test_a_request_says_what_is_asked_for_and_nothing_else() -> None:
    body = sent()
    assert body == {
        "model": "test-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 1000,
        "messages": [
            {"role": "system", "content": "You improve programs."},
            {"role": "user", "content": "Hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "bash",
                    "description": "Runs a command.",
                    "parameters": {
                        "type": "object",
                        "properties": {"command": {"type": "string"}},
                        "required": ["command"],
                    },
                },
            }
        ],
    }


def test_parameters_follow_the_capabilities() -> None:
    capabilities = Capabilities(
        output_field="max_completion_tokens",
        max_output_tokens=500,
        seed=True,
        samples=4,
        stream_usage=False,
        system_role="developer",
        cache_marks=True,
    )
    body = sent(capabilities=capabilities, samples=3, temperature=0.25, seed=(1 << 40) + 5, tools=())
    assert body["max_completion_tokens"] == 500
    assert (body["temperature"], body["seed"], body["n"]) == (0.25, 5, 3)
    assert body["messages"][0]["role"] == "developer"
    assert len(body["prompt_cache_key"]) == 32
    assert not {"max_tokens", "stream_options", "tools"} & set(body)


def test_what_a_model_does_not_take_is_not_sent() -> None:
    body = sent(capabilities=Capabilities(temperature=False), temperature=0.5)
    assert not {"temperature", "seed", "n", "prompt_cache_key"} & set(body)


def test_what_was_refused_is_left_out_even_of_the_options() -> None:
    refused = Capabilities(seed=True, refused=frozenset({"seed", "top_p", "model", "messages", "stream"}))
    body = sent(capabilities=refused, entry={"options": {"top_p": 0.5, "reasoning_effort": "high"}})
    assert not {"seed", "top_p"} & set(body)
    assert body["reasoning_effort"] == "high"
    assert body["model"] == "test-model"


def test_options_go_before_what_we_would_send() -> None:
    assert sent(entry={"options": {"temperature": 1.5}}, temperature=0.1)["temperature"] == 1.5


def test_the_effort_that_tools_need_is_said_with_tools_alone_and_the_users_word_goes_before_it() -> None:
    needed = Capabilities(effort_with_tools="none")
    assert sent(capabilities=needed)["reasoning_effort"] == "none"
    assert "reasoning_effort" not in sent(capabilities=needed, tools=())
    assert sent(capabilities=needed, entry={"options": {"reasoning_effort": "low"}})["reasoning_effort"] == "low"


def test_the_cache_key_is_that_of_the_stable_prefix() -> None:
    marked = Capabilities(cache_marks=True)

    def key(*messages: Any, system: str = "S") -> str:
        return str(sent(*messages, system=system, capabilities=marked)["prompt_cache_key"])

    longer = key(HELLO, *called(bash()))
    assert key(HELLO) == longer
    assert len({longer, key(HELLO, system="T"), key(UserMessage(text="Other"))}) == 3


def test_results_follow_their_calls_and_errors_are_marked() -> None:
    results = ToolMessage(
        results=(
            ToolResult(call_id="a", text="one"),
            ToolResult(call_id="b", text="no such file", is_error=True),
            ToolResult(call_id="c", text="error: marked already", is_error=True),
        )
    )
    turn = AssistantMessage(text="", tool_calls=(bash("a"), bash("b", "cat x"), bash("c")))
    messages = sent(HELLO, turn, results, UserMessage(text="Go on."), UserMessage(text="Now."))["messages"]
    assert messages[2]["content"] is None
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["a", "b", "c"]
    assert json.loads(messages[2]["tool_calls"][1]["function"]["arguments"]) == {"command": "cat x"}
    assert messages[3:6] == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no such file"},
        {"role": "tool", "tool_call_id": "c", "content": "error: marked already"},
    ]
    assert messages[6:] == [{"role": "user", "content": "Go on.\n\nNow."}]


@pytest.mark.parametrize(
    "turn",
    [
        [AssistantMessage(text="")],
        [AssistantMessage(text="", reasoning="I only thought.")],
        [AssistantMessage(text="", tool_calls=(bash("a"), bash("b"))), UserMessage(text="You were cut off.")],
        called(bash("a"), bash("b"), answers=["only one"]),
        called(bash("same"), bash("same")),
        called(bash(""), bash("")),
        called(bash("toolu_" + "x" * 60)),
        called(bash("an id: with ünusual signs")),
        called(ToolCall(id="a", name="no such.tool!", arguments={})),
        called(ToolCall(id="a", name="", arguments={})),
        called(ToolCall(id="a", name="n" * 100, arguments={})),
        called(ToolCall(id="a", name="bash", arguments=None, raw_arguments='{"command": "ls')),
        called(bash("a", command="lone \ud800 surrogate")),
        called(bash("a"), answers=[""]),
        [UserMessage(text=""), AssistantMessage(text="Yes?")],
        [AssistantMessage(text="half a \udfff character")],
    ],
)
def test_whatever_a_model_did_the_conversation_can_go_on(turn: list[Any]) -> None:
    messages = sent(HELLO, *turn, UserMessage(text="Go on."), system="")["messages"]
    assert messages[-1]["content"].endswith("Go on.")


def test_arguments_that_were_no_object_are_shown_as_they_were() -> None:
    broken = ToolCall(id="a", name="bash", arguments=None, raw_arguments='{"command": "ls')
    messages = sent(HELLO, *called(broken))["messages"]
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {"invalid_arguments": '{"command": "ls'}


def test_a_model_without_system_prompts_is_told_in_the_first_message() -> None:
    body = sent(
        HELLO,
        capabilities=Capabilities(system_role="user"),
        strictness=Strictness(refused=frozenset({"system", "developer"})),
    )
    assert body["messages"] == [{"role": "user", "content": "You improve programs.\n\nHello"}]


THOUGHTFUL = AssistantMessage(
    text="",
    tool_calls=(bash(),),
    reasoning="Let me look.",
    native=NativeMessage(protocol="openai", model=ACCOUNT, body={"reasoning": "Let me look."}),
)
ANSWER = ToolMessage(results=(ToolResult(call_id="call_1", text="a b"),))


def test_reasoning_goes_back_to_the_model_it_is_of_where_that_wants_it() -> None:
    wanted = Capabilities(reasoning_field="reasoning_content")
    demanding = Strictness(reasoning_back="demanded")
    messages = sent(HELLO, THOUGHTFUL, ANSWER, capabilities=wanted, strictness=demanding)["messages"]
    assert messages[2]["reasoning_content"] == "Let me look."


@pytest.mark.parametrize("other", [{"model": "openai/other"}, {"protocol": "anthropic"}])
def test_no_model_sees_the_reasoning_of_another(other: dict[str, Any]) -> None:
    assert THOUGHTFUL.native is not None
    foreign = replace(THOUGHTFUL, native=replace(THOUGHTFUL.native, **other))
    wanted = Capabilities(reasoning_field="reasoning_content")
    demanding = Strictness(reasoning_back="demanded")
    body = sent(HELLO, foreign, ANSWER, capabilities=wanted, strictness=demanding)
    assert body["messages"][2]["reasoning_content"] == ""
    assert "Let me look" not in json.dumps(body)


def test_reasoning_is_sent_to_no_server_that_does_not_want_it() -> None:
    body = sent(HELLO, THOUGHTFUL, ANSWER, strictness=Strictness(reasoning_back="refused"))
    assert "Let me look" not in json.dumps(body)
