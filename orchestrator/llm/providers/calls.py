"""One call of a provider, which a deadline or an operator can end at any moment, whatever the SDK waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from orchestrator.errors import Cancelled, CancelledUnpaid
from orchestrator.llm.providers.durations import shown_duration
from orchestrator.llm.providers.wire import Exchange, Failure, Fault, Gathered
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken, Worker, spawn

T = TypeVar("T")
_END_SECONDS = 0.25
"""For a thread to end once it has been told to; afterwards it is left alone: it keeps nobody from anything."""

Reading = Callable[[Exception, bool], Failure]
"""What an exception means; whether the server had begun to answer is the second argument."""


@contextmanager
def nothing_in_flight() -> Iterator[None]:
    """Within the block, an operator's stop comes while nothing has been sent that could cost.

    Raises:
        CancelledUnpaid: Somebody asked to stop.
    """
    try:
        yield
    except Cancelled as error:
        raise CancelledUnpaid(str(error)) from error


def call(
    exchange: Exchange, *, name: str, reading: Reading, deadline: Deadline, seconds: float, token: CancelToken
) -> Gathered | Failure:
    """Send a prepared request and take the whole reply.

    The SDK blocks for as long as bytes come, and longer in a name look-up; so it does in a thread of its own, while
    this one waits for whatever comes first. That nothing comes for too long is the SDK's own limit (`Wire.connect`).

    Args:
        exchange: Not yet begun; it is shut afterwards.
        name: Of the thread.
        reading: Reads exceptions.
        deadline: Of everything.
        seconds: How long that was, for the message.
        token: Ends the call.

    Returns:
        What came, or why not. Where the deadline passes and the request may have arrived, it may be paid for.

    Raises:
        CancelledUnpaid: Somebody asked to stop before it was begun.
        Cancelled: Somebody asked to stop before a whole reply was there.
        PrerequisiteError: The machine allows no further thread; nothing was sent.
    """
    worker = run_until(name, lambda: _received(exchange, reading), deadline=deadline, token=token, stop=exchange.shut)
    if not worker.is_alive:
        outcome = worker.result()
        if isinstance(outcome, Gathered) or not deadline.has_passed:
            return outcome
        if not outcome.may_be_paid and outcome.fault is not Fault.BROKEN:
            return outcome  # an error status, or no connection at all: nothing was begun that could cost
    return Failure(
        fault=Fault.BROKEN,
        message=f"no whole reply within {shown_duration(seconds)}",
        may_be_paid=True,
    )


def run_until(
    name: str,
    target: Callable[[], T],
    *,
    deadline: Deadline,
    token: CancelToken,
    stop: Callable[[], None] = lambda: None,
) -> Worker[T]:
    """Run something that blocks in a thread of its own, which may still run afterwards if the deadline has passed.

    Args:
        name: Of the thread.
        target: What blocks.
        deadline: For it to end.
        token: Ends the wait.
        stop: Told to make it end once it is not waited for any more; must not block.

    Raises:
        CancelledUnpaid: Somebody asked to stop before it was begun.
        Cancelled: Somebody asked to stop, and it had not ended.
        PrerequisiteError: The machine allows no further thread.
    """
    with nothing_in_flight():
        token.check()
    woken = threading.Event()
    ended = threading.Event()

    def run() -> T:
        try:
            return target()
        finally:
            ended.set()
            woken.set()

    worker = spawn(name, run)
    is_through = False
    try:
        with token.on_cancel(woken.set):
            woken.wait(deadline.remaining_seconds)
        is_through = ended.is_set()  # looked at once: what is stopped ends as well
    finally:
        if not is_through:
            stop()
    if not is_through:
        token.check()
    worker.join(_END_SECONDS)
    return worker


def _received(exchange: Exchange, reading: Reading) -> Gathered | Failure:
    try:
        for _ in exchange:
            pass
        return exchange.gathered()
    except Exception as error:  # noqa: BLE001 - whatever an SDK raises; it may hold the key, so it goes no further
        return reading(error, exchange.has_begun)
    finally:
        exchange.shut()
