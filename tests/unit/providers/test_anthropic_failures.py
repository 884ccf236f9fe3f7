"""What goes wrong with calls of the Messages API, and what it is taken for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from orchestrator.domain.conversation import Sampling, StopReason, UserMessage
from orchestrator.llm.providers.anthropic_wire import AnthropicExchange
from orchestrator.llm.providers.wire import Failure, Fault
from tests.model_servers.anthropic import AnthropicServer, event
from tests.model_servers.anthropic_client import MODEL, WIRE, client
from tests.model_servers.anthropic_errors import error_body, error_event
from tests.model_servers.anthropic_thinking import ADVICE
from tests.model_servers.base import Answer, Received, Trouble, Turn

LONG = Turn(text="x" * 400)


def failed(answer: Answer, **further: Any) -> Failure:
    with AnthropicServer([answer]) as server, client(server, **further) as asked:
        return asked.fail()


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        *((status, Fault.ACCESS) for status in (301, 401, 402, 403, 404)),
        *((status, Fault.OUTAGE) for status in (408, 409, 500, 501, 502, 503, 504, 520, 529)),
        (413, Fault.CONTEXT),
        (429, Fault.RATE),
        *((status, Fault.REQUEST) for status in (400, 405, 418, 422)),
    ],
)
def test_a_status_is_of_a_kind_and_costs_nothing(status: int, fault: Fault) -> None:
    failure = failed(Trouble(status=status))
    assert (failure.fault, failure.may_be_paid, failure.parameter) == (fault, False, None)
    assert f"HTTP {status}" in failure.message


@pytest.mark.parametrize("body", ["<html>\n<h1>502 Bad Gateway</h1></html>", "", {"error": "no upstream"}, {}])
def test_a_proxy_has_bodies_of_its_own(body: Mapping[str, Any] | str) -> None:
    failure = failed(Trouble(status=502, body=body))
    assert failure.fault is Fault.OUTAGE
    assert failure.message.isprintable()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_a_server_says_how_long_to_wait(headers: Mapping[str, str], seconds: float | None) -> None:
    assert failed(Trouble(status=429, headers=headers)).retry_after == seconds


def test_a_server_may_name_the_moment_until_which_to_wait() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    seconds = failed(Trouble(status=529, headers={"Retry-After": moment})).retry_after
    assert seconds is not None
    assert 60 < seconds <= 91


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        (
            "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-5",
            "max_output_tokens=64000",
        ),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("temperature is deprecated for this model.", "temperature"),
        ("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.", "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "temperature"),
        ("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled", "top_p"),
        ("This model does not support the effort parameter.", "output_config"),
        ("adaptive thinking is not supported on this model", "thinking"),
        ('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"', "thinking"),
        ("reasoning_effort: Extra inputs are not permitted", "reasoning_effort"),
        ("output_config.effort: Extra inputs are not permitted", "output_config"),
        ("system.0.cache_control: Extra inputs are not permitted", "cache_control"),
        ("messages.1.content.0.text.cache_control: Extra inputs are not permitted", "cache_control"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "thoughts sent back"),
        ("messages.3.content.0: Invalid `data` in `redacted_thinking` block", "thoughts sent back"),
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            "thinking, in this conversation",
        ),
        (ADVICE, "thinking, in this conversation"),
        (
            "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.",
            "thinking, in this conversation",
        ),
    ],
)
def test_a_refusal_names_the_parameter_that_can_be_left_out(message: str, parameter: str) -> None:
    failure = failed(Trouble(status=400, body=error_body(400, message)))
    assert (failure.fault, failure.parameter) == (Fault.PARAMETER, parameter)


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0.thinking.foo: Extra inputs are not permitted",
        "max_tokens: Extra inputs are not permitted",
        "`max_tokens` must be greater than `thinking.budget_tokens`",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ],
)
def test_other_refusals_are_about_the_request(message: str) -> None:
    failure = failed(Trouble(status=400, body=error_body(400, message)))
    assert (failure.fault, failure.parameter) == (Fault.REQUEST, None)
    assert message in failure.message


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 209353 tokens > 199999 maximum",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length",
        "Input is too long for requested model.",
    ],
)
def test_a_conversation_that_is_too_long_is_told_from_other_refusals(message: str) -> None:
    assert failed(Trouble(status=400, body=error_body(400, message))).fault is Fault.CONTEXT


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "Your credit balance is too low to access the Anthropic API.", None),
        (400, "You have reached your specified API usage limits. You will regain access on 2026-12-01.", None),
        (429, "You have reached your monthly limit.", "enforced_spend_limit_reached"),
    ],
)
def test_a_limit_on_money_is_a_matter_of_access(status: int, message: str, code: str | None) -> None:
    body = error_body(status, message)
    body["error"]["details"] = {"error_code": code}
    assert failed(Trouble(status=status, body=body)).fault is Fault.ACCESS


def test_the_rules_of_the_server_are_read_right() -> None:
    small = AnthropicServer([Turn(text="x")], models={MODEL: (100, 100)}, refuses=["temperature"])
    short = Sampling(seed=1, max_output_tokens=10)
    with small as server, client(server) as asked:
        refused = asked.fail(sampling=Sampling(seed=1, max_output_tokens=10, temperature=1))
        too_long = asked.fail(UserMessage(text="x" * 999), sampling=short)
        server.models = {}
        unknown = asked.fail()
        server.revoke()
        revoked = asked.fail()
    assert (refused.fault, refused.parameter) == (Fault.PARAMETER, "temperature")
    assert [each.fault for each in (too_long, unknown, revoked)] == [Fault.CONTEXT, Fault.ACCESS, Fault.ACCESS]
    assert not server.requests


@pytest.mark.parametrize(
    ("status", "fault"),
    [(529, Fault.OUTAGE), (500, Fault.OUTAGE), (429, Fault.RATE), (401, Fault.ACCESS), (400, Fault.REQUEST)],
)
def test_an_error_inside_a_stream_is_of_a_kind_too_but_may_be_paid_for(status: int, fault: Fault) -> None:
    begun = event("message_start", message={"model": MODEL, "usage": {"input_tokens": 3, "output_tokens": 1}})
    failure = failed(Trouble(raw=begun + error_event(status)))
    assert (failure.fault, failure.may_be_paid) == (fault, True)
    assert failure.message.startswith("in the stream ")


def test_an_unknown_error_inside_a_stream_is_broken() -> None:
    failure = failed(Trouble(raw=b'event: error\ndata: "?"\n\n'))
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)


def test_a_refused_connection_is_an_outage_and_costs_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with client(f"http://127.0.0.1:{taken.getsockname()[1]}") as asked:
            failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.OUTAGE, False)
    assert "refused" in failure.message


def test_a_name_without_an_address_is_an_outage_and_costs_nothing() -> None:
    with client("http://nobody.invalid") as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.OUTAGE, False)


def test_a_server_that_never_answers_may_have_been_paid() -> None:
    failure = failed(Trouble(silent_seconds=5), chunk_seconds=0.2)
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)
    assert "never answered" in failure.message


def test_a_connection_that_is_closed_without_an_answer_may_have_been_paid() -> None:
    def script(_: Received) -> Answer:
        raise ConnectionError

    with AnthropicServer(script) as server, client(server) as asked:
        failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)


@pytest.mark.parametrize("trouble", [Trouble(drop_after=3, turn=LONG), Trouble(stall_after=3, turn=LONG)])
def test_a_stream_that_breaks_or_stalls_may_have_been_paid(trouble: Trouble) -> None:
    with AnthropicServer([trouble]) as server, client(server, chunk_seconds=0.3) as asked:
        exchange = asked.connection.begin(asked.parameters())
        before = exchange.has_begun
        failures: list[Failure] = []
        _read(exchange, failures)
        assert (before, exchange.has_begun) == (False, True)
        so_far = exchange.gathered()
    (failure,) = failures
    assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)
    assert (so_far.stops, so_far.usage) == ((StopReason.LENGTH,), None)


@pytest.mark.parametrize("trouble", [Trouble(silent_seconds=30), Trouble(stall_after=4, turn=LONG)])
def test_another_thread_can_wake_a_reader(trouble: Trouble) -> None:
    with AnthropicServer([trouble]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        failures: list[Failure] = []
        reader = threading.Thread(target=_read, args=(exchange, failures))
        reader.start()
        while not server.requests:
            time.sleep(0.01)
        time.sleep(0.2)
        begun = time.monotonic()
        exchange.shut()
        exchange.shut()
        reader.join(5)
        assert time.monotonic() - begun < 2
        assert not reader.is_alive()
    assert failures[0].fault is Fault.BROKEN


def _read(exchange: AnthropicExchange, failures: list[Failure]) -> None:
    try:
        list(exchange)
    except Exception as error:  # noqa: BLE001 - what it means is the question
        failures.append(WIRE.failure(error, has_begun=exchange.has_begun, key=None))


def test_a_call_that_is_shut_before_it_begins_reaches_nobody() -> None:
    with AnthropicServer([Turn(text="x")]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        exchange.shut()
        failures: list[Failure] = []
        _read(exchange, failures)
        assert (len(failures), exchange.has_begun) == (1, False)
    assert not server.requests


def test_a_call_that_is_over_can_be_shut_without_harm() -> None:
    with AnthropicServer([Turn(text="x")]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        list(exchange)
        exchange.shut()
        assert exchange.gathered().messages[0].text == "x"
        assert asked.ask().messages[0].text == "x"


def test_a_redirect_is_not_followed() -> None:
    with AnthropicServer([Turn(text="x")]) as elsewhere:
        answer = Trouble(status=307, body="", headers={"Location": f"{elsewhere.url}/v1/messages"})
        failure = failed(answer)
        assert (failure.fault, elsewhere.requests) == (Fault.ACCESS, [])
        assert elsewhere.url in failure.message


def test_a_message_is_one_short_line_without_terminal_escapes() -> None:
    said = "\x1b[31mred\x1b[0m\r\nnext\x1b]0;title\x07 line\u202e\x9b2J " + "long " * 200
    message = failed(Trouble(status=400, body=error_body(400, said))).message
    assert message.startswith("HTTP 400 invalid_request_error: red next line long long")
    assert message.isprintable()
    assert len(message) <= 300
