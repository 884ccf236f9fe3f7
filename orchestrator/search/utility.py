"""How much a remembered candidate is worth: confidence, its age, and who agrees with it (EvoSQL, equations 5 to 8)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.search.memory import Entry, Evidence, Memory

T = TypeVar("T")
INVALID_CONFIDENCE = -1.0
EMPTY_CONFIDENCE = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The constants of the utility; the defaults are those of the paper's Table 5.

    Raises:
        ValueError: One is out of its range.
    """

    discount: float = 0.9
    """gamma, over 0 and at most 1: what a round of age leaves of a confidence."""
    consistency: float = 0.3
    """lambda, from 0 on."""
    threshold: float = 8.0
    """tau, from 0 on: from which confidence on an entry supports its outcome."""
    confidence: float = 1.0
    """From 0 on; scales what a critic said, and neither the -1 of an invalid nor the 0 of an empty entry."""
    bonus_cap: float | None = None
    """The consistency bonus, lambda included, is at most this; None: without a cap."""

    def __post_init__(self) -> None:
        """Check the ranges once."""
        cap = 0.0 if self.bonus_cap is None else self.bonus_cap
        numbers = (self.discount, self.consistency, self.threshold, self.confidence, cap)
        if not all(map(math.isfinite, numbers)) or not 0 < self.discount <= 1 or min(numbers) < 0:
            msg = f"weights lie from 0 on, the discount over 0 and up to 1; got {self}"
            raise ValueError(msg)


def raw_score(scores: Sequence[float]) -> float:
    """Equation (5): the mean of a critic's scores.

    Raises:
        ValueError: There is none, or one is not finite.
    """
    if not scores or not all(map(math.isfinite, scores)):
        msg = f"a raw score needs at least one score, all finite; got {list(scores)}"
        raise ValueError(msg)
    return math.fsum(scores) / len(scores)


def confidence_of(evidence: Evidence, raw: float) -> float:
    """Equation (6): what a critic's score counts for, given what running the candidate said.

    Args:
        evidence: Overrides the critic where it is not `SOUND`.
        raw: Finite.
    """
    match evidence:
        case Evidence.INVALID:
            return INVALID_CONFIDENCE
        case Evidence.EMPTY:
            return EMPTY_CONFIDENCE
        case Evidence.SOUND:
            return raw


def supporters(memory: Memory[T], threshold: float) -> Mapping[str, int]:
    """N_t by outcome: how many entries with at least this confidence share it; outcomes without any are left out."""
    return Counter(entry.outcome for entry in memory.entries if entry.confidence >= threshold)


def utilities(memory: Memory[T], weights: Weights) -> tuple[float, ...]:
    """Equations (7) and (8) at the memory's latest round, in the order of its entries; all finite."""
    support = supporters(memory, weights.threshold)
    return tuple(
        weights.discount ** (memory.now - memory.latest_round(entry.key)) * _weighted(entry, weights)
        + consistency_bonus(support.get(entry.outcome, 0), weights)
        for entry in memory.entries
    )


def consistency_bonus(count: int, weights: Weights) -> float:
    """The second term of equation (8), lambda ln(1 + N), under the cap if there is one.

    Args:
        count: N, from 0 on.
        weights: Of the utility.
    """
    bonus = weights.consistency * math.log1p(count)
    return bonus if weights.bonus_cap is None else min(bonus, weights.bonus_cap)


def inherited_raw_score(memory: Memory[T], key: str, outcome: str, *, default: float) -> float:
    """The score of a candidate that no critic was asked about, from those it was asked about (our decision).

    Args:
        memory: Of judged entries.
        key: Of the candidate; the latest judgement of the same candidate counts.
        outcome: Otherwise the mean over sound entries with this outcome does.
        default: Where there are none either.
    """
    sound = [entry for entry in memory.entries if entry.evidence is Evidence.SOUND]
    same = [entry.confidence for entry in sound if entry.key == key]
    if same:
        return same[-1]
    alike = [entry.confidence for entry in sound if entry.outcome == outcome]
    return raw_score(alike) if alike else default


def _weighted(entry: Entry[T], weights: Weights) -> float:
    return entry.confidence * weights.confidence if entry.evidence is Evidence.SOUND else entry.confidence
