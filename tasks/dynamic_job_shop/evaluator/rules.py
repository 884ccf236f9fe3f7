"""Dispatching rules of the literature, and how a rule is followed through all simulations."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from shop import first_best

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shop import Decisions, Rule, Shop

Answer = Callable[[], "NDArray[np.float64]"]
"""Waits for the scores of decisions."""
Ask = Callable[["Decisions"], Answer]


def shortest_processing_time(decisions: Decisions) -> NDArray[np.float64]:
    """SPT, the initial program."""
    scores: NDArray[np.float64] = -decisions.attributes["processing_time"]
    return scores


def reference(decisions: Decisions) -> NDArray[np.float64]:
    """2 PT + WINQ + NPT, lowest first (Rajendran and Holthaus 1999): what tardiness is divided by."""
    waiting = decisions.attributes
    scores: NDArray[np.float64] = -(2 * waiting["processing_time"] + waiting["winq"] + waiting["next_time"])
    return scores


def follow(shop: Shop, rule: Rule) -> float:
    """Let a rule decide, once per step for all simulations together, until all have ended.

    Returns:
        Share of the decisions in which another operation started than SPT would have chosen, 0 to 1.

    Raises:
        Starved: The rule keeps a counted job waiting until all jobs have arrived.
    """
    return follow_in_turns(shop, lambda decisions: lambda: rule(decisions), parts=1)


def follow_in_turns(shop: Shop, ask: Ask, *, parts: int) -> float:
    """The same with a rule that needs its time: while one part of the simulations waits for it, another goes on.

    Args:
        shop: Every simulation at its first decision.
        ask: Begins to score decisions, and gives what the scores are had from.
        parts: Of about as many simulations each; positive.
    """
    taken = deviations = 0
    count = len(shop)
    under_way: deque[tuple[Decisions, Answer]] = deque()
    for part in range(parts):
        live = shop.live(range(count * part // parts, count * (part + 1) // parts))
        if live:
            decisions = shop.decisions(live)
            under_way.append((decisions, ask(decisions)))
    while under_way:
        decisions, answer = under_way.popleft()
        shortest = first_best(shortest_processing_time(decisions), decisions.lengths)
        chosen = first_best(answer(), decisions.lengths)
        taken += len(decisions.ids)
        deviations += int((chosen != shortest).sum())
        shop.start(decisions.ids, chosen.tolist())
        live = shop.live(decisions.ids)
        if live:
            decisions = shop.decisions(live)
            under_way.append((decisions, ask(decisions)))
    return deviations / taken if taken else 0.0
