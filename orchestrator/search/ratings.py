"""Elo ratings from contests (Elo 1978; RoboPhD, section 3.2.5).

Everybody in a contest answers the same questions, and every pair of competitors is one event: more right answers win,
equally many draw, and margins are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from itertools import combinations


class Order(StrEnum):
    """How the pairs of one contest change the ratings."""

    SIMULTANEOUS = "simultaneous"
    """All changes are computed from the ratings before the contest, so no order of its pairs matters."""
    SEQUENTIAL = "sequential"
    """One pair after the other, each from the ratings that the one before left, as the published code does."""


def expected_score(a: float, b: float, scale: float) -> float:
    """What a competitor rated `a` may expect against one rated `b`: 1 / (1 + 10 ** ((b - a) / scale)).

    Args:
        a: Its own rating, finite.
        b: The other's, finite.
        scale: Positive and finite; a lead of `scale` means odds of ten to one.

    Returns:
        From 0 to 1, where a win counts 1 and a draw 0.5; exactly 0.5 between equals.

    Raises:
        ValueError: A rating is not finite, or the scale is not positive.
    """
    _require_positive("scale", scale)
    if not (math.isfinite(a) and math.isfinite(b)):
        msg = f"ratings are finite, got {a} and {b}"
        raise ValueError(msg)
    # The logistic function by tanh, which saturates where a power of ten would overflow.
    return 0.5 + 0.5 * math.tanh((a - b) / scale * math.log(10) / 2)


def update(
    ratings: Mapping[str, float], right: Mapping[str, int], *, k: float, scale: float, order: Order
) -> dict[str, float]:
    """Ratings after one contest; the sum of all ratings stays what it was.

    Args:
        ratings: Of everybody, competitor or not; finite.
        right: Competitor to how many of the same questions it answered correctly, at least 0. Only for
            `Order.SEQUENTIAL` does the order of the competitors matter: (a, b, c) plays a-b, a-c, b-c.
        k: Positive and finite; a single event changes a rating by at most so much.
        scale: Positive and finite, as in `expected_score`.
        order: Whether an event sees what the events before it have changed.

    Returns:
        Everybody's rating, in the order of `ratings`; who did not compete keeps theirs. Fewer than two competitors
        change nothing.

    Raises:
        ValueError: A competitor has no rating, a rating is not finite, a count is negative, or `k` or `scale` is not
            positive.
    """
    _require_positive("k", k)
    _require_positive("scale", scale)
    _check(ratings, right)
    after = dict(ratings)
    if order is Order.SEQUENTIAL:
        for a, b in combinations(right, 2):
            change = k * (_score(right[a], right[b]) - expected_score(after[a], after[b], scale))
            after[a] += change
            after[b] -= change
        return after
    for a in right:
        events = (_score(right[a], right[b]) - expected_score(ratings[a], ratings[b], scale) for b in right if b != a)
        after[a] = ratings[a] + k * math.fsum(events)  # exact, so no order of the competitors shows in the last digit
    return after


def _score(own: int, other: int) -> float:
    return 0.5 if own == other else float(own > other)


def _check(ratings: Mapping[str, float], right: Mapping[str, int]) -> None:
    for name, rating in ratings.items():
        if not math.isfinite(rating):
            msg = f"ratings are finite, {name!r} has {rating}"
            raise ValueError(msg)
    for name, count in right.items():
        if name not in ratings:
            msg = f"the competitor {name!r} has no rating; give it the start rating before its first contest"
            raise ValueError(msg)
        if count < 0:
            msg = f"a count of right answers is at least 0, {name!r} has {count}"
            raise ValueError(msg)


def _require_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        msg = f"{name} is positive and finite, got {value}"
        raise ValueError(msg)
