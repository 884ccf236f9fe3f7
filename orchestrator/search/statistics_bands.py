"""What several runs have reached by then: the median of their best so far, and a band around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

QUARTILE_RUNS = 5
"""So many runs have quartiles worth showing; the band of fewer reaches from the lowest to the highest."""
BandKind = Literal["min-max", "interquartile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Steps over what was spent; each value holds until the next one."""

    kind: BandKind
    spent: tuple[float, ...]
    """Ascending, from the first amount at which every run has a value; empty: there is none."""
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def band_kind(runs: int) -> BandKind:
    """Which band so many runs are shown with."""
    return "interquartile" if runs >= QUARTILE_RUNS else "min-max"


def band_over(curves: Sequence[Sequence[tuple[float, float]]], kind: BandKind) -> Band:
    """Median and band of step curves; a run that has ended keeps its last value.

    Args:
        curves: One or more, each of (spent, value) pairs in ascending order of what was spent, the last of equal ones
            counting; one may be empty.
        kind: Of the band; quartiles are interpolated linearly (Hyndman & Fan 1996, definition 7).

    Raises:
        ValueError: There is no curve, or one is not in ascending order.
    """
    if not curves:
        msg = "a band is over one or more runs, got none"
        raise ValueError(msg)
    if not all(curves):
        return Band(kind=kind, spent=(), median=(), low=(), high=())
    spent = np.unique([x for curve in curves for x, _ in curve])
    spent = spent[spent >= max(curve[0][0] for curve in curves)]
    values = np.stack([_held(curve, spent) for curve in curves])
    shares = (0.25, 0.5, 0.75) if kind == "interquartile" else (0.0, 0.5, 1.0)
    low, median, high = np.quantile(values, shares, axis=0)
    rows = np.stack([low, median, high])
    changes = np.ones(spent.size, dtype=bool)
    changes[1:-1] = (rows[:, 1:-1] != rows[:, :-2]).any(axis=0)  # the end stays: it says how far the runs went
    return Band(
        kind=kind,
        spent=tuple(spent[changes].tolist()),
        median=tuple(median[changes].tolist()),
        low=tuple(low[changes].tolist()),
        high=tuple(high[changes].tolist()),
    )


def _held(curve: Sequence[tuple[float, float]], spent: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the curve's value at each amount, which is never below its first one."""
    own, values = np.array(curve, dtype=np.float64).T
    if (np.diff(own) < 0).any():
        msg = "a curve goes on with what was spent, so its amounts ascend"
        raise ValueError(msg)
    held: NDArray[np.float64] = values[np.searchsorted(own, spent, side="right") - 1]
    return held
