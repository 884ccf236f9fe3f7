"""What goes wrong with chat completions, and what each of it means."""

from __future__ import annotations

import ssl
import time
from typing import Any

import httpx2
import pytest

from orchestrator.llm.providers.openai_failures import complaint_in
from orchestrator.llm.providers.retry_hints import retry_after
from orchestrator.llm.providers.wire import Failure, Fault
from tests.model_servers.base import KEY, Trouble, Turn
from tests.model_servers.openai import OpenAIServer, event
from tests.model_servers.openai_client import WIRE, client
from tests.model_servers.openai_errors import (
    INSUFFICIENT_QUOTA,
    Refusal,
    bad_request,
    context_length_exceeded,
    error_body,
    unsupported_parameter,
    unsupported_value,
)


def failure(trouble: Trouble, **further: Any) -> Failure:
    with OpenAIServer([trouble]) as server, client(server, **further) as asked:
        return asked.fail()


def refused(refusal: Refusal) -> Trouble:
    return Trouble(status=refusal.status, body=refusal.body)


@pytest.mark.parametrize(
    ("trouble", "fault"),
    [
        (Trouble(status=400), Fault.REQUEST),
        (Trouble(status=401), Fault.ACCESS),
        (Trouble(status=402, body={"error": {"message": "Insufficient Balance"}}), Fault.ACCESS),
        (Trouble(status=403), Fault.ACCESS),
        (Trouble(status=404), Fault.ACCESS),
        (Trouble(status=404, body="<html><title>404 Not Found</title></html>"), Fault.ACCESS),
        (Trouble(status=404, body={"error": 'model "x" not found, try pulling it first'}), Fault.ACCESS),
        (Trouble(status=400, body={"error": {"message": "Model Not Exist"}}), Fault.ACCESS),
        (Trouble(status=400, body={"error": {"message": "API key not valid. Please pass one."}}), Fault.ACCESS),
        (Trouble(status=307, headers={"location": "https://elsewhere.example/v1"}, body=""), Fault.ACCESS),
        (Trouble(status=408), Fault.OUTAGE),
        (Trouble(status=409), Fault.OUTAGE),
        (Trouble(status=413, body="too large"), Fault.CONTEXT),
        (Trouble(status=422, body={"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}), Fault.REQUEST),
        (Trouble(status=429), Fault.RATE),
        (Trouble(status=429, body=INSUFFICIENT_QUOTA), Fault.ACCESS),
        (
            Trouble(status=429, body={"error": {"code": "1113", "message": "Insufficient balance, recharge"}}),
            Fault.ACCESS,
        ),
        (Trouble(status=500), Fault.OUTAGE),
        (Trouble(status=502, body="<html><title>502 Bad Gateway</title></html>"), Fault.OUTAGE),
        (Trouble(status=503), Fault.OUTAGE),
        (Trouble(status=529, body=""), Fault.OUTAGE),
        (refused(context_length_exceeded(8192, 9000)), Fault.CONTEXT),
        (refused(unsupported_parameter("seed")), Fault.PARAMETER),
        (refused(unsupported_value("temperature", 0.5)), Fault.PARAMETER),
        (refused(bad_request("Invalid schema for function 'bash'", param="tools[0]")), Fault.REQUEST),
        (
            Trouble(status=500, body={"error": {"code": 500, "message": "Context size has been exceeded."}}),
            Fault.CONTEXT,
        ),
    ],
    ids=str,
)
def test_an_error_status_costs_nothing_and_says_what_kind_it_is(trouble: Trouble, fault: Fault) -> None:
    found = failure(trouble)
    assert found.fault is fault
    assert not found.may_be_paid
    assert found.message.startswith(f"HTTP {trouble.status}")


def test_the_message_holds_the_words_of_the_server() -> None:
    assert failure(Trouble(status=429, body=INSUFFICIENT_QUOTA)).message.startswith(
        "HTTP 429 insufficient_quota: You exceeded your current quota, please check your plan"
    )
    assert "502 Bad Gateway" in failure(Trouble(status=502, body="<html><title>502 Bad Gateway</title></html>")).message
    assert (
        "https://elsewhere.example/v1"
        in failure(Trouble(status=307, headers={"location": "https://elsewhere.example/v1"}, body="")).message
    )
    assert failure(Trouble(status=500, body={})).message == "HTTP 500: no reason given"


def test_a_message_is_one_short_line_without_escapes() -> None:
    said = "\x1b[31mred\x1b[0m\r\nline\u202e two\x07 " + "long " * 1000
    found = failure(Trouble(status=400, body={"error": {"message": said}}))
    assert len(found.message) <= 300
    assert found.message.isprintable()
    assert found.message.startswith("HTTP 400: red line")


@pytest.mark.parametrize("shown", [KEY, KEY[:12], KEY[-12:], f"{KEY[:8]}*********{KEY[-4:]}", f"Bearer {KEY}"])
def test_no_message_holds_any_of_a_key(shown: str) -> None:
    found = failure(Trouble(status=401, body={"error": {"message": f"Incorrect API key provided: {shown}."}}))
    assert "Incorrect API key provided" in found.message
    for start in range(len(KEY) - 7):
        assert KEY[start : start + 8] not in found.message
    assert KEY[-4:] not in found.message


def test_a_wrong_key_is_refused_in_the_servers_usual_way_and_not_shown() -> None:
    with OpenAIServer([Turn()]) as server, client(server, key="abcdefgh-this-is-wrong-12345678") as asked:
        found = asked.fail()
    assert found.fault is Fault.ACCESS
    assert found.message == (
        "HTTP 401 invalid_api_key: Incorrect API key provided: *** "
        "You can find your API key at https://platform.openai.com/account/api-keys."
    )


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"retry-after": "3"}, "", 3.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:10 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 10.0),
        ({"retry-after": "Wed, 21 Oct 2020 07:28:10 GMT"}, "", 0.0),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "nan"}, "Please try again in 1.2s. Visit", 1.2),
        ({"retry-after": "soon"}, "", None),
        ({}, "Please try again in 1.2s. Visit", 1.2),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please try again in 6m0s.", 360.0),
        ({}, "try again in 1h2m3s", 3723.0),
        ({}, "Please retry after 5 seconds.", 5.0),
        ({}, "Please retry in 34.074s", 34.074),
        ({}, "The limit is 30 requests. Try again later.", None),
        ({}, "", None),
    ],
)
def test_how_long_a_server_asks_to_wait_is_read(headers: dict[str, str], said: str, seconds: float | None) -> None:
    assert retry_after(headers, said) == (None if seconds is None else pytest.approx(seconds))


