"""Online bin packing of many sequences at once, the Martello-Toth bound and the OR-Library's file format.

Plain NumPy without any container, so that the exact figures of the literature can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Chooser = Callable[["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"], "NDArray[np.float64]"]
"""(items, remaining, lengths) -> priorities.

`items` is (n,), one arriving item per sequence; `lengths` is (n,), the number of bins that fit it; `remaining` and
the priorities are (sum of lengths,), sequence after sequence.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """What became of every sequence."""

    bins: NDArray[np.int64]
    """(n,) number of bins used."""
    deviation: float
    """Share of all placements whose chosen remaining capacity differs from Best Fit's, 0 to 1."""


def pack(sequences: NDArray[np.int64], capacity: int, choose: Chooser) -> Packing:
    """Pack every sequence item by item; as many bins as items exist, empty, from the start.

    Args:
        sequences: (n, items) sizes between 1 and `capacity`.
        capacity: Of every bin.
        choose: Called once per step for all sequences together; its priorities must be finite.
    """
    count, steps = sequences.shape
    remaining = np.full((count, steps), capacity, dtype=np.int64)
    rows = np.arange(count)
    deviations = 0
    for items in sequences.T:
        fits = remaining >= items[:, None]
        priorities = np.full(remaining.shape, -np.inf)
        priorities[fits] = choose(items, remaining[fits], fits.sum(axis=1))
        chosen = priorities.argmax(axis=1)  # the first of the highest
        tightest = np.where(fits, remaining, capacity).min(axis=1)
        deviations += int((remaining[rows, chosen] != tightest).sum())
        remaining[rows, chosen] -= items
    return Packing(bins=(remaining < capacity).sum(axis=1), deviation=deviations / sequences.size)


def lower_bounds(sequences: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    """(n,) bound L2 of Martello and Toth (1990) on the number of bins of each of the (n, items) sequences.

    For alpha = 0 and every distinct size up to half the capacity: items over `capacity - alpha` (J1) and the other
    items over half the capacity (J2) need a bin each, and what the items from alpha to half the capacity (J3) do not
    find room for beside J2 needs more.
    """
    best = np.zeros(len(sequences), dtype=np.int64)
    large = 2 * sequences > capacity
    for alpha in range(capacity // 2 + 1):
        applies = (sequences == alpha).any(axis=1) | (alpha == 0)
        first = sequences > capacity - alpha
        second = large & ~first
        third = ~large & (sequences >= alpha)
        room = second.sum(axis=1) * capacity - (sequences * second).sum(axis=1)
        more = -((room - (sequences * third).sum(axis=1)) // capacity)  # ceil of (sum of J3 - room) / capacity
        bound = first.sum(axis=1) + second.sum(axis=1) + np.maximum(0, more)
        best = np.where(applies, np.maximum(best, bound), best)
    return best


def parse_or_library(text: str, *, capacity: int, items: int) -> NDArray[np.int64]:
    """(n, items) sizes of an OR-Library bin packing file.

    The file holds the number of instances, then for each its name, a line `capacity items best-known` and one size
    per line.

    Raises:
        ValueError: The file is empty, short, long or malformed, or an instance has another capacity or length.
    """
    words = iter(text.split())
    count = _integer(next(words, ""), "the number of instances", low=1, high=10_000)
    instances = [_instance(words, f"instance {number} of {count}", capacity, items) for number in range(1, count + 1)]
    extra = next(words, None)
    if extra is not None:
        msg = f"{extra!r} follows after the last of {count} instances"
        raise ValueError(msg)
    return np.array(instances, dtype=np.int64)


def _instance(words: Iterator[str], label: str, capacity: int, items: int) -> list[int]:
    header = list(islice(words, 4))
    if len(header) < 4:
        msg = f"the file ends before the header of {label}"
        raise ValueError(msg)
    found = tuple(_integer(word, f"a number in the header of {label}", low=1, high=10**6) for word in header[1:])
    if found[:2] != (capacity, items):
        msg = f"{label} ({header[0]}) has capacity {found[0]} and {found[1]} items; needed are {capacity} and {items}"
        raise ValueError(msg)
    sizes = [_integer(word, f"a size in {label}", low=1, high=capacity) for word in islice(words, items)]
    if len(sizes) < items:
        msg = f"the file ends after {len(sizes)} of {items} items of {label} ({header[0]})"
        raise ValueError(msg)
    return sizes


def _integer(word: str, what: str, *, low: int, high: int) -> int:
    if not (word.isascii() and word.isdigit() and low <= int(word[:12]) <= high):
        msg = f"{what} must be an integer from {low} to {high}, not {word[:40]!r}"
        raise ValueError(msg)
    return int(word)
