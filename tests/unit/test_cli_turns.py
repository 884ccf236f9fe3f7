"""At most so many evaluations and analyses run at once."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from orchestrator.bootstrap.turns import Turns
from orchestrator.errors import Cancelled
from orchestrator.runtime.workers import CancelToken, WorkerGroup


def test_no_more_than_the_places_are_taken_at_once() -> None:
    token, lock = CancelToken(), threading.Lock()
    turns = Turns(2, token)
    inside: list[int] = []
    most = 0

    def work(number: int) -> None:
        nonlocal most
        with turns.turn():
            with lock:
                inside.append(number)
                most = max(most, len(inside))
            token.wait(0.02)
            with lock:
                inside.remove(number)

    with WorkerGroup("turns", limit=6, token=token) as group:
        for number in range(6):
            group.spawn(str(number), partial(work, number))
    assert most == 2


def test_who_waits_for_a_turn_hears_that_somebody_asked_to_stop() -> None:
    token = CancelToken()
    turns = Turns(1, token)
    with turns.turn():
        token.cancel()
        with pytest.raises(Cancelled), turns.turn():
            pass


def test_a_place_is_given_back_when_its_holder_fails() -> None:
    turns = Turns(1, CancelToken())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn():
            _ = 1 / 0