def test_a_wait_that_is_asked_for_comes_through() -> None:
    assert failure(Trouble(status=429, headers={"retry-after": "17"})).retry_after == 17
    assert failure(Trouble(status=429)).retry_after == pytest.approx(1.2)
    assert failure(Trouble(status=503)).retry_after is None


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Trouble(drop_after=0), id="drops before the first event is whole"),
        pytest.param(Trouble(drop_after=2), id="drops in the middle"),
        pytest.param(Trouble(stall_after=2), id="stalls in the middle"),
        pytest.param(Trouble(silent_seconds=30), id="never answers"),
        pytest.param(Trouble(raw=b"<html><body>Welcome to the hotel's network</body></html>"), id="another page"),
        pytest.param(Trouble(raw=b""), id="nothing at all"),
        pytest.param(Trouble(raw=b"data: {broken\n\n"), id="broken JSON"),
        pytest.param(Trouble(raw=b"{broken"), id="broken plain JSON"),
        pytest.param(Trouble(raw=b"data: \xff\xfe\n\n"), id="no UTF-8"),
        pytest.param(Trouble(raw=b"data: [DONE]\n\n"), id="an empty stream"),
        pytest.param(Trouble(raw=b"data: 3\n\n"), id="not an object"),
        pytest.param(Trouble(raw=event({"choices": [{"delta": {"content": "half"}}]})), id="ends early"),
        pytest.param(
            Trouble(raw=event({"choices": [{"delta": {}, "finish_reason": "insufficient_system_resource"}]})),
            id="gives up",
        ),
        pytest.param(Trouble(raw=b'{"object": "list", "data": []}'), id="something else"),
    ],
)
def test_what_breaks_after_it_was_sent_may_be_paid_for(trouble: Trouble) -> None:
    begun = time.monotonic()
    found = failure(trouble, chunk_seconds=0.3)
    assert time.monotonic() - begun < 5
    assert found.fault is Fault.BROKEN
    assert found.may_be_paid


