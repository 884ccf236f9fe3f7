"""Which kind of round an iteration is, who competes in it, and who is the best in the end (RoboPhD, appendix D).

All rules that rank do so by rating, highest first; of equals the older comes first, and of agents made together the one
whose id sorts first. So nothing depends on the order of a mapping.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from orchestrator.search.streams import stream


class RoundKind(StrEnum):
    """What an iteration does beside its contest."""

    STANDARD = "standard"
    """A new agent is made and competes with winners and highly rated agents."""
    CHALLENGER = "challenger"
    """Nothing is made; agents above the start rating that were rarely tested compete."""
    NONE = "none"
    """Nothing is made; agents drawn at random compete."""

    @property
    def has_evolution(self) -> bool:
        """Whether a new agent is made."""
        return self is RoundKind.STANDARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An agent as it stands between two iterations."""

    rating: float
    tests: int
    """Contests it has competed in."""
    born: int
    """Place in the order of making, for instance its iteration; lower is older."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.rating):  # NaN would make every order of ratings depend on where it stood before
            msg = f"a rating is finite, got {self.rating}"
            raise ValueError(msg)


def round_kind(seed: int, iteration: int, *, late_stage: int, challenger: float, none: float) -> RoundKind:
    """The kind of an iteration's round, by the stream (seed, "round", iteration).

    Args:
        seed: Of the run.
        iteration: From 1.
        late_stage: The first iteration that may be another round than a standard one.
        challenger: Probability of a challenger round from there on, 0 to 1.
        none: Probability of a none round from there on; at most 1 together with `challenger`.

    Raises:
        ValueError: A probability is out of range.
    """
    if not (challenger >= 0 and none >= 0 and challenger + none <= 1):
        msg = f"probabilities are at least 0 and at most 1 together, got challenger {challenger} and none {none}"
        raise ValueError(msg)
    if iteration < late_stage:
        return RoundKind.STANDARD
    drawn = stream(seed, "round", iteration).random()
    if drawn < challenger:
        return RoundKind.CHALLENGER
    return RoundKind.NONE if drawn < challenger + none else RoundKind.STANDARD


def winners(right: Mapping[str, int]) -> frozenset[str]:
    """All who share the highest count of right answers in a contest; empty where nobody competed."""
    best = max(right.values(), default=0)
    return frozenset(name for name, count in right.items() if count == best)


def choose_competitors(
    kind: RoundKind,
    standings: Mapping[str, Standing],
    *,
    slots: int,
    start: float,
    seed: int,
    iteration: int,
    newcomer: str | None = None,
    pending_winners: Collection[str] = (),
) -> tuple[str, ...]:
    """Who competes in an iteration; chance comes from the stream (seed, "competitors", iteration).

    Standard rounds fill the slots in this order of precedence:

    1. The newcomer has a slot, whatever else happens. Without one (its evolution failed) that slot is free.
    2. Pending winners, all that there is room for; surplus ones stay out by rating, then by age.
    3. Agents that were never tested; surplus ones stay out likewise.
    4. What is left is drawn at random, evenly and without replacement, from the 2 x (slots left) highest rated others.

    Challenger rounds take agents rated over `start`: fewest tests first, then by rating, then the older. Slots that
    they leave free go to the others by rating, then to the older. None rounds draw evenly from all agents. Neither
    knows a newcomer, and neither favours pending winners.

    Args:
        kind: Of the round.
        standings: All agents, the newcomer included.
        slots: How many compete, at least 1.
        start: The rating of an agent that was never tested.
        seed: Of the run.
        iteration: From 1.
        newcomer: The agent made in this iteration; None: there is none.
        pending_winners: All tied winners of the contest before.

    Returns:
        Different agents, `slots` of them or all there are if they are fewer. In standard rounds winners come first,
        then the newcomer, then the others; the order matters only to `ratings.Order.SEQUENTIAL`.

    Raises:
        ValueError: There is no slot, an agent has no standing, or a round without evolution is given a newcomer.
    """
    _check(kind, standings, slots, newcomer, pending_winners)
    generator = stream(seed, "competitors", iteration)
    if kind is RoundKind.STANDARD:
        return _standard(standings, slots, newcomer, pending_winners, generator)
    if kind is RoundKind.CHALLENGER:
        return _challengers(standings, slots, start)
    return _drawn(_by_rating(standings, standings), slots, generator)


def champion(scores: Mapping[str, tuple[int, int]], ratings: Mapping[str, float], born: Mapping[str, int]) -> str:
    """The agent with the highest accuracy on the selection questions; of equals the higher rated, then the older.

    Args:
        scores: Agent to (right answers, questions), at least one agent; accuracies are compared as exact fractions.
        ratings: Of at least these agents.
        born: Place of at least these agents in the order of making; lower is older.

    Raises:
        ValueError: There is no agent, one has no finite rating or no place, or its counts are not those of an accuracy.
    """
    if not scores:
        msg = "there is no agent to choose a champion from; score at least one"
        raise ValueError(msg)
    for name, (right, questions) in scores.items():
        if not (0 <= right <= questions and questions > 0):
            msg = f"{name!r} cannot have {right} of {questions} questions right"
            raise ValueError(msg)
        if name not in born or not math.isfinite(ratings.get(name, math.nan)):
            msg = f"{name!r} has a score, but no finite rating or no place in the order of making"
            raise ValueError(msg)
    return min(scores, key=lambda name: (-Fraction(*scores[name]), -ratings[name], born[name], name))


def _standard(
    standings: Mapping[str, Standing],
    slots: int,
    newcomer: str | None,
    pending_winners: Collection[str],
    generator: np.random.Generator,
) -> tuple[str, ...]:
    new = [] if newcomer is None else [newcomer]
    chosen = _by_rating(standings, set(pending_winners).difference(new))[: slots - len(new)] + new
    others = _by_rating(standings, standings.keys() - set(chosen))
    untested = [name for name in others if standings[name].tests == 0][: slots - len(chosen)]
    chosen += untested
    left = slots - len(chosen)
    top = [name for name in others if name not in untested][: 2 * left]
    return (*chosen, *_drawn(top, left, generator))


def _challengers(standings: Mapping[str, Standing], slots: int, start: float) -> tuple[str, ...]:
    ranked = _by_rating(standings, standings)
    above = sorted((name for name in ranked if standings[name].rating > start), key=lambda n: standings[n].tests)
    return tuple([*above, *(name for name in ranked if standings[name].rating <= start)][:slots])


def _by_rating(standings: Mapping[str, Standing], names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (-standings[name].rating, standings[name].born, name))


def _drawn(names: Sequence[str], count: int, generator: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[int(n)] for n in generator.permutation(len(names))[:count])


def _check(
    kind: RoundKind,
    standings: Mapping[str, Standing],
    slots: int,
    newcomer: str | None,
    pending_winners: Collection[str],
) -> None:
    if slots < 1:
        msg = f"a contest has at least one slot, got {slots}"
        raise ValueError(msg)
    if newcomer is not None and not kind.has_evolution:
        msg = f"a {kind} round makes no agent, got the newcomer {newcomer!r}"
        raise ValueError(msg)
    for name in (*pending_winners, *([] if newcomer is None else [newcomer])):
        if name not in standings:
            msg = f"the agent {name!r} has no standing; add it before it is chosen"
            raise ValueError(msg)
