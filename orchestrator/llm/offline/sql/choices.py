"""A derivation is a run of a program that picks from scored options; here its best runs are enumerated in order.

Every run makes a sequence of picks. The cost of a run is the sum, over its picks, of how much worse the option taken is
than the best one. Best-first search over "the same picks up to here, then another option" visits every run once, the
cheapest first (the enumeration of Lawler 1972, without constraints).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Option = TypeVar("Option")
Result = TypeVar("Result")
_MAX_OPTIONS = 5
_MAX_COST = 12.0


class Chooser:
    """Makes the picks of one run: the given ones first, then the best option each time."""

    def __init__(self, forced: tuple[int, ...] = ()) -> None:
        """Begin a run; `forced` holds ranks of options, the best being 0."""
        self._forced = forced
        self.charged = 0.0
        self.drafted = 0.0
        self.trace: list[tuple[int, tuple[float, ...]]] = []
        """(rank taken, the costs of all options in their order) of every pick."""

    def charge(self, cost: float) -> None:
        """Make the whole run dearer, for what shows only once it is complete."""
        self.charged += cost

    def pick(self, options: Sequence[tuple[Option, float]], wider: Sequence[float] = ()) -> Option:
        """One of the options.

        Args:
            options: With a score each, in nats, from what stands next to the words in question.
            wider: What the rest of the question adds to each score; a first draft does without it.

        Raises:
            ValueError: There is no option.
        """
        if not options:
            msg = "there must be an option to pick"
            raise ValueError(msg)
        added = [*wider, *[0.0] * (len(options) - len(wider))]
        scored = [(value, near + more, near) for (value, near), more in zip(options, added, strict=True)]
        ranked = sorted(scored, key=lambda option: -option[1])[:_MAX_OPTIONS]
        place = len(self.trace)
        rank = self._forced[place] if place < len(self._forced) else 0
        rank = min(rank, len(ranked) - 1)
        self.drafted += max(near for _, _, near in ranked) - ranked[rank][2]
        self.trace.append((rank, tuple(ranked[0][1] - score for _, score, _ in ranked)))
        return ranked[rank][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Generic[Result]):
    """One derivation."""

    result: Result
    cost: float
    """Of its picks, 0 for the best; nats."""
    charged: float
    """What was charged beside them."""
    drafted: float
    """Of its picks, without what only the rest of the question says."""


def best_runs(program: Callable[[Chooser], Result], limit: int) -> list[Run[Result]]:
    """The `limit` cheapest runs of a program by their picks, in order of cost with what they were charged."""
    runs: list[Run[Result]] = []
    waiting: list[tuple[float, int, tuple[int, ...]]] = [(0.0, 0, ())]
    pushed = 0
    while waiting and len(runs) < limit:
        cost, _, forced = heapq.heappop(waiting)
        chooser = Chooser(forced)
        result = program(chooser)
        runs.append(Run(result=result, cost=cost, charged=chooser.charged, drafted=chooser.drafted))
        taken = tuple(rank for rank, _ in chooser.trace)
        for place in range(len(forced), len(taken)):
            costs = chooser.trace[place][1]
            for rank in range(1, len(costs)):
                total = cost + costs[rank]
                if total <= _MAX_COST:
                    pushed += 1
                    heapq.heappush(waiting, (total, pushed, (*taken[:place], rank)))
    return sorted(runs, key=lambda run: run.cost + run.charged)


def softmax(scores: Sequence[float], temperature: float) -> list[float]:
    """Probabilities of finite scores; a temperature of 0 or less gives all to the first best."""
    best = max(scores)
    if temperature <= 0:
        first = list(scores).index(best)
        return [1.0 if number == first else 0.0 for number in range(len(scores))]
    weights = [math.exp((score - best) / temperature) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]
