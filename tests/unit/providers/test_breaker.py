"""The circuit breaker for threads: who waits, who goes on, and what an operator is told."""

from __future__ import annotations

import time

import pytest

from orchestrator.domain.model_access import KeySource
from orchestrator.errors import Cancelled, ModelUnavailable
from orchestrator.llm.providers.breaker import Breaker, Breakers
from orchestrator.llm.providers.circuit import Pace
from orchestrator.llm.providers.wire import Failure, Fault
from orchestrator.runtime.workers import CancelToken, spawn

DOWN = Failure(fault=Fault.OUTAGE, message="HTTP 500: oh no")


class Caller:
    """Takes turns at one breaker."""

    def __init__(self, pace: Pace | None = None, *, outage_seconds: float = 60.0) -> None:
        self.breaker = Breaker("http://server", pace)
        self.token = CancelToken()
        self.notes: list[str] = []
        self._outage_seconds = outage_seconds

    def take(self, failure: Failure | None, *, left_seconds: float = 60.0) -> float:
        """One call that ends so; returns how long the breaker was waited for."""
        with self.breaker.turn(
            left_seconds=left_seconds, outage_seconds=self._outage_seconds, token=self.token, note=self.notes.append
        ) as turn:
            turn.ended(failure)
        return turn.waited_seconds

    def open(self) -> None:
        for _ in range(5):
            self.take(DOWN)
        assert self.breaker.is_open


def test_all_who_wait_go_on_when_a_probe_is_answered() -> None:
    caller = Caller(Pace(first_pause=0.3))
    caller.open()
    workers = [spawn("caller", lambda: caller.take(None)) for _ in range(5)]
    assert all(worker.join(5) for worker in workers)
    assert all(worker.result() > 0.1 for worker in workers)
    assert not caller.breaker.is_open
    assert len(caller.notes) == 2
    assert caller.notes[0].startswith(
        "http://server has failed 5 times in a row (last: HTTP 500: oh no); the run waits"
    )
    assert caller.notes[1].startswith("http://server answers again, after ")


def test_all_who_wait_give_up_when_the_outage_is_longer_than_anybody_waits() -> None:
    caller = Caller(Pace(first_pause=30.0), outage_seconds=0.4)
    caller.open()
    workers = [spawn("caller", lambda: caller.take(None)) for _ in range(5)]
    assert all(worker.join(5) for worker in workers)
    for worker in workers:
        with pytest.raises(ModelUnavailable, match=r"served nothing for 0.4.* s \(last: HTTP 500: oh no\); try again"):
            worker.result()


def test_an_operator_hears_of_it_again_and_again_while_it_lasts() -> None:
    caller = Caller(Pace(first_pause=30.0, note_every=0.2), outage_seconds=1.0)
    caller.open()
    workers = [spawn("caller", lambda: caller.take(None)) for _ in range(4)]
    assert all(worker.join(5) for worker in workers)
    assert 3 <= len(caller.notes) <= 6  # not four times as often for four threads
    assert all("has served nothing for" in note and "for at most another" in note for note in caller.notes[1:])


def test_cancelling_reaches_who_waits() -> None:
    caller = Caller(Pace(first_pause=30.0))
    caller.open()
    worker = spawn("caller", lambda: caller.take(None))
    begun = time.monotonic()
    caller.token.cancel("enough")
    assert worker.join(5)
    assert time.monotonic() - begun < 1.5
    with pytest.raises(Cancelled, match="enough"):
        worker.result()


def test_a_probe_that_comes_to_nothing_leaves_its_place_to_another() -> None:
    caller = Caller(Pace(first_pause=0.05))
    caller.open()

    def crash() -> None:
        with caller.breaker.turn(
            left_seconds=9, outage_seconds=9, token=caller.token, note=caller.notes.append
        ) as turn:
            assert turn.is_probe
            raise KeyError("no word on the server")

    with pytest.raises(KeyError):
        crash()
    assert caller.breaker.is_open
    assert caller.take(None) < 1.0
    assert not caller.breaker.is_open


def test_a_refusal_is_an_answer() -> None:
    caller = Caller()
    for fault in (Fault.ACCESS, Fault.REQUEST, Fault.CONTEXT, Fault.PARAMETER):
        for _ in range(4):
            caller.take(DOWN)
        caller.take(Failure(fault=fault, message="no"))
    assert not caller.breaker.is_open


def test_a_wait_that_is_longer_than_there_is_time_for_is_not_begun() -> None:
    caller = Caller()
    caller.take(Failure(fault=Fault.RATE, message="HTTP 429", retry_after=3600.0))
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"asks to wait for another 60 min.* try again from 20\d\d-.* on$"):
        caller.take(None, left_seconds=1800.0)
    assert time.monotonic() - begun < 1.0


def test_waiting_for_a_rate_is_not_waiting_out_an_outage() -> None:
    caller = Caller()
    caller.take(Failure(fault=Fault.RATE, message="HTTP 429", retry_after=0.3))
    begun = time.monotonic()
    assert caller.take(None) == 0.0
    assert time.monotonic() - begun >= 0.25


def test_there_is_one_breaker_for_a_server_and_a_key() -> None:
    breakers = Breakers()
    one = breakers.of("http://a", KeySource(env="A"))
    assert breakers.of("http://a", KeySource(env="A")) is one
    assert breakers.of("http://a", KeySource(env="B")) is not one
    assert breakers.of("http://b", KeySource(env="A")) is not one
    assert breakers.of("http://a", None) is not one
