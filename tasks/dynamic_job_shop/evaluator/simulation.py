"""Event-driven simulation of one job shop, as a generator that stops at every decision."""

from __future__ import annotations

import math
from array import array
from collections.abc import Generator, Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arrivals import Batch
    from operations import Operations

Steps = Generator[tuple[float, list[int]], int, None]
"""Yields the time and the queue of a decision; is sent the position in the queue of the operation that starts."""


_NO_MORE, _STARVED = -1, -2
"""Instead of the first operation of a job after the last: all jobs count, or those that do should be done by now."""


class Starved(Exception):
    """A job that counts is still in the shop when the last of all jobs has arrived."""


class Simulation:
    """One shop, empty at time 0."""

    def __init__(
        self, jobs: Iterable[Batch], counted: range, operations: Operations, work: array[float], slots: range
    ) -> None:
        """Nothing happens before `steps`.

        Args:
            jobs: By arrival; taken as far as they are needed.
            counted: Numbers, from 0, of the jobs that the simulation is run for.
            operations: Shared by simulations; gets the operations of `jobs`.
            work: Shared by simulations; gets the sum of the processing times that wait at each machine.
            slots: Of the machines in `work`, one each.
        """
        self._jobs = iter(jobs)
        self._counted = counted
        self._operations = operations
        self._work = work
        self._slots = slots
        self._first_slot = slots.start
        self._queues: list[list[int]] = [[] for _ in slots]  # by arrival in the queue, then by number of the job
        self._is_idle = [True for _ in slots]
        self._running: list[tuple[float, int, int]] = []  # heap of (end, machine, operation)
        self._last: dict[int, int] = {}  # last operation of counted jobs in the shop, to their place in `tardiness`
        self.tardiness = array("d", [math.nan]) * len(counted)
        """Of the counted jobs; NaN: not done yet."""

    def steps(self) -> Steps:
        """Machines choose in the order of their index; where a single operation waits, there is nothing to choose.

        Raises:
            Starved: Jobs follow after the counted ones, and the last of them arrives while a counted one is there.
        """
        queues, is_idle, running = self._queues, self._is_idle, self._running
        operations, work, first_slot = self._operations, self._work, self._first_slot  # not its views, which change
        for now, machines in self._instants():
            for machine in machines:
                queue = queues[machine]
                if queue and is_idle[machine]:
                    position = (yield now, queue) if len(queue) > 1 else 0
                    operation = queue.pop(position)
                    time = operations.processing_time[operation]
                    work[first_slot + machine] -= time
                    is_idle[machine] = False
                    heappush(running, (now + time, machine, operation))

    def _instants(self) -> Iterator[tuple[float, list[int]]]:
        """(time, machines that may start something, by index), after all events of that time were applied."""
        running, arrivals = self._running, self._arrivals()
        arrival, first = next(arrivals)
        left = len(self._counted)
        while True:
            now = running[0][0] if running and running[0][0] < arrival else arrival
            machines: list[int] = []
            entering: list[int] = []
            while running and running[0][0] == now:
                left -= self._complete(now, machines, entering)
            while arrival == now:
                entering.append(first)
                arrival, first = next(arrivals)
            if not left:
                return
            if first == _STARVED:
                raise Starved
            if len(entering) > 1:
                entering.sort()
            for operation in entering:
                machines.append(self._enter(now, operation))
            if len(machines) > 1:
                machines.sort()  # one that is named twice has started something by then
            yield now, machines

    def _arrivals(self) -> Iterator[tuple[float, int]]:
        """(time, first operation) of every job, then infinity."""
        number = 0
        for batch in self._jobs:
            firsts = self._operations.add(batch, self._slots)
            for arrival, first, following in zip(batch.arrivals.tolist(), firsts, firsts[1:], strict=False):
                if number in self._counted:
                    self._last[following - 1] = number - self._counted.start
                number += 1
                yield arrival, first
        yield math.inf, _NO_MORE if number <= self._counted.stop else _STARVED

    def _complete(self, now: float, machines: list[int], entering: list[int]) -> bool:
        """Free the machine of the operation that ends next; whether a counted job is done with it."""
        _, machine, operation = heappop(self._running)
        self._is_idle[machine] = True
        machines.append(machine)
        if self._operations.remaining[operation] > 1:
            entering.append(operation + 1)
            return False
        number = self._last.pop(operation, None)
        if number is None:
            return False
        self.tardiness[number] = max(0.0, now - self._operations.due_date[operation])
        return True

    def _enter(self, now: float, operation: int) -> int:
        """Put an operation into the queue of its machine, and name that."""
        operations = self._operations
        machine = operations.machine[operation]
        self._queues[machine].append(operation)
        operations.queue_arrival[operation] = now
        self._work[self._first_slot + machine] += operations.processing_time[operation]
        return machine
