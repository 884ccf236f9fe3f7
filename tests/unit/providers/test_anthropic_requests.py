"""Requests of the Messages API: a server as strict as the provider takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    Message,
    NativeMessage,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from orchestrator.llm.providers.capabilities import Capabilities
from tests.model_servers.anthropic import AnthropicServer, event
from tests.model_servers.anthropic_client import BASH, MODEL, client
from tests.model_servers.base import Call, Trouble, Turn

USER = UserMessage(text="Hello")
CALL = ToolCall(id="t1", name="bash", arguments={"command": "ls"})
CALLING = AssistantMessage(text="", tool_calls=(CALL,))
RESULT = ToolMessage(results=(ToolResult(call_id="t1", text="a.py"),))


def sent(*messages: Message, entry: dict[str, Any] | None = None, **further: Any) -> Any:
    """The body that reaches a server, which takes it."""
    with AnthropicServer([Turn(text="fine")]) as server, client(server, **(entry or {})) as asked:
        asked.ask(*messages, **further)
        return server.requests[0].body


def test_system_prompt_tools_and_messages_are_blocks() -> None:
    assert sent(USER, system="Be short.") == {
        "model": MODEL,
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "Be short."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        "tools": [{"name": "bash", "description": BASH.description, "input_schema": BASH.parameters}],
        "stream": True,
    }


def test_neither_a_blank_system_prompt_nor_an_empty_list_of_tools_is_sent() -> None:
    assert set(sent(USER, system=" \n", tools=())) == {"model", "max_tokens", "messages", "stream"}


def test_results_come_first_in_the_turn_of_what_the_user_says_next() -> None:
    body = sent(USER, CALLING, RESULT, UserMessage(text="Go on."))
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"},
        {"type": "text", "text": "Go on."},
    ]


def test_failed_and_empty_results_are_sent_as_such() -> None:
    failed = ToolMessage(results=(ToolResult(call_id="t1", text="", is_error=True),))
    body = sent(USER, CALLING, failed)
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "t1", "is_error": True}]


def test_empty_messages_are_left_out_and_their_neighbours_merged() -> None:
    body = sent(USER, AssistantMessage(text=" "), UserMessage(text=""), UserMessage(text="Still there?"))
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "Still there?"}]}
    ]


def test_arguments_that_were_no_object_are_sent_as_text_in_one() -> None:
    broken = ToolCall(id="t1", name="bash", arguments=None, raw_arguments='{"command": "l')
    body = sent(USER, AssistantMessage(text="", tool_calls=(broken,)), RESULT)
    assert body["messages"][1]["content"][0]["input"] == {"invalid_arguments": '{"command": "l'}


def test_ids_and_names_that_other_models_gave_are_made_fit_and_unlike() -> None:
    odd = [ToolCall(id=name, name="functions.bash 🙂", arguments={}) for name in ("a:1", "a;1", "")]
    results = ToolMessage(results=tuple(ToolResult(call_id=call.id, text=call.id or "-") for call in odd))
    turn = (AssistantMessage(text="", tool_calls=tuple(odd)), results)
    body = sent(USER, *turn, *turn)
    for calls, answers in ((1, 2), (3, 4)):
        used = [block["id"] for block in body["messages"][calls]["content"]]
        answered = {block["tool_use_id"]: block["content"] for block in body["messages"][answers]["content"]}
        assert [answered[identity] for identity in used] == ["a:1", "a;1", "-"]


def answered(message: AssistantMessage) -> ToolMessage:
    return ToolMessage(results=tuple(ToolResult(call_id=call.id, text=f"of {call.id}") for call in message.tool_calls))


def test_names_and_ids_in_native_forms_are_made_fit_and_their_results_go_with_them() -> None:
    calls = tuple(Call(name="functions.read", arguments="{}", id=f"functions.read:{number}") for number in (0, 1))
    odd = Turn(reasoning="Let me see.", calls=calls)
    with AnthropicServer([odd, odd, Turn(text="fine")]) as server, client(server) as asked:
        first = asked.ask(USER).messages[0]
        second = asked.ask(USER, first, answered(first)).messages[0]
        asked.ask(USER, first, answered(first), second, answered(second))
        assert not server.refused
        messages = server.requests[2].body["messages"]
    for at, said in ((1, first), (3, second)):
        blocks, answers = messages[at]["content"], messages[at + 1]["content"]
        assert said.native is not None
        assert blocks[0] == said.native.body["content"][0]
        assert {block["name"] for block in blocks[1:]} == {"functions_read"}
        assert [block["id"] for block in blocks[1:]] == [answer["tool_use_id"] for answer in answers]
        assert [answer["content"] for answer in answers] == ["of functions.read:0", "of functions.read:1"]


def test_calls_that_share_an_id_are_told_apart_by_their_order() -> None:
    results = ToolMessage(results=tuple(ToolResult(call_id="t1", text=text) for text in ("one", "two")))
    messages = sent(USER, AssistantMessage(text="", tool_calls=(CALL, CALL)), results)["messages"]
    used, answers = messages[1]["content"], messages[2]["content"]
    assert [block["id"] for block in used] == [answer["tool_use_id"] for answer in answers]
    assert [answer["content"] for answer in answers] == ["one", "two"]


def test_own_thoughts_go_back_unchanged_and_in_their_order() -> None:
    calls = tuple(Call(name="bash", arguments=json.dumps({"command": command})) for command in ("ls", "pwd"))
    thinking = Turn(
        text="First.", reasoning="Let me see.", calls=calls, order=("reasoning", "redacted", "text", "calls")
    )
    with AnthropicServer([thinking, Turn(text="Done.", reasoning="All there.")]) as server, client(server) as asked:
        first = asked.ask(USER).messages[0]
        results = ToolMessage(results=tuple(ToolResult(call_id=call.id, text="ok") for call in first.tool_calls))
        second = asked.ask(USER, first, results).messages[0]
        third = asked.ask(USER, first, results, second, UserMessage(text="Thanks.")).messages[0]
        body = server.requests[2].body
    assert third.text == "Done."
    assert not server.refused
    assert body["messages"][1]["content"] == first.native.body["content"]  # type: ignore[union-attr]
    kinds = [block["type"] for block in body["messages"][1]["content"]]
    assert kinds == ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]


@pytest.mark.parametrize(("protocol", "model"), [("anthropic", "claude-other"), ("openai", MODEL)])
def test_thoughts_of_others_are_not_sent(protocol: str, model: str) -> None:
    body = {"content": [{"type": "thinking", "thinking": "hm", "signature": "forged"}]}
    native = NativeMessage(protocol=protocol, model=model, body=body)
    said = AssistantMessage(text="Fine.", tool_calls=(CALL,), reasoning="hm", native=native)
    content = sent(USER, said, RESULT)["messages"][1]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]


def test_the_server_refuses_thoughts_that_it_did_not_give_out() -> None:
    body = {"content": [{"type": "thinking", "thinking": "hm", "signature": "forged"}, {"type": "text", "text": "x"}]}
    said = AssistantMessage(text="x", native=NativeMessage(protocol="anthropic", model=MODEL, body=body))
    with AnthropicServer([Turn(text="fine")]) as server, client(server) as asked:
        failure = asked.fail(USER, said, USER)
    assert "Invalid `signature` in `thinking` block" in failure.message


@pytest.mark.parametrize("order", [("reasoning",), ("text", "reasoning")])
def test_a_message_never_ends_in_a_thought(order: tuple[str, ...]) -> None:
    turns = [Turn(text="so far", reasoning="hm", order=order), Turn(text="x")]
    with AnthropicServer(turns) as server, client(server) as asked:
        said = asked.ask(USER).messages[0]
        assert asked.ask(USER, said, UserMessage(text="Go on.")).messages[0].text == "x"


def test_a_thought_that_was_cut_off_has_no_signature_and_is_not_sent() -> None:
    thought = {"type": "thinking", "thinking": "half a thou", "signature": ""}
    cut_off = (
        event("message_start", message={"model": MODEL})
        + event("content_block_start", index=1, content_block={"type": "text", "text": "Well,"})
        + event("content_block_start", index=0, content_block=thought)
        + event("message_delta", delta={"stop_reason": "max_tokens"})
        + event("message_stop")
    )
    with AnthropicServer([Trouble(raw=cut_off), Turn(text="x")]) as server, client(server) as asked:
        said = asked.ask(USER).messages[0]
        asked.ask(USER, said, USER)
    assert said.reasoning == "half a thou"
    assert server.requests[1].body["messages"][1]["content"] == [{"type": "text", "text": "Well,"}]


def test_a_message_whose_calls_somebody_took_out_is_sent_as_what_is_left() -> None:
    turns = [Turn(reasoning="hm", text="Look.", calls=(Call(name="bash", arguments="{}"),)), Turn()]
    with AnthropicServer(turns) as server, client(server) as asked:
        said = asked.ask(USER).messages[0]
        asked.ask(USER, AssistantMessage(text=said.text, native=said.native), UserMessage(text="No."))
    assert server.requests[1].body["messages"][1]["content"] == [{"type": "text", "text": "Look."}]


def test_the_stable_prefix_and_the_last_two_turns_are_marked_for_the_cache() -> None:
    more = (UserMessage(text="one"), AssistantMessage(text="two"), UserMessage(text="three"))
    body = sent(USER, CALLING, RESULT, AssistantMessage(text="?"), *more, capabilities=Capabilities(cache_marks=True))
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    marked = [turn["content"][-1].get("cache_control") is not None for turn in body["messages"]]
    assert marked == [False, False, False, False, True, False, True]
    assert json.dumps(body).count("cache_control") == 3


def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    body = sent(USER, system="", capabilities=Capabilities(cache_marks=True))
    assert "cache_control" in body["tools"][-1]


@pytest.mark.parametrize(
    "capabilities", [Capabilities(), Capabilities(cache_marks=True, refused=frozenset(("cache_control",)))]
)
def test_nothing_is_marked_where_marks_are_not_taken(capabilities: Capabilities) -> None:
    assert "cache_control" not in json.dumps(sent(USER, capabilities=capabilities))


def test_the_same_request_with_more_messages_begins_with_the_same_bytes() -> None:
    marks = Capabilities(cache_marks=True)
    shorter = sent(USER, CALLING, RESULT, capabilities=marks)
    longer = sent(USER, CALLING, RESULT, AssistantMessage(text="ok"), UserMessage(text="more"), capabilities=marks)
    assert (longer["system"], longer["tools"]) == (shorter["system"], shorter["tools"])
    assert longer["messages"][:3] == [
        shorter["messages"][0] | {"content": [{"type": "text", "text": "Hello"}]},
        *shorter["messages"][1:],
    ]


def test_a_temperature_is_sent_where_it_is_taken() -> None:
    warm = Sampling(seed=1, max_output_tokens=5, temperature=0.5)
    assert sent(USER, sampling=warm)["temperature"] == 0.5
    assert "temperature" not in sent(USER, sampling=warm, capabilities=Capabilities(temperature=False))
    refused = Capabilities(refused=frozenset(("temperature",)))
    assert "temperature" not in sent(USER, sampling=warm, capabilities=refused)
    assert "temperature" not in sent(USER)


@pytest.mark.parametrize(("asked", "most", "expected"), [(5, None, 5), (500, 100, 100), (50, 100, 50)])
def test_no_more_output_is_asked_for_than_the_model_gives(asked: int, most: int | None, expected: int) -> None:
    sampling = Sampling(seed=1, max_output_tokens=asked)
    assert sent(USER, sampling=sampling, capabilities=Capabilities(max_output_tokens=most))["max_tokens"] == expected


def test_options_of_the_entry_go_in_after_everything_else() -> None:
    options = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "max_tokens": 7}
    body = sent(USER, entry={"options": options})
    assert {name: body[name] for name in options} == options
    body = sent(USER, entry={"options": options}, capabilities=Capabilities(refused=frozenset(("output_config",))))
    assert "output_config" not in body
    assert body["thinking"] == {"type": "adaptive"}


def test_what_every_request_needs_is_sent_whatever_was_refused() -> None:
    needed = frozenset(("model", "max_tokens", "messages", "stream", "system", "tools"))
    assert set(sent(USER, capabilities=Capabilities(refused=needed))) == needed


def test_an_older_model_with_a_budget_for_thoughts_is_asked_without_a_warning() -> None:
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with AnthropicServer([Turn(text="fine")]) as server, client(server, options=options) as asked:
        parameters = asked.parameters(sampling=Sampling(seed=1, max_output_tokens=2000))
        exchange = asked.connection.begin(
            {**parameters, "model": "claude-opus-4-5"}
        )  # the SDK knows when that one ends
        assert list(exchange)
        assert exchange.gathered().messages[0].text == "fine"
