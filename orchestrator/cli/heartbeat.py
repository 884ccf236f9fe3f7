"""A sign of life: something is said at least every half minute while a command works, and no line without a reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from orchestrator.errors import Cancelled
from orchestrator.runtime.workers import CancelToken, spawn

SILENCE_SECONDS = 30.0
_TICK_SECONDS = 1.0


class Heartbeat:
    """Says how things stand after a silence. Thread-safe."""

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        """The silence begins.

        Args:
            say: Prints one line.
            clock: Seconds, monotonic.
        """
        self._say = say
        self._clock = clock
        self._began = self._last = clock()
        self._lock = threading.Lock()  # guards _last: lines are said by the workers, and by whoever beats

    def said(self) -> None:
        """Something else was said: the silence begins anew."""
        with self._lock:
            self._last = self._clock()

    def beat(self, standing: Callable[[], str]) -> None:
        """Say "after 1 min 30 s: ..." if nothing has been said for `SILENCE_SECONDS`.

        Args:
            standing: How things stand, in words; only asked for when it is said.
        """
        now = self._clock()
        with self._lock:
            if now - self._last < SILENCE_SECONDS:
                return
            self._last = now
        self._say(f"after {duration(now - self._began)}: {standing()}")


@contextmanager
def repeated(name: str, action: Callable[[], object]) -> Iterator[None]:
    """Within the block, do something every second, in a thread that ends with it."""
    token = CancelToken()

    def tick() -> None:
        with suppress(Cancelled):
            while True:
                token.wait(_TICK_SECONDS)
                action()

    worker = spawn(name, tick)
    try:
        yield
    finally:
        token.cancel()
        worker.join(5)


def duration(seconds: float) -> str:
    """A time as people say it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
