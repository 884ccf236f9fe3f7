"""Many job shops that advance independently, each from one decision to the next; a rule decides for all at once.

Plain Python and NumPy without any container, so that the simulation can be checked against theory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from operations import Operations
from simulation import Simulation

if TYPE_CHECKING:
    from arrivals import Batch
    from numpy.typing import NDArray

_OPERATIONS = 162_000
"""Of a simulation, at which no table has to grow: more than 20,000 jobs have. Memory that is not used costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """One decision in each of n simulations."""

    ids: Sequence[int]
    """The simulations."""
    lengths: NDArray[np.int64]
    """(n,) how many operations wait in each, at least 2."""
    now: NDArray[np.float64]
    """(n,) time in each."""
    attributes: dict[str, NDArray[Any]]
    """Name to (sum of lengths,) values, in the order of the queue, simulation after simulation."""


Rule = Callable[[Decisions], "NDArray[np.float64]"]
"""Gives (sum of lengths,) finite scores; of each queue the highest starts, the first of them on ties."""


class Shop:
    """Simulations of which each stands at a decision, or has ended since all counted jobs are done."""

    def __init__(self, jobs: Sequence[Iterable[Batch]], counted: range, machine_count: int) -> None:
        """Every simulation begins with an empty shop at time 0 and goes on to its first decision.

        Args:
            jobs: Of each simulation, by arrival; taken as far as they are needed.
            counted: Numbers, from 0, of the jobs that the simulations are run for.
            machine_count: At most 255.

        Raises:
            Starved: A simulation ends so before any decision.
        """
        self._operations = Operations(_OPERATIONS * len(jobs))
        slots = machine_count + 1  # one more that stays 0, for operations that are the last of their job
        work = array("d", bytes(8 * slots * len(jobs)))
        self._work = np.frombuffer(work)
        self._simulations = [
            Simulation(stream, counted, self._operations, work, range(slots * number, slots * (number + 1) - 1))
            for number, stream in enumerate(jobs)
        ]
        self._steps = [simulation.steps() for simulation in self._simulations]
        self._standing = [next(steps, None) for steps in self._steps]

    def __len__(self) -> int:
        """Number of simulations, also of those that have ended."""
        return len(self._steps)

    def live(self, ids: Iterable[int]) -> list[int]:
        """Those of these simulations that stand at a decision."""
        return [number for number in ids if self._standing[number] is not None]

    def decisions(self, ids: Iterable[int]) -> Decisions:
        """Where these simulations stand; those that have ended are left out."""
        standing = [(number, *stand) for number in ids if (stand := self._standing[number]) is not None]
        waiting: list[int] = []
        for _, _, queue in standing:
            waiting += queue
        operations = np.array(waiting, dtype=np.intp)
        time, work, count, due, arrival, following, queued = self._operations.attributes.take(operations, axis=1)
        return Decisions(
            ids=[number for number, _, _ in standing],
            lengths=np.array([len(queue) for _, _, queue in standing], dtype=np.int64),
            now=np.array([now for _, now, _ in standing], dtype=np.float64),
            attributes={
                "processing_time": time,
                "remaining_work": work,
                "remaining_operations": count.astype(np.int64),
                "due_date": due,
                "job_arrival": arrival,
                "queue_arrival": queued,
                "next_time": following,
                "winq": self._work.take(self._operations.next_slots.take(operations)),
            },
        )

    def start(self, ids: Iterable[int], positions: Iterable[int]) -> None:
        """Start what was chosen, and go on to each simulation's next decision or its end.

        Args:
            ids: Simulations that stand at a decision.
            positions: Of the chosen operation in the queue of each.

        Raises:
            Starved: A simulation ends so.
        """
        for number, position in zip(ids, positions, strict=True):
            try:
                self._standing[number] = self._steps[number].send(position)
            except StopIteration:
                self._standing[number] = None

    @property
    def tardiness(self) -> NDArray[np.float64]:
        """(n, counted) of each counted job; NaN: it is not done."""
        return np.array([simulation.tardiness for simulation in self._simulations])


def first_best(scores: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.intp]:
    """(n,) position of the highest score in each queue, of the first one on ties.

    Args:
        scores: (sum of lengths,) finite.
        lengths: (n,) positive.
    """
    starts = np.cumsum(lengths) - lengths
    best = np.flatnonzero(scores == np.maximum.reduceat(scores, starts).repeat(lengths))
    positions: NDArray[np.intp] = best[best.searchsorted(starts)] - starts
    return positions
