"""The jobs of the task: their distribution, drawn as far as a simulation needs them.

All times are multiples of 2^-16, so every sum of them that a simulation makes is exact, in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCENARIOS = ((0.85, 2), (0.85, 4), (0.95, 2), (0.95, 4), (0.95, 6))
"""(utilisation, allowance factor of the due dates)."""
MACHINES = 10
FEWEST_OPERATIONS, MOST_OPERATIONS = 2, 14
SHORTEST, LONGEST = 1, 99
COUNTED = range(500, 2500)
"""The jobs whose tardiness counts, numbered from 0; a simulation ends when the last of them is done."""
MOST_JOBS = 20_000
"""A simulation that has not ended when the last of these arrives is starved."""
MEAN_WORK = (FEWEST_OPERATIONS + MOST_OPERATIONS) / 2 * (SHORTEST + LONGEST) / 2 / MACHINES
"""Mean time that a job needs of each machine."""
RESOLUTION = 2.0**-16
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Consecutive jobs of one simulation."""

    arrivals: NDArray[np.float64]
    """(jobs,) times, none before an earlier one."""
    due_dates: NDArray[np.float64]
    """(jobs,) times."""
    operations: NDArray[np.int64]
    """(jobs,) number of operations, 1 to 255."""
    processing_times: NDArray[np.float64]
    """(sum of operations,) positive, job after job."""
    machines: NDArray[np.int64]
    """(sum of operations,) from 0; at most 254."""


def batches(seed: int, utilisation: float, allowance: int) -> Iterator[Batch]:
    """The jobs of a simulation, at most `MOST_JOBS`."""
    rng = np.random.default_rng(seed)
    clock = 0.0
    for _ in range(MOST_JOBS // BATCH):
        batch = _draw(rng, clock, MEAN_WORK / utilisation, allowance)
        clock = float(batch.arrivals[-1])
        yield batch


def _draw(rng: np.random.Generator, clock: float, interarrival: float, allowance: int) -> Batch:
    gaps = np.rint(rng.exponential(interarrival, BATCH) / RESOLUTION) * RESOLUTION
    operations = rng.integers(FEWEST_OPERATIONS, MOST_OPERATIONS + 1, BATCH)
    exists = np.arange(MOST_OPERATIONS) < operations[:, None]
    moves = rng.integers(1, MACHINES, exists.shape)  # from one machine to any other
    moves[:, 0] = rng.integers(0, MACHINES, BATCH)
    times = rng.integers(SHORTEST, LONGEST + 1, exists.shape)
    arrivals = clock + gaps.cumsum()
    return Batch(
        arrivals=arrivals,
        due_dates=arrivals + allowance * (times * exists).sum(axis=1),
        operations=operations,
        processing_times=times[exists].astype(np.float64),
        machines=(moves.cumsum(axis=1) % MACHINES)[exists],
    )
