"""What bootstraps over groups share (the cluster bootstrap: Davison & Hinkley 1997, section 3.8).

Questions of one group, for instance those of one database with the same gold query, are no independent evidence: they
are drawn together or not at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""Of every interval: the share of the resampled values that lies in it."""


def group_numbers(groups: Iterable[Hashable]) -> NDArray[np.int64]:
    """(n,) numbers from 0, equal where groups are, in the order in which groups are first met."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)


def percentile_interval(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the middle 95 % of resampled values lie.

    Args:
        values: (resamples, ...) at least one.

    Returns:
        (2, ...) the lower and the upper end of each.
    """
    ends: NDArray[np.float64] = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return ends
