"""Choosing from, and measuring, independent samples: the baselines Maj@K, Avg@K, pass^K and Pass@K."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def majority(outcomes: Sequence[str | None]) -> int:
    """Maj@K (self-consistency, Wang et al. 2023, arXiv:2203.11171): place of the first sample of the largest cluster.

    Args:
        outcomes: One per sample, equal where samples gave the same; None: invalid. Of clusters of equal size the one
            with the lowest place wins.

    Returns:
        0 if all are invalid.

    Raises:
        ValueError: There is no sample.
    """
    if not outcomes:
        msg = "a majority needs at least one sample"
        raise ValueError(msg)
    counts = Counter(outcome for outcome in outcomes if outcome is not None)
    return outcomes.index(counts.most_common(1)[0][0]) if counts else 0


def average_at_k(correct: Sequence[bool]) -> float:
    """Avg@K of one problem: the share of its samples that are right.

    Raises:
        ValueError: There is no sample.
    """
    if not correct:
        msg = "an average needs at least one sample"
        raise ValueError(msg)
    return sum(correct) / len(correct)


def pass_at_k(correct: Sequence[bool]) -> bool:
    """Pass@K of one problem: whether any sample is right."""
    return any(correct)


def pass_hat_k(correct: Sequence[bool]) -> bool:
    """pass^K of one problem (Yao et al. 2024, arXiv:2406.12045): whether all samples are right, and there is one."""
    return bool(correct) and all(correct)
