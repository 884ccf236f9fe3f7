"""Threads: nothing else in the project creates any.

A `Worker` is one thread with a result. A `WorkerGroup` owns threads that must end with a block. Threads are stopped by
asking: a `CancelToken` is what they look at and wait on, and what kills a container from another thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from orchestrator.errors import Cancelled, PrerequisiteError
from orchestrator.runtime.deadlines import Deadline

T = TypeVar("T")
_SLICE_SECONDS = 0.5


class CancelToken:
    """A wish to stop that any thread may utter, once and for good. Thread-safe, but not for signal handlers.

    A signal handler runs between two instructions of a thread that may hold the token's lock; use
    `runtime.signals.cancelled_by_signals` there.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()  # guards _callbacks, and that each of them is called exactly once
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._reason = ""

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    @property
    def reason(self) -> str:
        """Why; empty while nobody asked."""
        return self._reason

    def cancel(self, reason: str = "an operator asked to stop") -> None:
        """Ask to stop; the first call wins, later ones do nothing. Runs the callbacks in this thread.

        Raises:
            ExceptionGroup: Callbacks failed; the others have run nevertheless.
        """
        with self._lock:
            if self._event.is_set():
                return
            self._reason = reason
            self._event.set()
            callbacks = list(self._callbacks.values())
        failures = []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - one that fails must not keep the others from running
                failures.append(error)
        if failures:
            msg = f"{len(failures)} callbacks failed while cancelling ({reason})"
            raise ExceptionGroup(msg, failures)

    def check(self) -> None:
        """Return unless cancelled.

        Raises:
            Cancelled: Somebody asked to stop.
        """
        if self._event.is_set():
            raise Cancelled(self._reason)

    def wait(self, seconds: float) -> None:
        """Sleep, unless somebody asks to stop.

        Args:
            seconds: Finite; 0 or less only checks.

        Raises:
            Cancelled: Somebody asked to stop, before or meanwhile.
        """
        self._event.wait(max(0.0, seconds))
        self.check()

    @contextmanager
    def on_cancel(self, callback: Callable[[], object]) -> Iterator[None]:
        """Within the block, cancelling calls `callback` once, in the cancelling thread; at once if cancelled already.

        A callback that has begun may still be running when the block ends.
        """
        key = object()
        with self._lock:
            cancelled_before = self._event.is_set()
            if not cancelled_before:
                self._callbacks[key] = callback
        if cancelled_before:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)


class Worker(Generic[T]):
    """One thread and what came of it; made by `spawn`."""

    def __init__(self, name: str, target: Callable[[], T], ended: Callable[[Worker[T]], object] | None = None) -> None:
        self.name = name
        self._target = target
        self._ended = ended
        self._value: T | None = None
        self._error: BaseException | None = None
        # A daemon, so that a thread stuck in a call that never returns cannot keep the process from exiting.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            msg = f"this machine allows no further thread for {name!r}; raise its process limit (ulimit -u)"
            raise PrerequisiteError(msg) from error

    def _run(self) -> None:
        try:
            self._value = self._target()
        except BaseException as error:  # noqa: BLE001 - kept for `result`, where the owner meets it
            self._error = error
        finally:
            if self._ended is not None:
                self._ended(self)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        """What it raised; None: nothing, or it still runs."""
        return self._error

    def join(self, timeout_seconds: float) -> bool:
        """Wait at most this long; whether it has ended."""
        self._thread.join(max(0.0, timeout_seconds))
        return not self._thread.is_alive()

    def result(self) -> T:
        """What the target returned.

        Raises:
            BaseException: What the target raised.
            RuntimeError: It has not ended; `join` it first.
        """
        if self._thread.is_alive():
            msg = f"worker {self.name!r} has not ended; join it before asking for its result"
            raise RuntimeError(msg)
        if self._error is not None:
            raise self._error
        return cast("T", self._value)  # None only where the target returned it


