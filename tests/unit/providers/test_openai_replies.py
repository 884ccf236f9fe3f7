"""Replies of chat completions, as OpenAI sends them and as other servers do."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.conversation import NativeMessage, StopReason, ToolCall, Usage
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Fault
from tests.model_servers.base import Call, Trouble, Turn
from tests.model_servers.openai import Flavour, OpenAIServer, event
from tests.model_servers.openai_client import client
from tests.model_servers.openai_streams import delta, raw, reply

SEVERAL = Capabilities(samples=8)


def test_a_streamed_reply_comes_in_pieces_and_is_put_together() -> None:
    calls = (Call(name="bash", arguments='{"command": "ls -la"}', id="call_a"), Call(name="look", arguments="{}"))
    turn = Turn(
        text="I look at the files first.",
        reasoning="What is there?",
        calls=calls,
        input_tokens=100,
        cached_tokens=40,
        cache_write_tokens=8,
        output_tokens=50,
        reasoning_tokens=20,
        served_by="test-model-2026",
    )
    gathered = reply(turn)
    (message,) = gathered.messages
    assert message.text == "I look at the files first."
    assert message.reasoning == "What is there?"
    assert message.tool_calls == (
        ToolCall(id="call_a", name="bash", arguments={"command": "ls -la"}),
        ToolCall(id="call_1", name="look", arguments={}),
    )
    assert message.native == NativeMessage(protocol="openai", model="test-model", body={"reasoning": "What is there?"})
    assert gathered.stops == (StopReason.TOOLS,)
    assert gathered.usage == Usage(
        input_tokens=100, cached_input_tokens=40, cache_write_tokens=8, output_tokens=50, reasoning_tokens=20
    )
    assert gathered.served_by == "test-model-2026"
    assert gathered.output_bytes > len("I look at the files first.What is there?")


@pytest.mark.parametrize(
    "flavour",
    [
        Flavour(),
        Flavour(reasoning_field="reasoning"),
        Flavour(reasoning_field="think"),
        Flavour(never_streams=True),
        Flavour(never_streams=True, reasoning_field="think"),
        Flavour(usage_details="deepseek"),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", [("reasoning", "text", "calls"), ("calls", "reasoning", "text")])
def test_the_same_reply_is_read_in_every_form(flavour: Flavour, order: tuple[str, ...]) -> None:
    turn = Turn(
        text="Done.",
        reasoning="Hm.\nYes.",
        calls=(Call(name="bash", arguments='{"a": 1}'),),
        cached_tokens=30,
        order=order,
    )
    gathered = reply(turn, flavour=flavour)
    (message,) = gathered.messages
    assert (message.text, message.reasoning) == ("Done.", "Hm.\nYes.")
    assert message.tool_calls == (ToolCall(id="call_0", name="bash", arguments={"a": 1}),)
    assert gathered.usage == Usage(input_tokens=100, cached_input_tokens=30, output_tokens=20)


@pytest.mark.parametrize("never_streams", [False, True])
def test_several_choices_are_several_replies_and_one_usage(never_streams: bool) -> None:
    turns = [Turn(text=f"Answer number {number}, at length.", output_tokens=10) for number in range(3)]
    gathered = reply(turns, flavour=Flavour(never_streams=never_streams), samples=3, capabilities=SEVERAL)
    assert [message.text[:15] for message in gathered.messages] == [f"Answer number {number}" for number in range(3)]
    assert gathered.stops == (StopReason.END,) * 3
    assert gathered.usage == Usage(input_tokens=100, output_tokens=30)


@pytest.mark.parametrize("in_every_chunk", [False, True])
def test_a_usage_for_each_choice_adds_up_and_one_that_grows_does_not(in_every_chunk: bool) -> None:
    growing = [{**delta(content="a", index=index), "usage": _said(5)} for index in (0, 1)] if in_every_chunk else []
    whole = [delta(content="b", index=0), delta("stop", index=0), delta(content="b", index=1), delta("stop", index=1)]
    closing = [{"id": "x", "model": "m", "choices": [], "usage": _said(output)} for output in (7, 9)]
    gathered = reply(raw(*growing, *whole, *closing), samples=2, capabilities=SEVERAL)
    assert gathered.usage == Usage(input_tokens=22, cached_input_tokens=9, output_tokens=16)
    gathered = reply(raw(*growing, *whole, closing[1]), samples=2, capabilities=SEVERAL)
    assert gathered.usage == Usage(input_tokens=22, cached_input_tokens=9, output_tokens=9)


def _said(output: int) -> dict[str, Any]:
    return {"prompt_tokens": 31, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": 9}}


def test_a_server_may_give_fewer_replies_than_it_was_asked_for() -> None:
    gathered = reply(Turn(text="Only one."), flavour=Flavour(ignores_n=True), samples=3, capabilities=SEVERAL)
    assert [message.text for message in gathered.messages] == ["Only one."]


def test_replies_that_nobody_asked_for_are_left_aside() -> None:
    gathered = reply(raw(delta(content="a", index=1), delta(content="b", index=2), delta("stop", index=1)))
    assert [message.text for message in gathered.messages] == ["a"]


@pytest.mark.parametrize(
    ("turn", "stop"),
    [
        (Turn(text="Yes."), StopReason.END),
        (Turn(text=""), StopReason.END),
        (Turn(text="Cut o", stop="length"), StopReason.LENGTH),
        (Turn(text="I will not.", stop="refusal"), StopReason.REFUSAL),
        (Turn(text="I w", stop="content_filter"), StopReason.REFUSAL),
        (Turn(text="I w", stop="sensitive"), StopReason.REFUSAL),
        (Turn(calls=(Call(name="bash", arguments="{}"),), stop="stop"), StopReason.TOOLS),
        (Turn(calls=(Call(name="bash", arguments='{"a'),), stop="length"), StopReason.LENGTH),
        (Turn(text="No call in here.", stop="tool_calls"), StopReason.END),
        (Turn(reasoning="Hm."), StopReason.THOUGHT),
        (Turn(reasoning="Hm.", text=" \n"), StopReason.THOUGHT),
        (Turn(reasoning="Hm.", stop="length"), StopReason.LENGTH),
        (Turn(reasoning_tokens=15), StopReason.THOUGHT),
        (Turn(text="Yes.", stop="a word of its own"), StopReason.END),
    ],
    ids=str,
)
def test_why_a_reply_ended_is_told(turn: Turn, stop: StopReason) -> None:
    gathered = reply(turn)
    assert gathered.stops == (stop,)
    assert gathered.messages[0].text == turn.text


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", "Yes.", "Hm."),
        ("\n<think></think>Yes.", "Yes.", ""),
        ("<think>\nStill thinking", "", "Still thinking"),
        ("Hm.\n</think>\n\nYes.", "Yes.", "Hm."),
        ("Write </think> to end a thought.", "Write </think> to end a thought.", ""),
        ("First <think> then </think> comes.", "First <think> then </think> comes.", ""),
    ],
)
def test_thoughts_at_the_beginning_of_a_text_are_none_of_it(text: str, answer: str, reasoning: str) -> None:
    (message,) = reply(Turn(text=text)).messages
    assert (message.text, message.reasoning, message.native) == (answer, reasoning, None)


def test_a_stream_without_a_word_on_usage_has_none() -> None:
    assert reply(Turn(text="Yes.", without_usage=True)).usage is None
    assert reply(Turn(text="Yes."), capabilities=Capabilities(stream_usage=False)).usage is None
    assert reply(
        Turn(text="Yes."), capabilities=Capabilities(stream_usage=False), flavour=Flavour(says_usage_unasked=True)
    ).usage == Usage(input_tokens=100, output_tokens=20)


@pytest.mark.parametrize("never_streams", [False, True])
def test_a_reply_is_no_longer_than_it_may_be(never_streams: bool) -> None:
    turn = Turn(text="a" + "ä" * (MAX_REPLY_BYTES // 2 + 10), piece=1 << 20)
    gathered = reply(turn, flavour=Flavour(never_streams=never_streams))
    assert gathered.output_bytes <= MAX_REPLY_BYTES
    assert gathered.output_bytes >= MAX_REPLY_BYTES - 1
    assert gathered.stops == (StopReason.LENGTH,)
    assert gathered.usage is None  # it comes last, and is not read any more
    assert gathered.messages[0].text == "a" + "ä" * (MAX_REPLY_BYTES // 2 - 1)


def test_an_endless_event_is_not_collected() -> None:
    with OpenAIServer([Trouble(raw=b"data: " + b"x" * (5 * MAX_REPLY_BYTES))]) as server, client(server) as asked:
        failure = asked.fail()
    assert failure.fault is Fault.BROKEN
    assert "an event of over" in failure.message


@pytest.mark.parametrize(
    "chunks",
    [
        [delta(content="Yes."), {"choices": "nonsense"}, {"choices": [None, 3]}, {"choices": None}, delta("stop")],
        [{"model": 3, "id": [], "choices": [{"delta": "x"}]}, delta(content="Yes."), delta("stop")],
        [delta(content=[{"type": "text", "text": "Yes."}, {"type": "image"}, "x"]), delta("stop")],
        [delta(content="Yes.", tool_calls="none", refusal=5, reasoning_content=[]), delta("stop")],
        [delta(content="Y", index=None), delta(content="es."), delta("stop", index="0")],
        [delta(content="Yes."), delta("")],
    ],
)
def test_nonsense_beside_a_reply_does_no_harm(chunks: list[Any]) -> None:
    (message,) = reply(raw(*chunks)).messages
    assert (message.text, message.tool_calls) == ("Yes.", ())


def test_thoughts_may_be_parts_of_a_content() -> None:
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    (message,) = reply(raw(delta(content=content), delta("stop"))).messages
    assert (message.text, message.reasoning) == ("Yes.", "Hm.")


def test_reasoning_that_comes_under_two_names_is_taken_once() -> None:
    (message,) = reply(
        raw(delta(reasoning_content="Hm.", reasoning="Hm."), delta(content="Yes."), delta("stop"))
    ).messages
    assert message.reasoning == "Hm."


@pytest.mark.parametrize("end", [b"", b"\n", b"data: [DONE]", b"data: [DONE]\r\n\r\n"])
def test_a_stream_may_end_as_it_likes_once_the_reply_is_whole(end: bytes) -> None:
    assert reply(raw(delta(content="Yes."), delta("stop"), end=end)).messages[0].text == "Yes."


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_lines_may_end_in_any_way_and_comments_are_none(line_end: bytes) -> None:
    content = b": PROCESSING\n\nevent: message\nid: 1\n" + event(delta(content="Yes.")) + event(delta("stop"))
    stream = Trouble(raw=content.replace(b"\n", line_end))
    assert reply(stream).messages[0].text == "Yes."


def test_characters_that_come_in_halves_are_put_together_and_lone_halves_replaced() -> None:
    chunks = [delta(content="\ud83d"), delta(content="\ude00 \udc00"), delta("stop")]
    assert reply(raw(*chunks)).messages[0].text == "😀 \ufffd"