def test_a_server_that_is_not_there_is_an_outage_that_costs_nothing() -> None:
    with OpenAIServer([]) as server:
        url = server.url
    with client(url) as asked:
        found = asked.fail()
    assert found.fault is Fault.OUTAGE
    assert not found.may_be_paid
    assert "refused" in found.message


def test_a_host_that_has_no_name_is_an_outage() -> None:
    with client("http://no-such-host.invalid/v1") as asked:
        assert asked.fail().fault is Fault.OUTAGE


def test_a_certificate_that_is_not_accepted_is_no_outage() -> None:
    error = httpx2.ConnectError("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    found = WIRE.failure(error, has_begun=False, key=None)
    assert found.fault is Fault.ACCESS
    assert not found.may_be_paid


@pytest.mark.parametrize(
    ("body", "fault", "may_be_paid"),
    [
        ({"error": {"message": "Provider overloaded", "code": 502}}, Fault.OUTAGE, True),
        ({"error": {"message": "Slow down", "code": "rate_limit_exceeded", "type": "requests"}}, Fault.RATE, True),
        ({"error": {"message": "boom", "type": "weird"}}, Fault.BROKEN, True),
        ({"error": "it broke"}, Fault.BROKEN, True),
        (
            {"object": "error", "message": "This model's maximum context length is 9 tokens", "code": 400},
            Fault.CONTEXT,
            False,
        ),
        (
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds the available "
                    "context size. try increasing the context size or enable context shift",
                }
            },
            Fault.CONTEXT,
            False,
        ),
        (unsupported_parameter("temperature").body, Fault.PARAMETER, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["plain", "data", "event", "field"])
def test_errors_after_a_success_status_are_read_too(body: Any, fault: Fault, may_be_paid: bool, form: str) -> None:
    stream = event(body)
    raw = {
        "plain": stream.removeprefix(b"data: "),
        "data": stream,
        "event": b"event: error\n" + stream,
        "field": stream.replace(b"data:", b"error:", 1),
    }[form]
    found = failure(Trouble(raw=raw))
    assert (found.fault, found.may_be_paid) == (fault, may_be_paid)
    assert found.parameter == ("temperature" if fault is Fault.PARAMETER else None)
    assert found.message.startswith("in the stream")


def test_an_error_in_the_middle_of_a_reply_ends_it() -> None:
    begun = event({"choices": [{"delta": {"content": "half"}}]})
    found = failure(Trouble(raw=begun + event(error_body("The server is overloaded", "server_error"))))
    assert (found.fault, found.may_be_paid) == (Fault.OUTAGE, True)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"message": "m"}, "m"),
        ({"detail": "d"}, "d"),
        (
            {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
            "body.seed: Extra inputs are not permitted",
        ),
        ([{"error": {"message": "wrapped"}}], "wrapped"),
        ("plain text", "plain text"),
        (None, ""),
        (3, ""),
        ({"error": {"message": {"not": "text"}}}, ""),
    ],
)
def test_the_words_of_an_error_are_found_in_many_forms(body: Any, text: str) -> None:
    assert complaint_in(body).text == text
