"""How two agents differ on the same questions, with a paired bootstrap that resamples groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.search.resampling import group_numbers, percentile_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How much more often one agent is right than another, in shares from -1 to 1."""

    difference: float
    low: float
    """Ends of the interval in which 95 % of the resampled differences lie."""
    high: float
    questions: int
    groups: int
    """With a single one there is nothing to resample, and the interval has no width."""

    @property
    def half_width(self) -> float:
        """Half the distance of the ends."""
        return (self.high - self.low) / 2


def paired_difference(
    first: Sequence[bool],
    other: Sequence[bool],
    groups: Sequence[Hashable],
    *,
    generator: np.random.Generator,
    resamples: int = 10_000,
) -> PairedDifference:
    """The difference in accuracy of two agents with its percentile interval (Efron & Tibshirani 1993).

    As many groups as there are get drawn with replacement, each with all its questions; a resampled difference is that
    of the accuracies over the questions drawn.

    Args:
        first: (n,) whether the agent whose advantage counts as positive is right; at least one question.
        other: (n,) whether the other one is, on the same questions.
        groups: (n,) equal where questions are no independent evidence, for instance (database, gold query).
        generator: Draws the resamples.
        resamples: At least 1.

    Raises:
        ValueError: There is no question, lengths differ, or there is no resample.
    """
    count = len(first)
    if not count or not len(other) == len(groups) == count:
        msg = f"both agents answer the same questions, at least one: got {count}, {len(other)}, {len(groups)} groups"
        raise ValueError(msg)
    if resamples < 1:
        msg = f"an interval needs at least one resample, got {resamples}"
        raise ValueError(msg)
    gains = np.asarray(first, dtype=np.int64) - np.asarray(other, dtype=np.int64)
    numbers = group_numbers(groups)
    gain, size = np.zeros(numbers.max() + 1, np.int64), np.bincount(numbers)
    np.add.at(gain, numbers, gains)
    # Groups of equal gain and size are interchangeable, so one multinomial draw over those kinds does for all of them.
    kinds = Counter(zip(gain.tolist(), size.tolist(), strict=True))
    figures = np.array(list(kinds))
    drawn = generator.multinomial(len(size), np.array(list(kinds.values())) / len(size), size=resamples) @ figures
    low, high = percentile_interval(drawn[:, 0] / drawn[:, 1])
    return PairedDifference(
        difference=int(gains.sum()) / count, low=float(low), high=float(high), questions=count, groups=len(size)
    )
