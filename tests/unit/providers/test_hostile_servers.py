"""Servers that mean harm, or are badly broken: what they send costs no memory, and what they say no money."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from orchestrator.domain.model_access import Patience, Provider
from orchestrator.errors import ContextTooLong, LostReply, ModelError, PrerequisiteError
from orchestrator.llm.providers.anthropic_events import EventReader as AnthropicEvents
from orchestrator.llm.providers.bounded_bodies import MAX_ERROR_BYTES, MAX_LIST_BYTES, MAX_VALUES, parsed_json
from orchestrator.llm.providers.durations import shown_duration
from orchestrator.llm.providers.openai_calls import MAX_CALLS, GrowingCall
from orchestrator.llm.providers.openai_events import EventReader
from orchestrator.llm.providers.retry_hints import MOST_SECONDS, retry_after
from orchestrator.llm.providers.wire import Fault
from tests.model_lab import HELLO, SAMPLING, TOOL, model_at
from tests.model_servers.anthropic_client import client as anthropic_client
from tests.model_servers.base import ModelServer, Received, Responder
from tests.model_servers.openai_client import client as openai_client

lab_at = partial(model_at, patience=Patience(request_seconds=20, chunk_seconds=10, outage_seconds=1))
both = pytest.mark.parametrize("provider", list(Provider), ids=str)
CLIENTS: Mapping[Provider, Callable[..., Any]] = {
    Provider.OPENAI: openai_client,
    Provider.ANTHROPIC: anthropic_client,
}


class HostileServer(ModelServer):
    """Answers everything in the same way."""

    def __init__(self, answer: Callable[[Responder], None]) -> None:
        super().__init__([])
        self.answer = answer
        self.sent = 0

    def handle(self, request: Received, respond: Responder) -> None:
        self.note_other(request)
        self.answer(respond)

    def pour(self, respond: Responder, status: int, piece: bytes, *, most: int, headers: Mapping[str, str]) -> None:
        """A body without an end, or nearly so."""
        handler = respond._handler
        handler.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        while self.sent < most:
            handler.wfile.write(piece)
            self.sent += len(piece)
        handler.close_connection = True


def streamed(*events: object) -> Callable[[Responder], None]:
    def answer(respond: Responder) -> None:
        respond.stream(f"data: {json.dumps(event)}\n\n".encode() for event in events)

    return answer


def anthropic_stream(begun: object, ended: object, text: str = "hello") -> Callable[[Responder], None]:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "m", "usage": begun}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": ended},
        {"type": "message_stop"},
    ]
    return lambda respond: respond.stream(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def chunk(text: str, finish: str | None = None, index: int = 0, **further: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}], **further}


@both
@pytest.mark.parametrize("status", [400, 500])
def test_of_an_error_only_its_beginning_is_read(provider: Provider, status: int) -> None:
    server = HostileServer(lambda respond: server.pour(respond, status, b" " * 65_536, most=1 << 30, headers={}))
    with server, CLIENTS[provider](server) as asked:
        failure = asked.fail()
    assert failure.fault is (Fault.OUTAGE if status == 500 else Fault.REQUEST)
    assert not failure.may_be_paid
    assert server.sent < MAX_ERROR_BYTES + (32 << 20)  # what the kernel holds for the two of them


@both
def test_an_error_that_breaks_off_is_one_all_the_same(provider: Provider) -> None:
    def broken(respond: Responder) -> None:
        server.pour(respond, 429, b"{", most=1, headers={"Content-Length": "100", "Retry-After": "7"})

    server = HostileServer(broken)
    with server, CLIENTS[provider](server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.retry_after, failure.may_be_paid) == (Fault.RATE, 7.0, False)


@both
def test_nothing_is_unpacked(provider: Provider) -> None:
    bomb = gzip.compress(b" " * (32 << 20))
    for status, fault in ((200, Fault.BROKEN), (401, Fault.ACCESS)):
        server = HostileServer(
            lambda respond, status=status: respond.whole(status, bomb, headers={"Content-Encoding": "gzip"})  # type: ignore[misc]
        )
        with server, CLIENTS[provider](server) as asked:
            failure = asked.fail()
            assert (failure.fault, failure.may_be_paid) == (fault, status == 200)
            with pytest.raises(Exception, match=r".") as raised:
                asked.connection.facts("m", seconds=5)
            said = str(raised.value.__cause__ or raised.value)
            assert ("compressed" if status == 200 else "401") in said


@both
def test_of_a_list_no_more_is_read_than_a_list_can_be(provider: Provider) -> None:
    server = HostileServer(lambda respond: server.pour(respond, 200, b" " * 65_536, most=1 << 30, headers={}))
    with server, lab_at(server, provider) as lab, pytest.raises(PrerequisiteError, match="bytes in one piece"):
        lab.model.check(10)
    assert server.sent < MAX_LIST_BYTES + (32 << 20)


def test_json_has_so_many_values_and_no_more() -> None:
    with pytest.raises(ValueError, match="values"):
        parsed_json(b"[" + b"{}," * MAX_VALUES + b"{}]")
    with pytest.raises(ValueError, match="values"):
        parsed_json(b"[" + b'"",' * (2 * MAX_VALUES) + b'""]')
    with pytest.raises(ValueError, match="deep"):
        parsed_json(b"[" * 200_000 + b"]" * 200_000)
    text = 'a, b: ["{\\' * MAX_VALUES
    assert parsed_json(json.dumps({"text": text}).encode()) == {"text": text}


@pytest.mark.parametrize(
    "error",
    [
        {"code": 400, "message": "the request exceeds the available context size", "type": "invalid_request_error"},
        {"code": 400, "message": "Unsupported parameter: temperature", "param": "temperature"},
    ],
    ids=["context", "parameter"],
)
def test_an_error_after_content_may_be_paid(error: dict[str, Any]) -> None:
    after = HostileServer(streamed(chunk("a" * 1000), {"error": error}))
    with after, lab_at(after, Provider.OPENAI) as lab, pytest.raises(LostReply):
        lab.ask()
    assert len(after.others) == 1
    before = HostileServer(streamed(chunk(""), {"error": error}))
    expected = ContextTooLong if "context" in error["message"] else ModelError
    with before, lab_at(before, Provider.OPENAI) as lab, pytest.raises(expected) as raised:
        lab.ask()
    assert not isinstance(raised.value, LostReply)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "Mon, 01 Jan 99999999999999 00:00:00 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 2030 00:00:00 +99999999999999999999"}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2020 07:28:10 GMT",
                "date": "Mon, 01 Jan 2030 00:00:00 +99999999999999999999",
            },
            0.0,
        ),
        ({"retry-after": "1e308"}, MOST_SECONDS),
        ({"retry-after": "9" * 5000}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, MOST_SECONDS),
    ],
)
def test_a_wait_that_cannot_be_is_none_and_a_long_one_is_shown(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
    assert len(shown_duration(retry_after(headers) or 0.0)) < 12
    assert retry_after({}, "Please try again in 999999999h.") == MOST_SECONDS


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ({"input_tokens": 10**4000}, {"output_tokens": 5}),
        ({"input_tokens": 5}, {"output_tokens": 10**4000}),
        ({"input_tokens": 0}, {"output_tokens": 5}),
        ({"input_tokens": 5}, {"output_tokens": 0}),
        ({"input_tokens": 5, "cache_read_input_tokens": -3}, {"output_tokens": 5}),
        ({"input_tokens": 5, "cache_creation_input_tokens": "9"}, {"output_tokens": 5}),
        ({"input_tokens": True}, {"output_tokens": 5}),
    ],
)
def test_a_usage_that_cannot_be_is_estimated(begun: object, ended: object) -> None:
    server = HostileServer(anthropic_stream(begun, ended))
    with server, lab_at(server, Provider.ANTHROPIC) as lab:
        reply = lab.ask()
        assert reply.is_estimate
        assert reply.usage.input_tokens == lab.model.count_tokens(HELLO, [TOOL])
        assert 0 < reply.usage.output_tokens < 100


def test_input_that_was_all_cached_is_a_true_usage() -> None:
    server = HostileServer(anthropic_stream({"input_tokens": 0, "cache_read_input_tokens": 7}, {"output_tokens": 5}))
    with server, lab_at(server, Provider.ANTHROPIC) as lab:
        reply = lab.ask()
    assert (reply.is_estimate, reply.usage.cached_input_tokens, reply.usage.output_tokens) == (False, 7, 5)


def test_samples_that_nobody_asked_for_count_where_the_usage_is_estimated() -> None:
    server = HostileServer(
        streamed(chunk("short", "stop"), *(chunk("x" * 5000, "stop", index=number) for number in range(1, 9)))
    )
    with server, lab_at(server, Provider.OPENAI) as lab:
        reply = lab.ask()
    assert reply.message.text == "short"
    assert reply.usage.output_tokens > 20_000 > SAMPLING.max_output_tokens


def test_calls_that_are_left_aside_count_as_well() -> None:
    calls = [
        {"index": number, "id": str(number), "function": {"name": "f", "arguments": "x" * 10}} for number in range(999)
    ]
    body = {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    with HostileServer(streamed(body)) as server, lab_at(server, Provider.OPENAI) as lab:
        reply = lab.ask()
    assert len(reply.message.tool_calls) == MAX_CALLS
    assert reply.usage.output_tokens > 999 * 10 // 2


@pytest.mark.parametrize("size", [1, True, 10**4000, -5, "9000", 10**9])
@both
def test_sizes_that_cannot_be_are_ignored(provider: Provider, size: object) -> None:
    said = {"id": "m", "max_model_len": size, "max_input_tokens": size, "max_tokens": size, "max_output_tokens": size}
    body = {**said, "data": [said]}
    with HostileServer(lambda respond: respond.json(200, body)) as server, CLIENTS[provider](server) as asked:
        facts = asked.connection.facts("m", seconds=5)
    assert (facts.context_tokens, facts.max_output_tokens) == (None, None)


def test_a_list_does_not_lower_what_is_set_aside_for_a_model_without_a_limit() -> None:
    body = {"data": [{"id": "test-model", "max_output_tokens": 16}]}
    with (
        HostileServer(lambda respond: respond.json(200, body)) as server,
        lab_at(server, Provider.OPENAI, without=("max_tokens", "max_completion_tokens"), context_tokens=50_000) as lab,
    ):
        lab.model.check(5)
        assert lab.model.worst_case(HELLO, [TOOL], SAMPLING).output_tokens == 50_000


def test_an_end_of_line_that_comes_in_two_pieces_is_one() -> None:
    stream = b'event: error\r\ndata: {"a": 1}\r\n\r\ndata: {"b": 2}\r\n\r\ndata: {"c": 3}\r'
    for size in (1, 13, 14, 1000):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        reader = EventReader()
        events = [event for piece in pieces for event in reader.feed(piece)] + list(reader.finish())
        assert events == [(True, {"a": 1}), (False, {"b": 2}), (False, {"c": 3})]
        other = AnthropicEvents()
        assert [name for piece in pieces for name, _ in other.feed(piece)] == ["error", ""]


def test_arguments_are_not_read_again_and_again_without_end() -> None:
    call = GrowingCall(None)
    call.arguments.append('{"a": "' + "x" * 100_000 + '"}')
    assert call.is_whole
    asked = 0
    while call.is_whole:
        asked += 1
        assert asked < 100
