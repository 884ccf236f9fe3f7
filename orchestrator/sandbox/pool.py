"""Virgin containers that wait for their first frame, so that start-up is paid before anybody waits for it.

A container is handed out once and never comes back. What is handed out, has died or grown stale is replaced in the
background; the total is bounded.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from orchestrator.errors import EvolvariumError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.settings import Blueprint

MAX_WAITING = 32
REFILLERS = 2  # two start twice as fast as one; more only take turns on the engine's locks
_CHECK_SECONDS = 2.0
_PATIENCE_SECONDS = (1.0, 30.0)
_CLOSE_SECONDS = 90.0

Key = tuple[object, ...]


class Pool:
    """Keeps containers ready. Thread-safe; `close` it."""

    def __init__(self, launch: Callable[[Blueprint], Container]) -> None:
        """Start nothing yet.

        Args:
            launch: Makes one virgin container; blocking.
        """
        self._launch = launch
        self._changed = threading.Condition()  # guards everything below
        self._wanted: dict[Key, tuple[Blueprint, int]] = {}
        self._waiting: dict[Key, deque[Container]] = {}
        self._starting: Counter[Key] = Counter()
        self._worn: deque[Container] = deque()
        self._pause_seconds = 0.0
        self._paused_until = 0.0
        self._closing = False
        self._workers: list[Worker[None]] = []

    def want(self, blueprint: Blueprint, count: int) -> None:
        """Keep up to `count` containers of this kind ready; 0 gives them up. The total is at most `MAX_WAITING`."""
        with self._changed:
            others = sum(number for key, (_, number) in self._wanted.items() if key != blueprint.key)
            number = max(0, min(count, MAX_WAITING - others))
            self._wanted[blueprint.key] = (blueprint, number)
            waiting = self._waiting.setdefault(blueprint.key, deque())
            while len(waiting) > number:
                self._worn.append(waiting.popleft())
            if number and not self._workers and not self._closing:
                self._workers = [spawn(f"pool-{index}", self._refill) for index in range(REFILLERS)]
            self._changed.notify_all()

    def take(self, key: Key) -> Container | None:
        """A virgin container, which then belongs to the caller; None: none is ready."""
        with self._changed:
            waiting = self._waiting.get(key) or deque()
            self._changed.notify_all()
            while waiting:
                container = waiting.popleft()
                if container.is_virgin():
                    return container
                self._worn.append(container)
        return None

    def waiting(self, key: Key) -> int:
        """How many are ready."""
        with self._changed:
            return len(self._waiting.get(key) or ())

    def close(self) -> None:
        """Stop refilling and destroy every container that waits; idempotent.

        Raises:
            ExceptionGroup: Some could not be destroyed; the others are.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            left = [*self._worn, *(container for waiting in self._waiting.values() for container in waiting)]
            self._worn.clear()
            self._waiting.clear()
        failures: list[EvolvariumError] = []
        for container in left:
            try:
                container.destroy()
            except EvolvariumError as error:
                failures.append(error)
        if failures:
            msg = f"{len(failures)} waiting containers could not be removed; run `evolvarium sandbox prune`"
            raise ExceptionGroup(msg, failures)

    def _refill(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                self._retire()
                worn = self._worn.popleft() if self._worn else None
                blueprint = self._next() if worn is None else None
                if worn is None and blueprint is None:
                    self._changed.wait(_CHECK_SECONDS)
                    continue
            try:
                if worn is not None:
                    worn.destroy()
                elif blueprint is not None:
                    self._start(blueprint)
                self._succeeded()
            except EvolvariumError:
                self._failed()  # whoever asks for a session meets the error itself

    def _retire(self) -> None:
        for waiting in self._waiting.values():
            for container in [container for container in waiting if not container.is_virgin()]:
                waiting.remove(container)
                self._worn.append(container)

    def _next(self) -> Blueprint | None:
        """What is missing most, counted as being started; None: nothing, or starting has just failed."""
        if time.monotonic() < self._paused_until:
            return None
        missing = {
            key: number - len(self._waiting[key]) - self._starting[key] for key, (_, number) in self._wanted.items()
        }
        key = max(missing, key=lambda key: missing[key], default=None)
        if key is None or missing[key] <= 0:
            return None
        self._starting[key] += 1
        return self._wanted[key][0]

    def _start(self, blueprint: Blueprint) -> None:
        try:
            container = self._launch(blueprint)
        except BaseException:
            with self._changed:
                self._starting[blueprint.key] -= 1
            raise
        with self._changed:
            self._starting[blueprint.key] -= 1
            is_wanted = len(self._waiting[blueprint.key]) < self._wanted[blueprint.key][1] and not self._closing
            (self._waiting[blueprint.key] if is_wanted else self._worn).append(container)
            self._changed.notify_all()

    def _succeeded(self) -> None:
        with self._changed:
            self._pause_seconds = 0.0

    def _failed(self) -> None:
        shortest, longest = _PATIENCE_SECONDS
        with self._changed:
            self._pause_seconds = min(longest, max(shortest, 2 * self._pause_seconds))
            self._paused_until = time.monotonic() + self._pause_seconds
