"""Requests for responses: what is sent, and that a strict server takes it, whatever a model did before."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    NativeMessage,
    Sampling,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.llm.providers.capabilities import Capabilities
from tests.model_servers.base import Call, Turn
from tests.model_servers.openai_client import ACCOUNT, HELLO, bash, called
from tests.model_servers.openai_client import WIRE as CHAT
from tests.model_servers.responses import ResponsesServer
from tests.model_servers.responses_client import responses_client
from tests.model_servers.responses_rules import ResponsesStrictness

FINE = Turn(text="All is well.")
PLAIN = Capabilities(api="responses", output_field="max_output_tokens")


def sent(
    *messages: Any, entry: dict[str, Any] | None = None, rules: ResponsesStrictness | None = None, **further: Any
) -> Any:
    """The body that a strict server got."""
    with ResponsesServer([FINE], rules=rules) as server, responses_client(server, **(entry or {})) as asked:
        assert asked.ask(*messages, **further).messages[0].text == "All is well."
        body = server.requests[0].body
    TypeAdapter(ResponseInputParam).validate_python(body["input"])
    assert "previous_response_id" not in body
    return body


def test_a_request_says_what_is_asked_for_and_nothing_else() -> None:
    assert sent() == {
        "model": "test-model",
        "stream": True,
        "store": False,
        "instructions": "You improve programs.",
        "input": [{"role": "user", "content": "Hello"}],
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 1000,
        "tools": [
            {
                "type": "function",
                "name": "bash",
                "description": "Runs a command.",
                "parameters": {
                    "type": "object",
                    "properties": {"command": {"type": "string"}},
                    "required": ["command"],
                },
                "strict": False,
            }
        ],
    }


def test_parameters_follow_the_capabilities() -> None:
    body = sent(capabilities=replace(PLAIN, max_output_tokens=500, cache_marks=True), temperature=0.25, tools=())
    assert (body["max_output_tokens"], body["temperature"]) == (500, 0.25)
    assert len(body["prompt_cache_key"]) == 32
    assert not {"tools", "seed", "n", "stream_options"} & set(body)


def test_what_a_model_does_not_take_is_not_sent() -> None:
    poor = replace(PLAIN, temperature=False, encrypted_reasoning=False)
    body = sent(capabilities=poor, temperature=0.5, rules=ResponsesStrictness(reasons=False))
    assert not {"temperature", "include", "prompt_cache_key"} & set(body)


def test_what_was_refused_is_left_out_even_of_the_options() -> None:
    refused = replace(PLAIN, refused=frozenset({"top_p", "model", "input", "stream"}))
    body = sent(capabilities=refused, entry={"options": {"top_p": 0.5, "truncation": "auto"}})
    assert "top_p" not in body
    assert body["truncation"] == "auto"


def test_options_go_before_what_we_would_send() -> None:
    assert sent(entry={"options": {"temperature": 1.5}}, temperature=0.1)["temperature"] == 1.5


def test_options_may_have_the_names_that_chat_completions_have_for_them() -> None:
    options = {"reasoning_effort": "high", "verbosity": "low", "reasoning": {"summary": "auto"}}
    body = sent(entry={"options": options})
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["text"] == {"verbosity": "low"}
    body = sent(entry={"options": {"reasoning_effort": "high", "reasoning": {"effort": "low"}}})
    assert body["reasoning"] == {"effort": "low"}


def test_the_cache_key_is_that_of_the_stable_prefix() -> None:
    marked = replace(PLAIN, cache_marks=True)

    def key(*messages: Any, system: str = "S") -> str:
        return str(sent(*messages, system=system, capabilities=marked)["prompt_cache_key"])

    longer = key(HELLO, *called(bash()))
    assert key(HELLO) == longer
    assert len({longer, key(HELLO, system="T"), key(UserMessage(text="Other"))}) == 3


def test_results_follow_their_calls_and_errors_are_marked() -> None:
    results = ToolMessage(
        results=(ToolResult(call_id="a", text="one"), ToolResult(call_id="b", text="no such file", is_error=True))
    )
    turn = AssistantMessage(text="I look.", tool_calls=(bash("a"), bash("b", "cat x")))
    items = sent(HELLO, turn, results, UserMessage(text="Go on."), UserMessage(text="Now."))["input"]
    assert items[1:] == [
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call", "call_id": "b", "name": "bash", "arguments": '{"command": "cat x"}'},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": "Error: no such file"},
        {"role": "user", "content": "Go on.\n\nNow."},
    ]


@pytest.mark.parametrize(
    "turn",
    [
        [AssistantMessage(text="")],
        [AssistantMessage(text="", reasoning="I only thought.")],
        [AssistantMessage(text="", tool_calls=(bash("a"), bash("b"))), UserMessage(text="You were cut off.")],
        called(bash("a"), bash("b"), answers=["only one"]),
        called(bash("same"), bash("same")),
        [*called(bash("same")), *called(bash("same")), *called(bash("same"))],
        called(bash(""), bash("")),
        called(bash("toolu_" + "x" * 90)),
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
    items = sent(HELLO, *turn, UserMessage(text="Go on."), system="")["input"]
    assert items[-1]["content"].endswith("Go on.")


def test_arguments_that_were_no_object_are_shown_as_they_were() -> None:
    broken = ToolCall(id="a", name="bash", arguments=None, raw_arguments='{"command": "ls')
    items = sent(HELLO, *called(broken))["input"]
    assert json.loads(items[1]["arguments"]) == {"invalid_arguments": '{"command": "ls'}


def test_a_server_without_instructions_is_told_in_the_first_message() -> None:
    body = sent(
        capabilities=replace(PLAIN, system_role="user"),
        rules=ResponsesStrictness(refused=frozenset({"instructions"})),
    )
    assert body["input"] == [{"role": "user", "content": "You improve programs.\n\nHello"}]


def test_a_conversation_without_messages_can_be_sent() -> None:
    entry = ModelEntry(provider=Provider.OPENAI, model="m", api="responses")
    with ResponsesServer([FINE]) as server, responses_client(server) as asked:
        body = asked.wire.parameters(
            Conversation(system="S", messages=()),
            [],
            [Sampling(seed=1)],
            entry=entry,
            account=ACCOUNT,
            capabilities=PLAIN,
        )
    assert body["input"] == [{"role": "user", "content": "(nothing)"}]


THINKING = Turn(
    text="I look first.",
    reasoning="What is there?\n\nTwo places.",
    calls=(Call(name="bash", arguments='{"command": "ls a"}'), Call(name="bash", arguments='{"command": "ls b"}')),
    reasoning_tokens=9,
)


def test_a_conversation_of_two_turns_with_thoughts_and_two_calls_goes_back_as_it_came() -> None:
    script = [THINKING, replace(THINKING, order=("text", "reasoning", "calls")), FINE]
    with ResponsesServer(script) as server, responses_client(server) as asked:
        messages: list[Any] = [HELLO]
        for _ in range(2):
            gathered = asked.ask(*messages).owned_by(ACCOUNT)
            assert gathered.stops == (StopReason.TOOLS,)
            (message,) = gathered.messages
            results = tuple(ToolResult(call_id=call.id, text=f"saw {call.id}") for call in message.tool_calls)
            messages += [message, ToolMessage(results=results)]
        assert asked.ask(*messages).messages[0].text == "All is well."
        assert not server.refused
        first, second, third = [request.body["input"] for request in server.requests]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    kinds = [item.get("type", item.get("role")) for item in third]
    answers = ["function_call_output"] * 2
    assert kinds == [
        *("user", "reasoning", "message", "function_call", "function_call", *answers),
        *("message", "reasoning", "function_call", "function_call", *answers),
    ]
    assert third[1]["encrypted_content"].startswith("gAAAA")
    assert [part["text"] for part in third[1]["summary"]] == ["What is there?", "Two places."]
    assert (third[3]["id"], third[3]["call_id"]) == ("fc_1_0", "call_1_0")
    assert third[-1] == {"type": "function_call_output", "call_id": "call_2_1", "output": "saw call_2_1"}
    TypeAdapter(ResponseInputParam).validate_python(third)


def thoughtful(**further: Any) -> AssistantMessage:
    """A turn with thoughts, as it was recorded."""
    output = [
        {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "secret thoughts"},
        {"type": "function_call", "id": "fc_x", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'},
    ]
    native = NativeMessage(protocol="openai", model=ACCOUNT, body={"output": output})
    return replace(AssistantMessage(text="", tool_calls=(bash(),), native=native), **further)


ANSWER = ToolMessage(results=(ToolResult(call_id="call_1", text="a b"),))


def bare(message: AssistantMessage, **further: Any) -> str:
    return json.dumps(sent(HELLO, message, ANSWER, **further))


@pytest.mark.parametrize("other", [{"model": "openai/other"}, {"protocol": "anthropic"}])
def test_no_model_sees_the_thoughts_of_another(other: dict[str, Any]) -> None:
    native = thoughtful().native
    assert native is not None
    body = bare(thoughtful(native=replace(native, **other)))
    assert "secret thoughts" not in body
    assert "fc_x" not in body


def test_a_turn_whose_calls_were_taken_out_goes_back_without_thoughts() -> None:
    items = sent(HELLO, thoughtful(tool_calls=(), text="I stop."))["input"]
    assert items[1:] == [{"role": "assistant", "content": "I stop."}]


def test_a_model_that_is_not_asked_for_thoughts_gets_none_back() -> None:
    body = bare(thoughtful(), capabilities=replace(PLAIN, encrypted_reasoning=False))
    assert "secret thoughts" not in body


def test_neither_protocol_trips_over_the_native_messages_of_the_other() -> None:
    of_chat = NativeMessage(protocol="openai", model=ACCOUNT, body={"reasoning": "Let me look."})
    assert "Let me look" not in bare(thoughtful(native=of_chat))
    entry = ModelEntry(provider=Provider.OPENAI, model="m")
    conversation = Conversation(system="S", messages=(HELLO, thoughtful(), ANSWER))
    capabilities = Capabilities(reasoning_field="reasoning_content")
    body = CHAT.parameters(
        conversation, [], [Sampling(seed=1)], entry=entry, account=ACCOUNT, capabilities=capabilities
    )
    assert "secret thoughts" not in json.dumps(body)
