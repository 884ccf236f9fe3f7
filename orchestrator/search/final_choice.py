"""Which of all candidates a search ends with, where a small error is not all that counts.

The rules work on the Pareto front of error against size. `paper` is the rule of AgenticEvolve (Peng et al., section
VI), which takes PySR's score (Cranmer 2023, arXiv:2305.01582) among the candidates of nearly the smallest error. Once
errors are at the level of round-off it prefers terms that do nothing, so `exact` takes the smallest candidate there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

MARGIN = 1.5
"""An error within this factor of the smallest counts as equally good."""
ROUND_OFF = 1e-11
"""With `exact`, errors (of data in single precision, relative to their variance) up to this are equally good, too."""


class Rule(StrEnum):
    """How the final candidate is chosen."""

    FITNESS = "fitness"
    """The highest fitness."""
    EXACT = "exact"
    """The smallest of those whose error is within the margin of the smallest error, or at round-off."""
    PAPER = "paper"
    """The highest score on the Pareto front, of those whose error is within the margin of the smallest error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the rules know of a candidate."""

    error: float
    """Finite; below zero counts as zero."""
    size: float
    """Finite."""


def choose(rule: Rule, candidates: Sequence[Measured]) -> int | None:
    """Position of the candidate that a rule takes; None: there are no candidates.

    Args:
        rule: Any but `FITNESS`, which needs no error and no size.
        candidates: From early to late; of two alike, the earlier one is taken.

    Raises:
        ValueError: The rule is `FITNESS`.
    """
    if rule is Rule.FITNESS:
        msg = "the rule 'fitness' chooses by fitness alone; take the candidate of the highest one"
        raise ValueError(msg)
    if not candidates:
        return None
    least = min(map(_error, candidates))
    if rule is Rule.EXACT:
        worst = max(MARGIN * least, ROUND_OFF)
        eligible = [place for place, candidate in enumerate(candidates) if _error(candidate) <= worst]
        return min(eligible, key=lambda place: candidates[place].size)
    front = pareto_front(candidates)
    scores = dict(zip(front, scores_of([candidates[place] for place in front]), strict=True))
    return max((place for place in front if _error(candidates[place]) <= MARGIN * least), key=scores.__getitem__)


def pareto_front(candidates: Sequence[Measured]) -> tuple[int, ...]:
    """Positions of those that no other candidate beats in error or size without being worse in the other.

    Args:
        candidates: From early to late; of those alike in both, the earliest is on the front.

    Returns:
        By growing size, and so by falling error.
    """
    front: list[int] = []
    for place in sorted(range(len(candidates)), key=lambda n: (candidates[n].size, _error(candidates[n]), n)):
        if not front or _error(candidates[place]) < _error(candidates[front[-1]]):
            front.append(place)
    return tuple(front)


def scores_of(front: Sequence[Measured]) -> tuple[float, ...]:
    """PySR's score of each: how much the logarithm of the error falls per unit of size added.

    Args:
        front: By growing size, with falling errors, as `pareto_front` has it.

    Returns:
        Positive, infinite where the error is zero; 0 for the smallest, which has no smaller one to be compared with.
    """
    scores = [0.0] if front else []
    for smaller, larger in pairwise(front):
        if _error(larger) == 0:
            scores.append(math.inf)
        else:
            fall = math.log(_error(smaller)) - math.log(_error(larger))
            scores.append(fall / (larger.size - smaller.size))
    return tuple(scores)


def _error(candidate: Measured) -> float:
    return max(candidate.error, 0.0)
