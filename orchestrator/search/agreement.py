"""The best entries of a memory, whether they agree, and the answer they give (EvoSQL, equation 10 and Algorithm 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from orchestrator.search.memory import Entry, Evidence, Memory
from orchestrator.search.utility import Weights, utilities

T = TypeVar("T")


class TieBreak(StrEnum):
    """Which of two entries with the same utility comes first; within a round always the lower index."""

    EARLIER = "earlier"
    """The one of the earlier round."""
    LATER = "later"
    """The one of the later round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a memory is assessed; the defaults are those of the paper's Table 5."""

    weights: Weights = field(default_factory=Weights)
    top: int = 16
    """K: how many entries are looked at."""
    stop_share: float = 0.9
    """pi: which share of them must agree; over 0 and at most 1."""
    tie_break: TieBreak = TieBreak.EARLIER


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment(Generic[T]):
    """A memory as it stands after a round."""

    utilities: tuple[float, ...]
    """In the order of the entries."""
    top: tuple[Entry[T], ...]
    """The best, best first."""
    outcome: str | None
    """What most confident ones among them gave; None: none is confident."""
    share: float
    """Which part of `top` that is, from 0 to 1."""
    is_stable: bool
    """Whether that is enough to stop."""
    answer: Entry[T]


def assess(memory: Memory[T], rules: Rules) -> Assessment[T]:
    """Lines 26 to 38 of Algorithm 1: utilities, TopK, early stop, and the answer if it is now.

    Raises:
        ValueError: The memory is empty.
    """
    values = utilities(memory, rules.weights)
    best = top_k(memory.entries, values, rules.top, rules.tie_break)
    outcome, share = agreement(best, rules.weights.threshold)
    return Assessment(
        utilities=values,
        top=best,
        outcome=outcome,
        share=share,
        is_stable=outcome is not None and share >= rules.stop_share,
        answer=answer(best),
    )


def top_k(
    entries: Sequence[Entry[T]], utilities: Sequence[float], count: int, tie_break: TieBreak = TieBreak.EARLIER
) -> tuple[Entry[T], ...]:
    """The entries of highest utility, best first; copies count as often as they are there.

    Args:
        entries: In any order.
        utilities: One per entry.
        count: At most so many come.
        tie_break: Between equal utilities.
    """
    sign = 1 if tie_break is TieBreak.EARLIER else -1
    pairs = zip(utilities, entries, strict=True)
    ranked = sorted(pairs, key=lambda pair: (-pair[0], sign * pair[1].round, pair[1].index))
    return tuple(entry for _, entry in ranked[:count])


def agreement(top: Sequence[Entry[T]], threshold: float) -> tuple[str | None, float]:
    """Equation (10): the outcome that most confident entries share, and the share of all of `top` that they are.

    Args:
        top: Best first; of outcomes with equally many entries the one that is met first counts.
        threshold: tau.

    Returns:
        None and 0 where no entry has that confidence.
    """
    counts = Counter(entry.outcome for entry in top if entry.confidence >= threshold)
    if not counts:
        return None, 0.0
    outcome, count = counts.most_common(1)[0]  # of equal counts the first met, which is the better ranked
    return outcome, count / len(top)


def answer(top: Sequence[Entry[T]]) -> Entry[T]:
    """The best entry of the dominant cluster: the outcome that most entries share, confident or not.

    Invalid entries count only if there are no others; between equally large clusters the better ranked one wins.

    Args:
        top: Best first, at least one.

    Raises:
        ValueError: It is empty.
    """
    if not top:
        msg = "there is no candidate to choose an answer from"
        raise ValueError(msg)
    valid = [entry for entry in top if entry.evidence is not Evidence.INVALID] or list(top)
    dominant, _ = Counter(entry.outcome for entry in valid).most_common(1)[0]
    return next(entry for entry in valid if entry.outcome == dominant)
