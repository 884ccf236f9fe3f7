"""Bradley-Terry ratings over the questions of all contests, with intervals (Bradley & Terry 1952; Hunter 2004).

Each question on which one agent is right and another wrong is a win over that one; where both are alike it is a tie,
and counts as half a win for each. Unlike Elo ratings, these depend on no order of events and have an uncertainty.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from orchestrator.search.resampling import group_numbers, percentile_interval

_TOLERANCE = 1e-9  # of natural-log strengths: far below any digit of a rating that is shown
_MAX_STEPS = 1000
_LEAST_CURVATURE = 1e-12  # keeps the equations solvable where gaps are thousands of rating points wide

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcome:
    """One question of one contest."""

    group: Hashable
    """Equal where questions are no independent evidence, for instance (database, gold query); over all contests."""
    right: frozenset[str]
    """The competitors that answered it correctly."""
    wrong: frozenset[str]
    """All the others that were asked; none is in both."""

    def __post_init__(self) -> None:
        both = self.right & self.wrong
        if both:
            msg = f"the agents {sorted(both)} cannot be both right and wrong on a question of group {self.group!r}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An agent's rating on the Elo scale."""

    rating: float
    low: float | None
    """Ends of the 95 % interval; None: the agent was never compared, and nothing is known of it."""
    high: float | None
    component: int
    """Ratings can be compared only between agents of one component: those linked by a chain of contests. The largest
    component is 0; each has the mean rating `start`."""


def fit(
    outcomes: Sequence[QuestionOutcome],
    *,
    generator: np.random.Generator,
    resamples: int = 1000,
    prior: float = 1.0,
    start: float = 1500.0,
    scale: float = 400.0,
) -> dict[str, Estimate]:
    """Maximum-likelihood ratings and their percentile intervals from a bootstrap over groups.

    As many groups as there are get drawn with replacement, each with all its questions in all contests, and everything
    is fitted again. The pseudo ties of the prior are no data and stay in every resample, so each fit is finite, unique
    and has the same components (Hunter 2004, assumption 1).

    Args:
        outcomes: One per question and contest; equal input in equal order gives equal intervals.
        generator: Draws the resamples.
        resamples: At least 1.
        prior: How many ties are added to each pair that was ever compared; positive. From 0.01 up a maximum is found
            for tens of thousands of one-sided questions too.
        start: Mean rating of every component.
        scale: Positive; a lead of `scale` means odds of ten to one.

    Returns:
        Every agent that was asked a question: by component, then highest rating first, then by id.

    Raises:
        ValueError: `prior` or `scale` is not positive, or there is no resample.
        ArithmeticError: No maximum was found, since the prior is too small for results that one-sided.
    """
    for name, value in (("prior", prior), ("scale", scale), ("resamples", resamples)):
        if not (value > 0 and math.isfinite(value)):
            msg = f"{name} is positive and finite, got {value}"
            raise ValueError(msg)
    table = _Table(outcomes, prior)
    strengths = table.strengths(np.ones(table.groups))
    shares = np.full(table.groups, 1 / max(table.groups, 1))
    drawn = [
        table.strengths(generator.multinomial(table.groups, shares)) for _ in range(resamples if table.agents else 0)
    ]
    return _estimates(table, strengths, np.array(drawn), start, scale / math.log(10))


class _Table:
    """All comparisons of pairs, by group, so that groups can be weighted."""

    def __init__(self, outcomes: Sequence[QuestionOutcome], prior: float) -> None:
        self.agents = sorted(frozenset[str]().union(*(outcome.right | outcome.wrong for outcome in outcomes)))
        numbers = group_numbers(outcome.group for outcome in outcomes)
        self.groups = int(numbers.max(initial=-1)) + 1
        points = _points(outcomes, numbers.tolist(), {name: n for n, name in enumerate(self.agents)})
        # Sorted: a set of names has another order in every process, and sums must not depend on it.
        cells = np.array(sorted(points), dtype=np.int64).reshape(-1, 3)
        self._group, self._cell = cells[:, 0], cells[:, 1] * len(self.agents) + cells[:, 2]
        self._points = np.array([points[cell] for cell in sorted(points)], dtype=np.float64) / 2
        compared = self._wins(np.ones(self.groups)) > 0
        compared |= compared.T
        self._prior = compared * prior / 2
        _, self.components = connected_components(compared, directed=False)

    def strengths(self, weights: NDArray[np.float64] | NDArray[np.int64]) -> Matrix:
        """(n,) natural-log strengths for (groups,) weights, of mean 0 in each component."""
        wins = self._wins(weights) + self._prior
        fitted = np.zeros(len(self.agents))
        for component in range(int(self.components.max(initial=-1)) + 1):
            members = np.flatnonzero(self.components == component)
            if len(members) > 1:
                fitted[members] = _maximise(wins[np.ix_(members, members)])
        return fitted

    def _wins(self, weights: NDArray[np.float64] | NDArray[np.int64]) -> Matrix:
        count = len(self.agents)
        points = np.bincount(self._cell, self._points * weights[self._group], minlength=count * count)
        return np.asarray(points, dtype=np.float64).reshape(count, count)


