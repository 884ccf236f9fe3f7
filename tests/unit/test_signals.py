"""Ctrl-C and SIGTERM stop a process by asking."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from orchestrator.errors import Cancelled
from orchestrator.runtime.signals import cancelled_by_signals
from orchestrator.runtime.workers import CancelToken


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_token_and_names_itself(number: signal.Signals) -> None:
    token = CancelToken()

    def run() -> None:
        with cancelled_by_signals(token):
            os.kill(os.getpid(), number)
            token.wait(30)

    with pytest.raises(Cancelled, match=f"stopped by {number.name}"):
        run()


def test_a_signal_while_the_tokens_lock_is_held_cannot_deadlock() -> None:
    token = CancelToken()
    with cancelled_by_signals(token):
        with token.on_cancel(lambda: None):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # takes and releases the lock all the time
                with token.on_cancel(lambda: None):
                    pass
        with pytest.raises(Cancelled):
            token.wait(30)


def test_an_impatient_second_signal_interrupts() -> None:
    token = CancelToken()

    def run() -> None:
        with cancelled_by_signals(token):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        run()


def test_the_earlier_handlers_come_back_and_no_thread_stays() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with cancelled_by_signals(CancelToken()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert "signals" not in {thread.name for thread in threading.enumerate()}
