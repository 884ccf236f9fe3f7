"""What goes wrong with OpenAI's responses, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    NativeMessage,
    StopReason,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from orchestrator.llm.providers.wire import Fault
from tests.model_servers.base import Trouble, Turn
from tests.model_servers.openai_client import ACCOUNT, HELLO, bash
from tests.model_servers.openai_errors import INSUFFICIENT_QUOTA, bad_request
from tests.model_servers.responses import ResponsesServer
from tests.model_servers.responses_client import raw, reply, response, responses_client
from tests.model_servers.responses_rules import ResponsesStrictness

FINE = Turn(text="All is well.")
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."


@pytest.mark.parametrize(
    ("trouble", "fault", "parameter"),
    [
        (Trouble(status=401), Fault.ACCESS, None),
        (Trouble(status=404), Fault.ACCESS, None),
        (Trouble(status=429), Fault.RATE, None),
        (Trouble(status=429, body=INSUFFICIENT_QUOTA), Fault.ACCESS, None),
        (Trouble(status=500), Fault.OUTAGE, None),
        (Trouble(status=400), Fault.REQUEST, None),
        (
            Trouble(
                status=400,
                body=bad_request(
                    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 4096, but got 9999.",
                    param="max_output_tokens",
                ).body,
            ),
            Fault.PARAMETER,
            "max_output_tokens=4096",
        ),
        (
            Trouble(status=400, body=bad_request("Encrypted content is not supported with this model.").body),
            Fault.PARAMETER,
            "include",
        ),
    ],
    ids=str,
)
def test_an_error_status_costs_nothing(trouble: Trouble, fault: Fault, parameter: str | None) -> None:
    with ResponsesServer([trouble]) as server, responses_client(server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.parameter, failure.may_be_paid) == (fault, parameter, False)


@pytest.mark.parametrize("name", ["temperature", "prompt_cache_key", "include", "instructions"])
def test_a_refused_parameter_is_named(name: str) -> None:
    rules = ResponsesStrictness(refused=frozenset({name}))
    entry = {"options": {"prompt_cache_key": "x"}}
    with ResponsesServer([FINE], rules=rules) as server, responses_client(server, **entry) as asked:
        failure = asked.fail(temperature=0.5)
    assert (failure.fault, failure.parameter) == (Fault.PARAMETER, name)


def test_encrypted_reasoning_of_a_model_that_does_not_reason_is_a_refused_parameter() -> None:
    with (
        ResponsesServer([FINE], rules=ResponsesStrictness(reasons=False)) as server,
        responses_client(server) as asked,
    ):
        failure = asked.fail()
    assert (failure.fault, failure.parameter) == (Fault.PARAMETER, "include")


def test_thoughts_that_the_server_cannot_read_any_more_are_a_refused_parameter() -> None:
    output = [
        {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "of another organisation"},
        {"type": "function_call", "id": "fc_x", "call_id": "call_1", "name": "bash", "arguments": "{}"},
    ]
    native = NativeMessage(protocol="openai", model=ACCOUNT, body={"output": output})
    turn = AssistantMessage(text="", tool_calls=(bash(),), native=native)
    answer = ToolMessage(results=(ToolResult(call_id="call_1", text="a b"),))
    with ResponsesServer([FINE]) as server, responses_client(server) as asked:
        failure = asked.fail(HELLO, turn, answer)
    assert (failure.fault, failure.parameter, failure.may_be_paid) == (Fault.PARAMETER, "include", False)


def test_too_long_a_conversation_is_told_apart() -> None:
    rules = ResponsesStrictness(context_tokens=100)
    with ResponsesServer([FINE], rules=rules) as server, responses_client(server) as asked:
        failure = asked.fail(UserMessage(text="word " * 500))
    assert (failure.fault, failure.may_be_paid) == (Fault.CONTEXT, False)


def failed(code: str, message: str, **fields: Any) -> Trouble:
    return raw(response("failed", error={"code": code, "message": message}, **fields))


def told(code: str, message: str) -> Trouble:
    return raw({"type": "error", "code": code, "message": message, "param": None})


def told_without_a_name(code: str, message: str) -> Trouble:
    said = {"type": "error", "code": code, "message": message, "param": None}
    return Trouble(raw=f"data: {json.dumps(said)}\n\n".encode())


def told_inside(code: str, message: str) -> Trouble:
    return raw({"type": "error", "error": {"type": code, "code": code, "message": message, "param": None}})


@pytest.mark.parametrize("form", [failed, told, told_without_a_name, told_inside])
@pytest.mark.parametrize(
    ("code", "message", "fault", "may_be_paid"),
    [
        ("server_error", "The server had an error.", Fault.OUTAGE, True),
        ("rate_limit_exceeded", "Rate limit reached. Please try again in 1.2s.", Fault.RATE, True),
        ("context_length_exceeded", TOO_LONG, Fault.CONTEXT, False),
        ("something_new", "Nobody knows.", Fault.BROKEN, True),
    ],
)
def test_an_error_in_the_stream_is_read_in_every_form(
    form: Any, code: str, message: str, fault: Fault, may_be_paid: bool
) -> None:
    with ResponsesServer([form(code, message)]) as server, responses_client(server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (fault, may_be_paid)
    assert message in failure.message
    assert (failure.retry_after == 1.2) is (fault is Fault.RATE)


@pytest.mark.parametrize("code", ["invalid_prompt", "bio_policy", "misalignment_policy_violation"])
def test_a_reply_that_a_filter_ends_is_a_refusal(code: str) -> None:
    gathered = reply(failed(code, "We will not.", usage={"input_tokens": 9, "output_tokens": 1}))
    assert gathered.stops == (StopReason.REFUSAL,)
    assert gathered.messages[0].text == "We will not."
    assert gathered.usage == Usage(input_tokens=9, output_tokens=1)


def test_a_response_that_failed_without_a_word_is_no_reply() -> None:
    with ResponsesServer([raw(response("failed"))]) as server, responses_client(server) as asked:
        assert asked.fail().fault is Fault.BROKEN


def test_a_whole_response_that_failed_is_an_error_too() -> None:
    whole = response("failed", error={"code": "server_error", "message": "No."})["response"]
    with ResponsesServer([Trouble(raw=json.dumps(whole).encode())]) as server, responses_client(server) as asked:
        assert asked.fail().fault is Fault.OUTAGE


@pytest.mark.parametrize(
    "trouble",
    [Trouble(drop_after=4), Trouble(drop_after=0), Trouble(stall_after=4), Trouble(raw=b"<html>Bad gateway</html>")],
    ids=str,
)
def test_a_reply_that_breaks_off_may_be_paid_for(trouble: Trouble) -> None:
    with ResponsesServer([trouble]) as server, responses_client(server, chunk_seconds=0.5) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)


def test_the_last_event_ends_a_reply_whatever_the_server_does_then() -> None:
    class Lingering(ResponsesServer):
        def _troubled(self, events: Iterator[bytes], trouble: Trouble | None) -> Iterator[bytes]:
            yield from super()._troubled(events, trouble)
            self.pause(30)

    with Lingering([FINE]) as server, responses_client(server, chunk_seconds=1) as asked:
        assert asked.ask().messages[0].text == "All is well."


def test_a_server_without_this_protocol_is_told_of() -> None:
    with ResponsesServer([FINE]) as server, responses_client(f"{server.url}/elsewhere") as asked:
        failure = asked.fail()
    assert failure.fault is Fault.ACCESS
    assert "Invalid URL (POST /v1/elsewhere/responses)" in failure.message
