"""What the tables and subqueries of a query give, in order, and which of it is hidden.

SQLite takes the first column of a result that has a name, and counts places over all of them. Where `*` has lost a
column, a name or a place would mean another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from sqlglot import exp

from orchestrator.domain.data_access import Hidden
from orchestrator.sql.reader import UnaryPlus

MAX_PLACES = 2_000
"""Columns of a result that SQLite takes; what is over it is left out, as each of a chain of joins can double them."""
Place = tuple[str, Hidden | None]
"""Name of a column without case, empty where it has none of its own, and whether it is hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The columns of a table, or of what a subquery gives; names without case."""

    visible: frozenset[str] = frozenset()
    hidden: Mapping[str, Hidden] = field(default_factory=dict)
    rowid: Hidden | None = None
    """The hidden column that its rowid is."""
    places: tuple[Place, ...] = ()
    """What `*` gives of it; a column can be asked for that is not among them."""


@dataclass(frozen=True, slots=True)
class Source:
    """One item of a FROM clause."""

    name: str
    """What qualifies its columns, without case; empty: nothing does."""
    outputs: Outputs
    shared: frozenset[str] = frozenset()
    """Columns that USING or NATURAL has made one with those of a source before; `*` has them once."""


def joined(sources: Sequence[Source], right: Sequence[Source], join: exp.Join) -> list[Source]:
    """The sources of a join, in order."""
    shared = frozenset(name.name.casefold() for name in join.args.get("using") or ())
    if join.args.get("method") == "NATURAL":
        shared = frozenset(name for source in sources for name, _ in source.outputs.places)
    return [*sources, *(replace(source, shared=source.shared | shared) for source in right)]


def merged(several: Iterable[Outputs]) -> Outputs:
    """Several tables as one; of a name that several have, the one that is left is meant."""
    several = list(several)
    visible = frozenset(name for outputs in several for name in outputs.visible)
    hidden = {name: h for outputs in several for name, h in outputs.hidden.items() if name not in visible}
    return Outputs(visible=visible, hidden=hidden, places=_bounded(place for one in several for place in one.places))


def first_of(several: Iterable[Outputs]) -> Outputs:
    """Several one after the other as one; of a name that several have, the first is meant."""
    visible: dict[str, None] = {}
    hidden: dict[str, Hidden] = {}
    several = list(several)
    for outputs in several:
        visible.update(dict.fromkeys(outputs.visible - hidden.keys()))
        hidden.update({name: h for name, h in outputs.hidden.items() if name not in visible and name not in hidden})
    places = _bounded(place for outputs in several for place in outputs.places)
    return Outputs(visible=frozenset(visible), hidden=hidden, places=places)


def all_of(sources: Sequence[Source]) -> Outputs:
    """What `*` gives of a FROM clause."""
    given = merged(source.outputs for source in sources)
    places = (place for source in sources for place in source.outputs.places if place[0] not in source.shared)
    return replace(given, places=_bounded(places))


def listed(expressions: Iterable[exp.Expr], sources: Sequence[Source]) -> Iterator[Outputs]:
    """What each item of a select list gives; what has no name of its own cannot be asked for."""
    for one in expressions:
        if isinstance(one, exp.Star):
            yield all_of(sources)
        elif isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
            yield merged(source.outputs for source in sources if source.name == one.table.casefold())
        else:
            name = one.alias_or_name.casefold() if isinstance(one, exp.Alias | exp.Column) else ""
            yield Outputs(visible=frozenset([name] if name else ()), places=((name, None),))


def lost_before(place: int, outputs: Outputs) -> Hidden | None:
    """The first hidden column up to a place of a result, counted from 1."""
    return next((hidden for _, hidden in outputs.places[: max(0, place)] if hidden is not None), None)


def lost_name(name: str, expressions: Sequence[exp.Expr], sources: Sequence[Source]) -> Hidden | None:
    """The hidden column that `*` would give by a name before any other item gives it; SQLite would take that one."""
    named = (one for one in expressions if not isinstance(one, exp.Column) or isinstance(one.this, exp.Star))
    return first_of(listed(named, sources)).hidden.get(name)


def place_of(term: exp.Expr) -> int | None:
    """The place in the result that a term of ORDER BY or GROUP BY means; None: it means an expression."""
    sign = 1
    while isinstance(term, exp.Paren | exp.Collate | exp.Neg | UnaryPlus):
        sign = -sign if isinstance(term, exp.Neg) else sign
        term = term.this
    text = term.name if isinstance(term, exp.Literal) and not term.is_string else ""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    return sign * int(digits or "0") if len(digits) <= _MAX_DIGITS else None


_MAX_DIGITS = 9
"""SQLite takes no larger number than fits into 32 bits for a place."""


def _bounded(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(islice(places, MAX_PLACES))