def _points(
    outcomes: Sequence[QuestionOutcome], numbers: Sequence[int], index: dict[str, int]
) -> Counter[tuple[int, int, int]]:
    """(group, agent, other) to twice the wins of the agent over the other, so that a tie is whole for each."""
    doubled: Counter[tuple[int, int, int]] = Counter()
    for outcome, group in zip(outcomes, numbers, strict=True):
        for winner, loser in product(outcome.right, outcome.wrong):
            doubled[group, index[winner], index[loser]] += 2
        for alike in (outcome.right, outcome.wrong):
            for a, b in combinations(alike, 2):
                doubled[group, index[a], index[b]] += 1
                doubled[group, index[b], index[a]] += 1
    return doubled


def _maximise(wins: Matrix) -> Matrix:
    """The strengths of mean 0 under which (n, n) wins are most likely, by Newton's method with step halving.

    Every pair that met has wins on both sides (the prior), so the likelihood is strictly concave and has one maximum.
    """
    strengths = np.zeros(len(wins))  # not the fit to other data: far from the maximum, Newton's steps are of no use
    for _ in range(_MAX_STEPS):
        gaps = strengths[:, None] - strengths[None, :]
        gradient = _gradient(wins, gaps)
        step = _step(wins, gradient, np.maximum(expit(gaps) * expit(-gaps), _LEAST_CURVATURE))
        # The slope along a step that ends beyond the maximum is negative there; slopes keep digits that the likelihood
        # itself loses near its maximum.
        while _gradient(wins, gaps + step[:, None] - step[None, :]) @ step < -(gradient @ step) / 2:
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max() <= _TOLERANCE:
            centred: Matrix = strengths - strengths.mean()
            return centred
    msg = f"no maximum of the likelihood of {len(wins)} strengths was found in {_MAX_STEPS} steps; use a larger prior"
    raise ArithmeticError(msg)


def _gradient(wins: Matrix, gaps: Matrix) -> Matrix:
    """(n,) wins less expected wins, written without cancellation."""
    gradient: Matrix = (wins * expit(-gaps) - wins.T * expit(gaps)).sum(axis=1)
    return gradient


def _step(wins: Matrix, gradient: Matrix, curvature: Matrix) -> Matrix:
    """(n,) changes, of mean 0, up to the top of a parabola with (n, n) curvatures per game."""
    weights = (wins + wins.T) * curvature
    system = np.diag(weights.sum(axis=1)) - weights
    # A shift of all strengths changes no likelihood; this rules it out and leaves everything else as it is.
    system += weights.mean()
    return np.asarray(np.linalg.solve(system, gradient), dtype=np.float64)


def _estimates(table: _Table, strengths: Matrix, drawn: Matrix, start: float, unit: float) -> dict[str, Estimate]:
    if not table.agents:
        return {}
    members = Counter(table.components.tolist())
    by_size = sorted(members, key=lambda component: -members[component])  # equally large ones by their first agent
    low, high = percentile_interval(drawn)
    found = {
        name: Estimate(
            rating=float(start + unit * strengths[n]),
            low=float(start + unit * low[n]) if members[component] > 1 else None,
            high=float(start + unit * high[n]) if members[component] > 1 else None,
            component=by_size.index(component),
        )
        for n, (name, component) in enumerate(zip(table.agents, table.components.tolist(), strict=True))
    }
    return dict(sorted(found.items(), key=lambda item: (item[1].component, -item[1].rating, item[0])))
