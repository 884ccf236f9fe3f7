"""Replies of the Messages API, as the SDK brings them from a server that speaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import StopReason, Usage
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Fault
from tests.model_servers.anthropic import AnthropicServer, event
from tests.model_servers.anthropic_client import MODEL, client
from tests.model_servers.base import Answer, Call, Trouble, Turn

START = event("message_start", message={"model": MODEL, "usage": {"input_tokens": 3, "output_tokens": 1}})


def gathered(answer: Answer) -> Any:
    with AnthropicServer([answer]) as server, client(server) as asked:
        return asked.ask()


def message(answer: Answer) -> Any:
    return gathered(answer).messages[0]


def ended(reason: str | None = "end_turn") -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 9}) + event("message_stop")


def text_block(index: int, text: str) -> bytes:
    begun = event("content_block_start", index=index, content_block={"type": "text", "text": ""})
    grown = event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
    return begun + grown + event("content_block_stop", index=index)


def test_a_text_comes_whole_and_needs_no_native_form() -> None:
    reply = gathered(Turn(text="Größer als zwölf 🙂"))
    assert reply.messages[0].text == "Größer als zwölf 🙂"
    assert reply.messages[0].native is None
    assert reply.stops == (StopReason.END,)
    assert reply.served_by == MODEL
    assert reply.output_bytes == len("Größer als zwölf 🙂".encode())


def test_thoughts_are_kept_apart_from_the_answer() -> None:
    answered = message(Turn(text="42", reasoning="six times seven"))
    assert (answered.text, answered.reasoning) == ("42", "six times seven")
    assert [block["type"] for block in answered.native.body["content"]] == ["thinking", "text"]
    assert (answered.native.protocol, answered.native.model) == ("anthropic", MODEL)


def test_thoughts_belong_to_the_account_that_asked() -> None:
    owned = gathered(Turn(text="42", reasoning="six times seven")).owned_by("anthropic/mine").messages[0]
    assert owned.native.model == "anthropic/mine"
    assert owned.native.body["content"][0]["thinking"] == "six times seven"
    plain = gathered(Turn(text="42"))
    assert plain.owned_by("anthropic/mine") == plain


def test_a_reply_of_thoughts_alone_is_a_thought() -> None:
    reply = gathered(Turn(reasoning="hm"))
    assert reply.stops == (StopReason.THOUGHT,)
    assert gathered(Turn(order=("redacted",))).stops == (StopReason.THOUGHT,)


def test_two_calls_at_once_come_with_their_arguments() -> None:
    calls = (Call(name="bash", arguments='{"command": "ls"}'), Call(name="bash", arguments=""))
    reply = gathered(Turn(calls=calls))
    assert [dict(call.arguments) for call in reply.messages[0].tool_calls] == [{"command": "ls"}, {}]
    assert reply.stops == (StopReason.TOOLS,)


@pytest.mark.parametrize(
    "raw", ['{"command": "l', "[1]", '"ls"', "NaN", '{"x": 1e999}', '{"x": "\\ud800"}', "[" * 9999]
)
def test_arguments_that_are_no_object_come_as_text(raw: str) -> None:
    (call,) = message(Turn(calls=(Call(name="bash", arguments=raw),), piece=1000)).tool_calls
    assert (call.arguments, call.raw_arguments) == (None, raw)


def test_equal_ids_of_calls_are_made_different() -> None:
    call = Call(name="bash", arguments="{}", id="toolu_1")
    answered = message(Turn(reasoning="hm", calls=(call, call, call)))
    ids = [one.id for one in answered.tool_calls]
    assert len(set(ids)) == 3
    assert [block["id"] for block in answered.native.body["content"] if block["type"] == "tool_use"] == ids


def test_blocks_may_come_in_any_order_and_be_of_unknown_types() -> None:
    turn = Turn(
        text="answer",
        reasoning="thought",
        calls=(Call(name="bash", arguments="{}"),),
        order=("mystery", "calls", "text", "redacted", "reasoning"),
    )
    answered = message(turn)
    assert (answered.text, answered.reasoning, len(answered.tool_calls)) == ("answer", "thought", 1)
    kinds = [block["type"] for block in answered.native.body["content"]]
    assert kinds == ["mystery", "tool_use", "text", "redacted_thinking", "thinking"]


def test_blocks_may_come_at_the_same_time() -> None:
    begun = [event("content_block_start", index=index, content_block={"type": "text", "text": ""}) for index in (1, 0)]
    grown = [
        event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
        for index, text in ((1, "wor"), (0, "hello "), (1, "ld"))
    ]
    assert message(Trouble(raw=START + b"".join((*begun, *grown)) + ended())).text == "hello world"


def test_events_and_pieces_of_unknown_types_say_nothing() -> None:
    unknown = event("weather", sky="blue") + event("content_block_delta", index=0, delta={"type": "smell_delta"})
    comment = b": keep the line open\n\n"
    assert message(Trouble(raw=START + unknown + comment + text_block(0, "hi") + ended())).text == "hi"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("pause_turn", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.REFUSAL),
        ("tool_use", StopReason.END),
        ("a_new_reason", StopReason.END),
    ],
)
def test_the_reason_why_it_stopped_is_one_of_ours(reason: str, stop: StopReason) -> None:
    assert gathered(Turn(text="hi", stop=reason)).stops == (stop,)


def test_a_thought_that_was_cut_off_is_a_matter_of_length() -> None:
    assert gathered(Turn(reasoning="hm", stop="max_tokens")).stops == (StopReason.LENGTH,)


def test_a_call_counts_whatever_the_reason_to_stop() -> None:
    assert gathered(Turn(calls=(Call(name="bash", arguments="{}"),), stop="end_turn")).stops == (StopReason.TOOLS,)


def test_every_kind_of_token_is_counted_apart() -> None:
    turn = Turn(
        text="x", input_tokens=11, cached_tokens=1200, cache_write_tokens=340, output_tokens=56, reasoning_tokens=7
    )
    assert gathered(turn).usage == Usage(
        input_tokens=11, cached_input_tokens=1200, cache_write_tokens=340, output_tokens=56, reasoning_tokens=7
    )


def test_input_may_be_counted_at_the_beginning_alone() -> None:
    assert gathered(Trouble(raw=START + text_block(0, "hi") + ended())).usage == Usage(input_tokens=3, output_tokens=9)


def test_usage_that_is_not_said_is_unknown() -> None:
    assert gathered(Turn(text="x", without_usage=True)).usage is None
    only_begun = event("message_delta", delta={"stop_reason": "end_turn"}) + event("message_stop")
    assert gathered(Trouble(raw=START + text_block(0, "hi") + only_begun)).usage is None


def test_the_model_that_answered_is_named() -> None:
    assert gathered(Turn(text="x", served_by="claude-other")).served_by == "claude-other"


def test_a_whole_block_may_come_in_one_event() -> None:
    text = {"type": "text", "text": "all at once"}
    call = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}
    blocks = [event("content_block_start", index=i, content_block=block) for i, block in enumerate((text, call))]
    answered = message(Trouble(raw=START + b"".join(blocks) + ended("tool_use")))
    assert answered.text == "all at once"
    assert answered.tool_calls[0].arguments == {"command": "ls"}


def test_the_last_event_may_be_missing_where_the_reason_to_stop_was_said() -> None:
    said = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9})
    assert message(Trouble(raw=START + text_block(0, "hi") + said)).text == "hi"


def test_a_reply_beyond_the_limit_is_cut_off_and_not_read_to_its_end() -> None:
    half = text_block(0, "x" * (MAX_REPLY_BYTES // 2 - 1))
    endless = START + half + half.replace(b'"index": 0', b'"index": 1') + text_block(2, "éé") + b"data: no JSON\n\n"
    reply = gathered(Trouble(raw=endless))
    assert reply.messages[0].text == "x" * (MAX_REPLY_BYTES - 2) + "é"
    assert reply.output_bytes == MAX_REPLY_BYTES
    assert reply.stops == (StopReason.LENGTH,)
    assert reply.usage is None


def test_a_reply_of_a_megabyte_comes_whole() -> None:
    assert message(Turn(text="x" * 1_000_000, piece=50_000)).text == "x" * 1_000_000


def test_halves_of_a_character_become_one_and_lone_halves_a_mark() -> None:
    begun = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    halves = "".join(
        f"event: content_block_delta\ndata: {json.dumps({'type': 'content_block_delta', 'index': 0})[:-1]}, "
        f'"delta": {{"type": "text_delta", "text": "{half}"}}}}\n\n'
        for half in ("\\ud83d", "\\ude42", "\\ud83d!")
    )
    assert message(Trouble(raw=START + begun + halves.encode() + ended())).text == "🙂\ufffd!"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>It works!</html>",
        b'{"type": "message", "content": []}',
        START,
        START + text_block(0, "half"),
        START + b"event: content_block_delta\ndata: {broken\n\n",
        START + b"data: [1]\n\n",
        START + event("content_block_delta", index="x", delta={"type": "text_delta", "text": "a"}),
        START + event("content_block_delta", index=0, delta={"type": "text_delta", "text": 7}),
        START + event("content_block_start", index=0),
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_whole_reply_is_broken_and_may_be_paid_for(raw: bytes) -> None:
    with AnthropicServer([Trouble(raw=raw)]) as server, client(server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)
    assert "no whole reply" in failure.message
