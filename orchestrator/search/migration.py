"""Which of its ring neighbours' elites an island is shown (our decision; the AgenticEvolve paper leaves it open)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def select_migrants(
    pool: Sequence[T], *, fraction: float = 0.25, fitness: Callable[[T], float | None]
) -> tuple[T, ...]:
    """The best of the neighbours' pooled elites, best first; what an island has seen before is for the caller to omit.

    Args:
        pool: Elites of all neighbours. Ties go to the earlier one, so its order must not depend on timing.
        fraction: Which part of the scored ones is best, in (0, 1]; rounded down, but at least one.
        fitness: Finite, higher is better; None: it has no score and cannot migrate.

    Raises:
        ValueError: The fraction is out of its range, or a fitness is not finite.
    """
    if not 0 < fraction <= 1:
        msg = f"the fraction of elites that migrate lies in (0, 1], got {fraction}"
        raise ValueError(msg)
    scored = [(value, candidate) for candidate in pool if (value := fitness(candidate)) is not None]
    for value, candidate in scored:
        if not math.isfinite(value):
            msg = f"the fitness of {candidate!r} is {value}; only finite numbers can be ranked"
            raise ValueError(msg)
    scored.sort(key=lambda pair: -pair[0])  # stable: equal fitness keeps the order of the pool
    count = max(1, math.floor(len(scored) * fraction))
    return tuple(candidate for _, candidate in scored[:count])
