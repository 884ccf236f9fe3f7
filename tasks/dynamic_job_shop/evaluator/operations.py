"""What is known of the operations of all simulations, numbered through in the order in which they become known.

NumPy gathers it for many operations at once; views of the same memory read and write single elements, which is what
arrays are slow at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from arrivals import Batch
    from numpy.typing import NDArray

PROCESSING_TIME, REMAINING_WORK, REMAINING_OPERATIONS, DUE_DATE, JOB_ARRIVAL, NEXT_TIME, QUEUE_ARRIVAL = range(7)
"""Rows of `Operations.attributes`."""


class Operations:
    """A table that grows; it is written by `add`, and `queue_arrival` by the simulations.

    Whoever keeps one of its attributes must take it anew after `add`.
    """

    def __init__(self, capacity: int) -> None:
        """An empty table.

        Args:
            capacity: Operations that it holds before it has to be copied to a larger place; positive.
        """
        self.size = 0
        self.attributes: NDArray[np.float64] = np.zeros((7, capacity))
        """(7, capacity); no more than `size` columns are in use."""
        self.next_slots: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        """(capacity,) where the work that waits at the next operation's machine is found."""
        self._machines = np.zeros(capacity, dtype=np.uint8)
        self._remaining = np.zeros(capacity, dtype=np.uint8)
        self._view()

    def add(self, batch: Batch, slots: range) -> list[int]:
        """Add the operations of a simulation's next jobs.

        Args:
            batch: The jobs.
            slots: Of the simulation's machines; the one after these stands for no machine.

        Returns:
            (jobs + 1,) the first operation of every job, and the first that would follow.
        """
        times, ends = batch.processing_times, np.cumsum(batch.operations)
        job_of = np.repeat(np.arange(len(ends)), batch.operations)
        remaining = ends[job_of] - np.arange(len(times))
        is_last = remaining == 1
        done = np.cumsum(times)
        begin, end = self.size, self.size + len(times)
        self._reserve(end)
        self.attributes[:, begin:end] = (
            times,
            done[ends - 1][job_of] - done + times,
            remaining,
            batch.due_dates[job_of],
            batch.arrivals[job_of],
            np.where(is_last, 0.0, np.roll(times, -1)),
            np.zeros(len(times)),
        )
        self.next_slots[begin:end] = slots.start + np.where(is_last, len(slots), np.roll(batch.machines, -1))
        self._machines[begin:end] = batch.machines
        self._remaining[begin:end] = remaining
        self.size = end
        return [begin, *(begin + ends).tolist()]

    def _reserve(self, size: int) -> None:
        capacity = len(self.next_slots)
        if size <= capacity:
            return
        more = max(capacity, size - capacity)
        self.attributes = np.pad(self.attributes, ((0, 0), (0, more)))
        self.next_slots = np.pad(self.next_slots, (0, more))
        self._machines = np.pad(self._machines, (0, more))
        self._remaining = np.pad(self._remaining, (0, more))
        self._view()

    def _view(self) -> None:
        self.processing_time = cast("memoryview[float]", self.attributes[PROCESSING_TIME].data)
        self.due_date = cast("memoryview[float]", self.attributes[DUE_DATE].data)
        self.queue_arrival = cast("memoryview[float]", self.attributes[QUEUE_ARRIVAL].data)
        self.machine = self._machines.data
        self.remaining = self._remaining.data