def spawn(name: str, target: Callable[[], T]) -> Worker[T]:
    """Run `target` in a thread of its own.

    Args:
        name: Shown in thread dumps and messages.
        target: Its return value or exception is kept for `Worker.result`.

    Raises:
        PrerequisiteError: The machine allows no further thread.
    """
    return Worker(name, target)


class WorkerGroup:
    """Workers that all end with the block; the first that fails stops the others.

    Leaving the block waits for the workers. When a worker or the block raises, or `token` is cancelled, the group's
    own token is cancelled, the workers get `stop_seconds` to end, and the first failure is raised (`Cancelled` only
    if there is no other).
    """

    def __init__(
        self,
        name: str,
        *,
        limit: int,
        token: CancelToken,
        stop_seconds: float = 60.0,
        patience_seconds: float = 30 * 86400.0,
    ) -> None:
        """Create an empty group.

        Args:
            name: For messages.
            limit: At most this many workers live at once; positive. Workers that wait for each other must all fit.
            token: Cancels the group; the workers look at `group.token`.
            stop_seconds: How long cancelled workers may take to end.
            patience_seconds: How long workers may take when nothing is wrong; then they are cancelled.
        """
        if limit < 1:
            msg = f"worker group {name!r} needs a positive limit, got {limit}"
            raise ValueError(msg)
        self.name = name
        self.token = CancelToken()
        self._outer = token
        self._following = ExitStack()
        self._places = threading.Semaphore(limit)
        self._changed = threading.Condition()  # guards the three below
        self._workers: list[Worker[Any]] = []
        self._running = 0
        self._failures: list[BaseException] = []
        self._stop_seconds = stop_seconds
        self._patience_seconds = patience_seconds

    def spawn(self, name: str, target: Callable[[], T]) -> Worker[T]:
        """Start a worker; waits until there is a place for it.

        Raises:
            Cancelled: The group was cancelled.
            PrerequisiteError: The machine allows no further thread.
        """
        self.token.check()
        while not self._places.acquire(timeout=_SLICE_SECONDS):
            self.token.check()
        try:
            self.token.check()
            with self._changed:  # a worker that is through at once waits here in _ended until it is counted
                worker = Worker(f"{self.name}/{name}", target, self._ended)
                self._workers = [other for other in self._workers if other.is_alive]
                self._workers.append(worker)
                self._running += 1
        except BaseException:
            self._places.release()
            raise
        return worker

    def _ended(self, worker: Worker[T]) -> None:
        try:
            if worker.error is not None:
                self._keep(worker.error)
                self.token.cancel(f"{worker.name} failed")
        except ExceptionGroup as error:
            self._keep(error)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
            self._places.release()

    def _keep(self, failure: BaseException) -> None:
        with self._changed:
            self._failures.append(failure)

    def __enter__(self) -> Self:
        self._following.enter_context(self._outer.on_cancel(lambda: self.token.cancel(self._outer.reason)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all workers, or stop them."""
        with self._following:
            try:
                if error is None:
                    self._wait_while_well(Deadline.after(self._patience_seconds))
            finally:  # also on an interrupt from the keyboard while waiting
                self._stop()
        if error is None:
            self._raise_failure()

    def _wait_while_well(self, deadline: Deadline) -> None:
        with self._changed:
            while self._running and not self.token.is_cancelled and not deadline.has_passed:
                self._changed.wait(deadline.at_most(_SLICE_SECONDS))

    def _stop(self) -> None:
        with self._changed:
            workers, running = list(self._workers), self._running
        if running:
            self.token.cancel(f"the block of worker group {self.name!r} ended")
        deadline = Deadline.after(self._stop_seconds)
        stuck = [worker.name for worker in workers if not worker.join(deadline.remaining_seconds)]
        if stuck:
            msg = f"workers did not end within {self._stop_seconds:g} s of being cancelled: {', '.join(stuck)}"
            raise RuntimeError(msg)

    def _raise_failure(self) -> None:
        with self._changed:
            failures = list(self._failures)
        for failure in [*(f for f in failures if not isinstance(f, Cancelled)), *failures]:
            raise failure
        self.token.check()
