"""One call: whatever the server does, it ends in time, and it is known whether it may be paid for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from orchestrator.domain.model_access import Provider
from orchestrator.errors import Cancelled
from orchestrator.llm.providers.anthropic_wire import AnthropicWire
from orchestrator.llm.providers.calls import call, run_until
from orchestrator.llm.providers.capabilities import find_capabilities
from orchestrator.llm.providers.durations import shown_duration, shown_moment
from orchestrator.llm.providers.wire import Exchange, Failure, Fault, Gathered, Secret
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken, spawn
from tests.model_lab import HELLO, SAMPLING, entry_for
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.base import KEY, Answer, Trouble, Turn

FINE = Turn(text="All is well.")
WIRE = AnthropicWire()


def reading(error: Exception, has_begun: bool) -> Failure:
    return WIRE.failure(error, has_begun=has_begun, key=Secret(KEY))


@contextmanager
def prepared(answer: Answer) -> Iterator[tuple[AnthropicServer, Exchange]]:
    """A request that is ready to be sent."""
    with AnthropicServer([answer]) as server:
        entry = entry_for(Provider.ANTHROPIC, server.url)
        parameters = WIRE.parameters(
            HELLO, [], [SAMPLING], entry=entry, account="a", capabilities=find_capabilities(entry)
        )
        with WIRE.connect(entry, Secret(KEY), connect_seconds=5.0, chunk_seconds=10.0) as connection:
            yield server, connection.begin(parameters)


def called(exchange: Exchange, seconds: float, token: CancelToken | None = None) -> Gathered | Failure:
    return call(
        exchange,
        name="model test",
        reading=reading,
        deadline=Deadline.after(seconds),
        seconds=seconds,
        token=token or CancelToken(),
    )


def test_a_reply_comes_back_whole() -> None:
    with prepared(FINE) as (_, exchange):
        outcome = called(exchange, 10.0)
        assert isinstance(outcome, Gathered)
        assert outcome.messages[0].text == "All is well."


def test_an_error_status_is_a_failure_that_nobody_paid() -> None:
    with prepared(Trouble(status=500)) as (_, exchange):
        outcome = called(exchange, 10.0)
        assert isinstance(outcome, Failure)
        assert (outcome.fault, outcome.may_be_paid) == (Fault.OUTAGE, False)


@pytest.mark.parametrize("trouble", [Trouble(silent_seconds=30.0), Trouble(stall_after=3, turn=FINE)])
def test_at_the_deadline_the_connection_is_broken_and_the_call_may_be_paid(trouble: Trouble) -> None:
    with prepared(trouble) as (server, exchange):
        begun = time.monotonic()
        outcome = called(exchange, 0.4)
        assert time.monotonic() - begun < 1.4
        assert isinstance(outcome, Failure)
        assert (outcome.fault, outcome.may_be_paid) == (Fault.BROKEN, True)
        assert outcome.message == "no whole reply within 0.4 s"
        assert len(server.requests) == 1


def test_cancelling_breaks_the_connection() -> None:
    with prepared(Trouble(silent_seconds=30.0)) as (server, exchange):
        token = CancelToken()
        worker = spawn("caller", lambda: called(exchange, 20.0, token))
        while not server.requests:
            time.sleep(0.01)
        begun = time.monotonic()
        token.cancel("enough")
        assert worker.join(2)
        assert time.monotonic() - begun < 1.4
        with pytest.raises(Cancelled, match="enough"):
            worker.result()


def test_nothing_is_sent_once_it_is_cancelled() -> None:
    with prepared(FINE) as (server, exchange):
        token = CancelToken()
        token.cancel()
        with pytest.raises(Cancelled):
            called(exchange, 5.0, token)
        assert server.requests == []


def test_what_blocks_for_ever_is_told_to_stop_and_left_behind() -> None:
    release = threading.Event()
    told = threading.Event()
    try:
        worker = run_until("stuck", release.wait, deadline=Deadline.after(0.1), token=CancelToken(), stop=told.set)
        assert worker.is_alive
        assert told.is_set()
    finally:
        release.set()


def test_what_ends_in_time_is_not_told_to_stop() -> None:
    told = threading.Event()
    worker = run_until("quick", lambda: 42, deadline=Deadline.after(5), token=CancelToken(), stop=told.set)
    assert worker.result() == 42
    assert not told.is_set()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0.4 s"), (9, "9 s"), (90, "90 s"), (600, "10 min"), (7200, "2 h"), (93_600, "26 h")],
)
def test_durations_are_shown_for_people(seconds: float, text: str) -> None:
    assert shown_duration(seconds) == text


def test_a_moment_far_away_can_be_shown_too() -> None:
    assert shown_moment(1e18).endswith(" UTC")
