"""The SDK's client as we use it: where keys go and where they do not, and how a call is broken."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from orchestrator.llm.providers.openai_wire import NO_KEY
from orchestrator.llm.providers.wire import Fault
from orchestrator.runtime.workers import Worker, spawn
from tests.model_servers.base import KEY, Trouble, Turn
from tests.model_servers.openai import OpenAIServer
from tests.model_servers.openai_client import WIRE, client

FINE = Turn(text="All is well.")
OURS = {
    "host",
    "accept",
    "accept-encoding",
    "connection",
    "user-agent",
    "content-length",
    "content-type",
    "authorization",
}
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-from-the-environment",
    "OPENAI_ADMIN_KEY": "sk-admin-from-the-environment",
    "OPENAI_ORG_ID": "org-from-the-environment",
    "OPENAI_PROJECT_ID": "proj-from-the-environment",
    "OPENAI_WEBHOOK_SECRET": "whsec-from-the-environment",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/from-the-environment",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer from-the-environment\nX-Extra: from-the-environment",
}


@pytest.mark.parametrize("key", [KEY, None])
def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with OpenAIServer([FINE], key=key) as server, client(server, key=key) as asked:
        assert asked.ask().messages[0].text == "All is well."
        assert asked.connection.facts("test-model", seconds=5).is_known
        for request in (*server.requests, *server.others):
            assert request.headers["authorization"] == f"Bearer {key or NO_KEY}"
            assert set(request.headers) <= OURS
            assert "from-the-environment" not in str(request.headers)


def test_nothing_is_sent_before_the_exchange_is_iterated() -> None:
    with OpenAIServer([FINE]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        assert not exchange.has_begun
        assert exchange.gathered().messages == ()
        assert server.requests == []


def test_nothing_is_sent_twice() -> None:
    with OpenAIServer([Trouble(status=500)]) as server, client(server) as asked:
        assert asked.fail().fault is Fault.OUTAGE
        assert len(server.requests) == 1


def test_a_redirection_is_not_followed() -> None:
    with OpenAIServer([FINE]) as other, OpenAIServer([]) as server, client(server) as asked:
        server._script = [Trouble(status=307, headers={"location": f"{other.url}/chat/completions"}, body="")]
        assert asked.fail().fault is Fault.ACCESS
        assert other.requests == []


TROUBLES: list[Turn | Trouble] = [
    Trouble(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}."}}),
    Trouble(status=500),
    Trouble(drop_after=2),
    Trouble(raw=b"data: {broken\n\n"),
    Trouble(raw=b'data: {"error": {"message": "it broke"}}\n\n'),
    FINE,
]


def test_no_log_record_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2"):
        caplog.set_level(logging.DEBUG, logger=name)
    for trouble in TROUBLES:
        with OpenAIServer([trouble]) as server, client(server) as asked:
            if isinstance(trouble, Trouble):
                asked.fail()
            else:
                asked.ask()
            asked.connection.facts("test-model", seconds=5)
    assert len(caplog.records) > 50
    for record in caplog.records:
        assert KEY not in record.getMessage()
        assert KEY not in repr(record.args)


@pytest.mark.parametrize("trouble", TROUBLES[1:-1], ids=str)
def test_no_exception_shows_the_key(trouble: Trouble) -> None:
    with OpenAIServer([trouble]) as server, client(server) as asked:
        error, has_begun = asked.error()
        shown = [repr(error), str(error), "".join(traceback.format_exception(error))]
        shown += [repr(getattr(error, "request", "")), repr(vars(error)), repr(asked.connection), repr(asked.key)]
        shown.append(repr(WIRE.failure(error, has_begun=has_begun, key=asked.key)))
    assert not [text for text in shown if KEY in text]


def reading(exchange: Any) -> Worker[tuple[Exception | None, float]]:
    def read() -> tuple[Exception | None, float]:
        try:
            for _ in exchange:
                pass
        except Exception as error:  # noqa: BLE001 - whatever it is
            return error, time.monotonic()
        return None, time.monotonic()

    return spawn("reader", read)


@pytest.mark.parametrize(
    ("trouble", "begins"),
    [(Trouble(silent_seconds=30), False), (Trouble(stall_after=2), True)],
    ids=["never answers", "stops in the middle"],
)
def test_shutting_wakes_a_reader_of_another_thread(trouble: Trouble, begins: bool) -> None:
    with OpenAIServer([trouble]) as server, client(server, chunk_seconds=60) as asked:
        exchange = asked.connection.begin(asked.parameters())
        worker = reading(exchange)
        wait_until(lambda: exchange.has_begun if begins else bool(server.requests))
        time.sleep(0.2)
        assert worker.is_alive
        begun = time.monotonic()
        exchange.shut()
        exchange.shut()
        assert worker.join(5)
        error, ended = worker.result()
        assert ended - begun < 1
        assert error is not None
        found = WIRE.failure(error, has_begun=exchange.has_begun, key=asked.key)
        assert (found.fault, found.may_be_paid) == (Fault.BROKEN, True)


def test_shutting_before_anything_was_sent_keeps_it_from_being_answered() -> None:
    with OpenAIServer([FINE]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        exchange.shut()
        worker = reading(exchange)
        assert worker.join(5)
        error, _ = worker.result()
        assert error is not None
        assert not exchange.has_begun


def test_shutting_after_the_end_does_nothing() -> None:
    with OpenAIServer([FINE]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        for _ in exchange:
            pass
        exchange.shut()
        assert exchange.gathered().messages[0].text == "All is well."


def test_calls_of_many_threads_do_not_disturb_each_other() -> None:
    barrier = threading.Barrier(8)
    with (
        OpenAIServer(lambda request: Turn(text=request.body["messages"][1]["content"] * 20)) as server,
        client(server) as asked,
    ):

        def ask(number: int) -> str:
            barrier.wait(5)
            body = asked.parameters()
            body["messages"][1]["content"] = f"answer {number} "
            exchange = asked.connection.begin(body)
            for _ in exchange:
                pass
            exchange.shut()
            return exchange.gathered().messages[0].text

        workers = [spawn(f"asker {number}", partial(ask, number)) for number in range(8)]
        assert all(worker.join(10) for worker in workers)
        assert [worker.result() for worker in workers] == [f"answer {number} " * 20 for number in range(8)]


def test_a_caller_may_look_at_its_clock_after_every_piece() -> None:
    with OpenAIServer([Turn(text="Many pieces of text. " * 20)]) as server, client(server) as asked:
        exchange = asked.connection.begin(asked.parameters())
        steps = iter(exchange)
        next(steps)
        assert exchange.has_begun
        assert sum(1 for _ in steps) > 1


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)
