"""The SDK's client as the wire of responses uses it: where keys go and where they do not, and how a call is broken."""

from __future__ import annotations

import logging
import time
import traceback
from typing import Any

import pytest

from orchestrator.llm.providers.openai_wire import NO_KEY
from orchestrator.llm.providers.wire import Fault, ModelFacts
from orchestrator.runtime.workers import Worker, spawn
from tests.model_servers.base import KEY, Trouble, Turn
from tests.model_servers.openai import Flavour
from tests.model_servers.responses import ResponsesServer
from tests.model_servers.responses_client import raw, response, responses_client

FINE = Turn(text="All is well.")
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-from-the-environment",
    "OPENAI_ORG_ID": "org-from-the-environment",
    "OPENAI_PROJECT_ID": "proj-from-the-environment",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/from-the-environment",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer from-the-environment\nX-Extra: from-the-environment",
}
TROUBLES: list[Turn | Trouble] = [
    Trouble(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}."}}),
    Trouble(status=500),
    Trouble(drop_after=2),
    Trouble(raw=b"data: {broken\n\n"),
    raw({"type": "error", "code": "server_error", "message": f"It broke for {KEY}."}),
    raw(response("failed", error={"code": "server_error", "message": f"It broke for {KEY}."})),
    FINE,
]


@pytest.mark.parametrize("key", [KEY, None])
def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with ResponsesServer([FINE], key=key) as server, responses_client(server, key=key) as asked:
        assert asked.ask().messages[0].text == "All is well."
        assert asked.connection.facts("test-model", seconds=5).is_known
        for request in (*server.requests, *server.others):
            assert request.headers["authorization"] == f"Bearer {key or NO_KEY}"
            assert "from-the-environment" not in str(request.headers)


def test_a_server_says_what_it_knows_of_a_model() -> None:
    with ResponsesServer([], flavour=Flavour(listing="vllm")) as server, responses_client(server) as asked:
        assert asked.connection.facts("test-model", seconds=5) == ModelFacts(is_known=True, context_tokens=32_768)


def test_nothing_is_sent_before_the_exchange_is_iterated_and_nothing_twice() -> None:
    with ResponsesServer([Trouble(status=500)]) as server, responses_client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        assert not exchange.has_begun
        assert exchange.gathered().messages == ()
        assert server.requests == []
        assert asked.fail().fault is Fault.OUTAGE
        assert len(server.requests) == 1


def test_no_log_record_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2"):
        caplog.set_level(logging.DEBUG, logger=name)
    for trouble in TROUBLES:
        with ResponsesServer([trouble]) as server, responses_client(server) as asked:
            if isinstance(trouble, Trouble):
                assert KEY not in asked.fail().message
            else:
                asked.ask()
    assert len(caplog.records) > 50
    for record in caplog.records:
        assert KEY not in record.getMessage()
        assert KEY not in repr(record.args)


@pytest.mark.parametrize("trouble", TROUBLES[1:4], ids=str)
def test_no_exception_shows_the_key(trouble: Trouble) -> None:
    with ResponsesServer([trouble]) as server, responses_client(server) as asked:
        error, has_begun = asked.error()
        shown = [repr(error), str(error), "".join(traceback.format_exception(error))]
        shown += [repr(getattr(error, "request", "")), repr(vars(error)), repr(asked.connection), repr(asked.key)]
        shown.append(repr(asked.wire.failure(error, has_begun=has_begun, key=asked.key)))
    assert not [text for text in shown if KEY in text]


@pytest.mark.parametrize(
    ("trouble", "begins"),
    [(Trouble(silent_seconds=30), False), (Trouble(stall_after=2), True)],
    ids=["never answers", "stops in the middle"],
)
def test_shutting_wakes_a_reader_of_another_thread(trouble: Trouble, begins: bool) -> None:
    with ResponsesServer([trouble]) as server, responses_client(server, chunk_seconds=60) as asked:
        exchange = asked.connection.begin(asked.parameters())
        worker = reading(exchange)
        end = time.monotonic() + 5
        while not (exchange.has_begun if begins else server.requests):
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.2)
        assert worker.is_alive
        begun = time.monotonic()
        exchange.shut()
        exchange.shut()
        assert worker.join(5)
        error = worker.result()
        assert time.monotonic() - begun < 2
        assert error is not None
        assert exchange.has_begun is begins
        found = asked.wire.failure(error, has_begun=exchange.has_begun, key=asked.key)
        assert (found.fault, found.may_be_paid) == (Fault.BROKEN, True)


def reading(exchange: Any) -> Worker[Exception | None]:
    def read() -> Exception | None:
        try:
            for _ in exchange:
                pass
        except Exception as error:  # noqa: BLE001 - whatever it is
            return error
        return None

    return spawn("reader", read)


def test_a_caller_may_look_at_its_clock_after_every_piece() -> None:
    with ResponsesServer([Turn(text="Many pieces of text. " * 50)]) as server, responses_client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        steps = iter(exchange)
        next(steps)
        assert exchange.has_begun
        assert sum(1 for _ in steps) > 1
