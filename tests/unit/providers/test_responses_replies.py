"""Replies of OpenAI's responses, as OpenAI streams them and as nobody should."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from orchestrator.domain.conversation import NativeMessage, StopReason, ToolCall, Usage
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Fault
from tests.model_servers.base import KEY, Call, Trouble, Turn
from tests.model_servers.openai import Flavour
from tests.model_servers.responses import ResponsesServer
from tests.model_servers.responses_client import item, part, raw, reply, response, responses_client, said

FULL = Turn(
    text="I look at the files first.",
    reasoning="What is there?\n\nLet me see.",
    calls=(Call(name="bash", arguments='{"command": "ls -la"}', id="call_a"), Call(name="look", arguments="{}")),
    input_tokens=100,
    cached_tokens=40,
    cache_write_tokens=8,
    output_tokens=50,
    reasoning_tokens=20,
    served_by="test-model-2026",
)


@pytest.mark.parametrize("turn", [FULL, Turn(text="No.", stop="refusal"), Turn(text="Cut", stop="max_output_tokens")])
def test_the_server_speaks_as_the_sdk_says(turn: Turn) -> None:
    events = TypeAdapter(ResponseStreamEvent)
    with ResponsesServer([turn]) as server, openai.OpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
        asked: dict[str, Any] = {"model": "test-model", "input": [{"role": "user", "content": "Hello"}], "store": False}
        seen = [each.model_dump() for each in client.responses.create(**asked, stream=True)]
        for each in seen:
            events.validate_python(each)
        assert [each["sequence_number"] for each in seen] == list(range(len(seen)))
        whole = client.responses.create(**asked)
        Response.model_validate(whole.model_dump())
        assert whole.output_text == ("" if turn.stop == "refusal" else turn.text)


@pytest.mark.parametrize("never_streams", [False, True])
def test_a_reply_is_put_together(never_streams: bool) -> None:
    gathered = reply(FULL, server={"flavour": Flavour(never_streams=never_streams)})
    (message,) = gathered.messages
    assert message.text == "I look at the files first."
    assert message.reasoning == "What is there?\n\nLet me see."
    assert message.native is not None
    encrypted = message.native.body["output"][0]["encrypted_content"]
    texts = (message.text, "What is there?", "Let me see.", '{"command": "ls -la"}', "{}", encrypted)
    assert gathered.output_bytes == sum(map(len, texts))
    assert message.tool_calls == (
        ToolCall(id="call_a", name="bash", arguments={"command": "ls -la"}),
        ToolCall(id="call_1_1", name="look", arguments={}),
    )
    assert gathered.stops == (StopReason.TOOLS,)
    assert gathered.usage == Usage(
        input_tokens=100, cached_input_tokens=40, cache_write_tokens=8, output_tokens=50, reasoning_tokens=20
    )
    assert gathered.served_by == "test-model-2026"


@pytest.mark.parametrize("order", list(itertools.permutations(("reasoning", "text", "calls"))), ids=str)
def test_the_content_may_come_in_any_order_and_keeps_it(order: tuple[str, ...]) -> None:
    (message,) = reply(replace(FULL, order=order)).messages
    assert (message.text, len(message.tool_calls)) == ("I look at the files first.", 2)
    kinds = {"reasoning": ["reasoning"], "text": ["message"], "calls": ["function_call"] * 2}
    native = message.native
    if order[-1] == "reasoning":  # it could not be sent, and so there is nothing to send but text and calls
        assert native is None
    else:
        assert native is not None
        assert [each["type"] for each in native.body["output"]] == [kind for name in order for kind in kinds[name]]


@pytest.mark.parametrize(
    ("turn", "stop"),
    [
        (Turn(text="Yes."), StopReason.END),
        (Turn(text=""), StopReason.END),
        (Turn(text="Cut o", stop="max_output_tokens"), StopReason.LENGTH),
        (Turn(text="Cut o", stop="a reason of next year"), StopReason.LENGTH),
        (Turn(text="I will not.", stop="refusal"), StopReason.REFUSAL),
        (Turn(text="I w", stop="content_filter"), StopReason.REFUSAL),
        (Turn(calls=(Call(name="bash", arguments="{}"),)), StopReason.TOOLS),
        (Turn(calls=(Call(name="bash", arguments='{"a'),), stop="max_output_tokens"), StopReason.LENGTH),
        (Turn(reasoning="Hm."), StopReason.THOUGHT),
        (Turn(reasoning="Hm.", text=" \n"), StopReason.THOUGHT),
        (Turn(reasoning="Hm.", stop="max_output_tokens"), StopReason.LENGTH),
        (Turn(reasoning_tokens=15), StopReason.THOUGHT),
    ],
    ids=str,
)
def test_why_a_reply_ended_is_told(turn: Turn, stop: StopReason) -> None:
    gathered = reply(turn)
    assert gathered.stops == (stop,)
    assert gathered.messages[0].text == turn.text


def test_hidden_thoughts_without_an_item_are_thoughts_too() -> None:
    usage = {"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 5}}
    assert reply(raw(response(usage=usage))).stops == (StopReason.THOUGHT,)


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text="Yes."),
        Turn(reasoning="Hm."),
        replace(FULL, stop="max_output_tokens"),
        replace(FULL, stop="content_filter"),
    ],
    ids=str,
)
def test_a_turn_that_its_provider_need_not_or_would_not_see_again_has_no_native_form(turn: Turn) -> None:
    assert reply(turn).messages[0].native is None


def test_thoughts_without_their_encrypted_form_do_not_go_back() -> None:
    plain = [item("done", 0, type="reasoning", summary=[{"type": "summary_text", "text": "Hm."}]), *said("Yes.", 1)]
    (message,) = reply(raw(*plain, response())).messages
    assert (message.reasoning, message.native) == ("Hm.", None)


def test_thoughts_in_the_models_own_words_go_back_without_an_encrypted_form() -> None:
    events = [part("reasoning_text", "Hm.", content_index=0), item("done", 0, type="reasoning"), *said("Yes.", 1)]
    (message,) = reply(raw(*events, response())).messages
    assert message.reasoning == "Hm."
    assert message.native == NativeMessage(
        protocol="openai",
        model="test-model",
        body={
            "output": [
                {
                    "type": "reasoning",
                    "id": "it_0",
                    "summary": [],
                    "content": [{"type": "reasoning_text", "text": "Hm."}],
                },
                {
                    "type": "message",
                    "id": "it_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
                },
            ]
        },
    )


def test_the_phases_of_messages_are_kept() -> None:
    events = [*said("I begin.", 0, phase="commentary"), *said("Done.", 1, phase="final_answer")]
    (message,) = reply(raw(*events, response())).messages
    assert message.text == "I begin.\n\nDone."
    assert message.native is not None
    assert [each["phase"] for each in message.native.body["output"]] == ["commentary", "final_answer"]


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 5}, {"input_tokens": -1, "output_tokens": 2}, "many"])
def test_counts_that_are_missing_or_cannot_be_are_no_counts(usage: Any) -> None:
    gathered = reply(raw(*said("Yes."), response(usage=usage)))
    assert gathered.usage is None
    assert gathered.output_bytes == 4


@pytest.mark.parametrize("never_streams", [False, True])
def test_a_reply_is_no_longer_than_it_may_be(never_streams: bool) -> None:
    turn = Turn(text="a" + "ä" * (MAX_REPLY_BYTES // 2 + 10), piece=1 << 20)
    gathered = reply(turn, server={"flavour": Flavour(never_streams=never_streams)})
    assert MAX_REPLY_BYTES - 1 <= gathered.output_bytes <= MAX_REPLY_BYTES
    assert gathered.stops == (StopReason.LENGTH,)
    assert gathered.usage is None
    assert gathered.messages[0].native is None


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (raw(), "there is no reply in it"),
        (raw(part("output_text", "Y")), "it ended in the middle"),
        (raw(part("output_text", "Y"), end=b"data: [DONE]\n\n"), "it ended in the middle"),
        (raw(response("cancelled") | {"type": "response.done"}), "or is not done with it (cancelled)"),
        (Trouble(raw=json.dumps(response("queued")["response"]).encode()), "or is not done with it (queued)"),
        (Trouble(raw=b'{"choices": []}'), "there is no reply in it"),
        (Trouble(raw=b"data: [1]\n\n"), "list instead of an object"),
        (Trouble(raw=b"data: {broken\n\n"), "is no JSON"),
    ],
)
def test_what_is_no_whole_reply_is_told_apart(trouble: Trouble, message: str) -> None:
    with ResponsesServer([trouble]) as server, responses_client(server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)
    assert failure.message.startswith("what came is no whole reply: ")
    assert message in failure.message


def test_a_stream_with_an_end_of_its_own_needs_no_last_event_once_all_items_are_done() -> None:
    assert reply(raw(*said("Yes."), end=b"data: [DONE]\n\n")).messages[0].text == "Yes."


def test_characters_that_come_in_halves_are_put_together_and_lone_halves_replaced() -> None:
    events = [part("output_text", "\ud83d"), part("output_text", "\ude00 \udc00")]
    assert reply(raw(*events, response())).messages[0].text == "😀 \ufffd"
