"""Softmax selection over utilities (EvoSQL, equation 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.search.memory import Entry, Evidence, Memory

T = TypeVar("T")


def softmax(utilities: Sequence[float] | NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Selection probabilities.

    Args:
        utilities: (n,) finite, higher is better; at least one.
        temperature: kappa, positive; towards 0 is greedy, towards infinity is uniform.

    Returns:
        (n,) probabilities that sum to 1.

    Raises:
        ValueError: There is no utility, one is not finite, or the temperature is not positive.
    """
    values = np.asarray(utilities, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        msg = "selection needs at least one utility, all finite"
        raise ValueError(msg)
    if not (temperature > 0 and np.isfinite(temperature)):
        msg = f"a temperature is positive and finite, got {temperature}"
        raise ValueError(msg)
    with np.errstate(over="ignore", under="ignore"):  # what is far below the best is 0, as it should be
        weights = np.exp((values - values.max()) / temperature)
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


def eligible(memory: Memory[T]) -> tuple[int, ...]:
    """Positions of the entries that may be shown to a generator: invalid ones only if there are no others."""
    valid = tuple(n for n, entry in enumerate(memory.entries) if entry.evidence is not Evidence.INVALID)
    return valid or tuple(range(len(memory)))


def draw_payload(
    memory: Memory[T],
    utilities: Sequence[float],
    rng: np.random.Generator,
    *,
    count: int,
    temperature: float,
) -> tuple[Entry[T], ...]:
    """Draw entries one after the other by softmax; copies of what was drawn leave the draw with it.

    Args:
        memory: At least one entry.
        utilities: In the order of its entries.
        rng: At the beginning of this draw's own stream.
        count: M, how many; fewer come if there are fewer different candidates.
        temperature: kappa, positive.

    Returns:
        Entries with different keys, in the order of drawing.
    """
    entries = memory.entries
    left = list(eligible(memory))
    drawn: list[Entry[T]] = []
    while left and len(drawn) < count:
        edges = np.cumsum(softmax([utilities[n] for n in left], temperature))
        place = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
        chosen = entries[left[min(place, len(left) - 1)]]
        drawn.append(chosen)
        left = [n for n in left if entries[n].key != chosen.key]
    return tuple(drawn)
