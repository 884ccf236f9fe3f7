"""Dispatching rules of the literature, and how a rule is followed through all simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from shop import first_best

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shop import Decisions, Rule, Shop


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
    taken = deviations = 0
    live = shop.live(range(len(shop)))
    while live:
        decisions = shop.decisions(live)
        chosen = first_best(rule(decisions), decisions.lengths)
        shortest = first_best(shortest_processing_time(decisions), decisions.lengths)
        taken += len(live)
        deviations += int((chosen != shortest).sum())
        shop.start(live, chosen.tolist())
        live = shop.live(live)
    return deviations / taken if taken else 0.0
