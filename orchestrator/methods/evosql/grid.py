"""Which settings a sensitivity sweep tries and what it shows of them (the paper's C.3 and Figure 4); pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from orchestrator.methods.evosql.settings import Settings

MAX_VARIANTS = 1000
FIRST_ROUND = (
    "seed",
    "candidates",
    "temperature",
    "max_output_tokens",
    "record_rows",
    "record_cell_characters",
    "record_characters",
)
"""Settings that the first round, or the record of a query's result, depends on; where they agree it is shared."""
PAPER: Mapping[str, Sequence[Any]] = {
    "critic_mode": ("ungrouped", "grouped"),
    "critic_scores": ("one", "four"),
    "payload": (1, 4),
    "rounds": (3, 2, 1),
    "consistency_weight": (0.3, 0.1, 0.0),
    "confidence_threshold": (8.0, 10.0),
    "time_discount": (0.9, 1.0),
    "temperature": (0.5, 0.7),
    "tie_break": ("earlier", "later"),
    "bonus_cap": (None, 0.5),
}
"""What the paper varies, the defaults first.

It gives no value of the cap; five agreeing candidates reach ours at lambda 0.3. Its checklist-style critic prompts are
not there, for our critic has none."""
_CRITICS = ("critic_mode", "critic_scores")
_CROSSED = (*_CRITICS, "payload", "rounds")
_SYMBOLS = {
    "critic_mode": "critic",
    "critic_scores": "scores",
    "candidates": "K",
    "rounds": "T",
    "payload": "M",
    "time_discount": "gamma",
    "consistency_weight": "lambda",
    "confidence_threshold": "tau",
    "selection_temperature": "kappa",
    "stop_share": "pi",
    "tie_break": "ties",
    "bonus_cap": "cap",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Settings that are compared with others."""

    id: str
    """For instance `v012`; the base, if it is one of them, is the first."""
    label: str
    """In what it differs from the base; `base`: in nothing."""
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One evolution of every question, which answers for all variants that differ from it by fewer rounds alone."""

    name: str
    """Part of the journal keys, for instance `e003`."""
    scope: str
    """Of the journal: trials with the same one share the first round, for instance `f1/`."""
    settings: Settings
    """With the most rounds of all its variants."""
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """Variants that come to the same point."""

    x: float
    y: float
    variants: tuple[str, ...]
    """Their ids, in order."""
    on_front: bool
    """No other point is better in one coordinate and not worse in the other."""


def crossed(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of a grid's values, the last name varying fastest; of an empty grid, one without any."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def paper_catalogue() -> Iterator[dict[str, Any]]:
    """56 departures from the base in the directions of the paper, whose own catalogue of 110 is not published.

    Critic, payload and rounds are crossed; of each critic, every other value stands by itself.
    """
    yield from crossed({name: PAPER[name] for name in _CROSSED})
    for critic in crossed({name: PAPER[name] for name in _CRITICS}):
        for name in PAPER:
            if name not in _CROSSED:
                values = PAPER[name] if name == "temperature" else PAPER[name][1:]
                yield from ({**critic, name: value} for value in values)


def variants_of(base: Settings, departures: Sequence[Mapping[str, Any]]) -> tuple[Variant, ...]:
    """Variants by what they change, those with equal settings once.

    Args:
        base: What is not changed.
        departures: Name to value of the settings that each one changes; may change nothing.

    Raises:
        ValidationError: A name is unknown or a value out of its range.
    """
    given = base.model_dump()
    distinct = dict.fromkeys(Settings.model_validate({**given, **departure}) for departure in departures)
    ordered = sorted(distinct, key=lambda settings: settings != base)  # stable: only the base moves
    return tuple(
        Variant(id=f"v{number:03}", label=label_of(settings, base), settings=settings)
        for number, settings in enumerate(ordered, 1)
    )


def label_of(settings: Settings, base: Settings) -> str:
    """In what settings differ from others, for people."""
    ours, theirs = settings.model_dump(mode="json"), base.model_dump(mode="json")
    changed = [f"{_SYMBOLS.get(name, name)} {_word(ours[name])}" for name in ours if ours[name] != theirs[name]]
    return ", ".join(changed) or "base"


def trials_of(variants: Sequence[Variant]) -> tuple[Trial, ...]:
    """The evolutions that variants need.

    A variant of fewer rounds is the beginning of one of more: equal requests, draws and answers, since none of them
    depends on how many rounds may follow. Without a judgement of the last round it is not, and stands by itself.

    Args:
        variants: Of a sweep.
    """
    families: dict[Settings, list[Variant]] = {}
    for variant in variants:
        settings = variant.settings
        family = settings.model_copy(update={"rounds": 1}) if settings.critic_last_round else settings
        families.setdefault(family, []).append(variant)
    scopes: dict[tuple[Any, ...], str] = {}
    trials = []
    for number, members in enumerate(families.values(), 1):
        longest = max((member.settings for member in members), key=lambda settings: settings.rounds)
        shared = tuple(getattr(longest, name) for name in FIRST_ROUND)
        scope = scopes.setdefault(shared, f"f{len(scopes) + 1}/")
        trials.append(Trial(name=f"e{number:03}", scope=scope, settings=longest, variants=tuple(members)))
    return tuple(trials)


def bubbles(points: Mapping[str, tuple[float, float]], *, lower_x: bool = False) -> tuple[Bubble, ...]:
    """Variants gathered by the point they come to, from left to right.

    Args:
        points: Id to (x, y), finite; higher is better.
        lower_x: Lower is better in x, as with costs.
    """
    gathered: dict[tuple[float, float], list[str]] = {}
    for name, point in points.items():
        gathered.setdefault(point, []).append(name)
    front = pareto_front([(-x if lower_x else x, y) for x, y in gathered])
    return tuple(
        Bubble(x=x, y=y, variants=tuple(names), on_front=(-x if lower_x else x, y) in front)
        for (x, y), names in sorted(gathered.items())
    )


def pareto_front(points: Sequence[tuple[float, float]]) -> frozenset[tuple[float, float]]:
    """The points that no other one dominates: is at least as good in both coordinates and better in one.

    Args:
        points: Finite; higher is better in both.
    """
    front: list[tuple[float, float]] = []
    for point in sorted(set(points), reverse=True):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return frozenset(front)


def _word(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
