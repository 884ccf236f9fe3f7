"""Two groups of independent runs: how much they differ, and whether chance alone would do.

A difference comes with a percentile bootstrap interval (Efron & Tibshirani 1993, section 13.3) and with the rank test
of Mann & Whitney (1947). Nothing here says which direction is better; give values of which higher is better, or read
the signs accordingly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from orchestrator.search.resampling import percentile_interval

RESAMPLES = 10_000
EXACT_PAIRS = 10_000
"""From more pairs of values on, a p-value comes from the normal approximation, which is good long before that."""
LARGEST = 1e150
"""Of what a value may be in size: squares, sums and their differences are then finite, too."""
PMethod = Literal["exact", "normal approximation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A group of values in figures."""

    n: int
    mean: float
    sd: float | None
    """Standard deviation with the divisor n - 1; None: a single value has none."""
    median: float
    low: float
    """The smallest value."""
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTest:
    """A two-sided Mann-Whitney U test."""

    u: float
    """In how many of the pairs, one value from each group, the first group's is higher; ties count half."""
    pairs: int
    p: float
    """Probability, were both groups drawn alike, of a U at least as far from the half of all pairs."""
    method: PMethod
    """Exact where no two values are equal; the normal approximation is corrected for ties and continuity."""

    @property
    def share(self) -> float:
        """The share of pairs in which the first group's value is higher, 0 to 1."""
        return self.u / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifference:
    """The first group's mean minus the other's."""

    difference: float
    low: float | None
    """Ends of the interval that holds 95 % of the resampled differences; None: a group is a single value."""
    high: float | None


def sample(values: Sequence[float]) -> Sample:
    """A group in figures.

    Args:
        values: (n,) finite and at most `LARGEST` in size, at least one.

    Raises:
        ValueError: There is none, or one is not finite or too large.
    """
    given = _checked(values)
    return Sample(
        n=given.size,
        mean=float(given.mean()),
        sd=float(given.std(ddof=1)) if given.size > 1 else None,
        median=float(np.median(given)),
        low=float(given.min()),
        high=float(given.max()),
    )


def rank_test(first: Sequence[float], other: Sequence[float]) -> RankTest:
    """Compare two groups by the ranks of their values.

    Args:
        first: (n,) finite values, at least one, whose being higher counts for U.
        other: (m,) likewise, of the other group.

    Raises:
        ValueError: A group is empty, or a value is not finite.
    """
    one, two = _checked(first), _checked(other)
    pairs = one.size * two.size
    has_ties = np.unique(np.concatenate([one, two])).size < one.size + two.size
    is_exact = not has_ties and pairs <= EXACT_PAIRS
    found = stats.mannwhitneyu(one, two, alternative="two-sided", method="exact" if is_exact else "asymptotic")
    return RankTest(
        u=float(found.statistic),
        pairs=pairs,
        p=float(found.pvalue),
        method="exact" if is_exact else "normal approximation",
    )


def mean_difference(
    first: Sequence[float], other: Sequence[float], *, generator: np.random.Generator, resamples: int = RESAMPLES
) -> MeanDifference:
    """The difference of means with its percentile interval; each group is resampled on its own.

    The interval is narrow for few values: it knows only what was drawn.

    Args:
        first: (n,) finite values, at least one.
        other: (m,) likewise.
        generator: Draws the resamples.
        resamples: At least 1.

    Raises:
        ValueError: A group is empty, a value is not finite, or there is no resample.
    """
    if resamples < 1:
        msg = f"an interval needs at least one resample, got {resamples}"
        raise ValueError(msg)
    one, two = _checked(first), _checked(other)
    difference = float(one.mean() - two.mean())
    if min(one.size, two.size) == 1:
        return MeanDifference(difference=difference, low=None, high=None)
    drawn = _resampled_means(one, generator, resamples) - _resampled_means(two, generator, resamples)
    low, high = percentile_interval(drawn)
    return MeanDifference(difference=difference, low=float(low), high=float(high))


def _resampled_means(
    values: NDArray[np.float64], generator: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """(resamples,) means of as many values as there are, drawn with replacement."""
    distinct, counts = np.unique(values, return_counts=True)
    drawn = generator.multinomial(values.size, counts / values.size, size=resamples)
    means: NDArray[np.float64] = drawn @ distinct / values.size
    return means


def _checked(values: Sequence[float]) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not (np.abs(given) <= LARGEST).all():
        msg = f"a group is one or more finite values of at most {LARGEST:g} in size, got {list(values)!r}"
        raise ValueError(msg)
    return given
