"""Queries as a rule has them; each function gives the query itself where its rule has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.llm.offline.sql.cues import DISTINCT
from orchestrator.llm.offline.sql.evidence import spoken_columns
from orchestrator.llm.offline.sql.logic import Condition, Item, Query, tables_of
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.schema import Field

_IDS = frozenset(["id", "ids", "identifier", "identifiers", "key", "keys", "code", "codes"])
_PERCENT = frozenset(["percentage", "percent", "percentages"])
_HUNDRED = " * 100"


def superlative_ties(query: Query, _: Reading) -> Query:
    """ORDER BY ... LIMIT 1 becomes a comparison with the extreme value."""
    if query.limit != 1 or len(query.order) != 1 or query.group or query.other is not None:
        return query
    item, descending = query.order[0]
    if item.column is None or item.aggregate:
        return query
    extreme = Query(
        items=(Item(column=item.column, aggregate="MAX" if descending else "MIN"),),
        where=query.where,
        edges=query.edges,
    )
    where = (*query.where, Condition(item=Item(column=item.column), op="=", query=extreme))
    return replace(query, where=where, order=(), limit=None)


def superlative_limit(query: Query, _: Reading) -> Query:
    """A comparison with the extreme value becomes ORDER BY ... LIMIT 1."""
    if query.order or query.group or query.other is not None or any(item.aggregate for item in query.items):
        return query
    for condition in query.where:
        inner = condition.query.items[0] if condition.query is not None else None
        if inner is not None and inner.aggregate in {"MAX", "MIN"} and inner.column == condition.item.column:
            where = tuple(other for other in query.where if other != condition)
            order = ((Item(column=inner.column), inner.aggregate == "MAX"),)
            return replace(query, where=where, order=order, limit=1)
    return query


def count_distinct(query: Query, reading: Reading) -> Query:
    """Counts of rows of a join become counts of different keys, and counts of a column those of its values."""

    def changed(item: Item) -> Item:
        if item.aggregate != "COUNT" or item.distinct:
            return item
        column = item.column
        if column is None:
            tables = tables_of(query)
            named = [table for table in reading.tables if table in tables]
            table = (named or list(tables) or [""])[0]
            column = reading.schema.key(table) if len(tables) > 1 else None
        return item if column is None else Item(column=column, aggregate="COUNT", distinct=True)

    return replace(query, items=tuple(map(changed, query.items)))


def count_rows(query: Query, reading: Reading) -> Query:
    """COUNT(DISTINCT ...) becomes COUNT(*), unless the question asks for different ones."""
    if not DISTINCT.isdisjoint(reading.lows):
        return query
    counted = [item.column.table for item in query.items if item.distinct and item.column is not None]
    items = tuple(Item(aggregate="COUNT") if item.distinct else item for item in query.items)
    return replace(query, items=items, joined=tuple(dict.fromkeys((*query.joined, *counted))))


def distinct_lists(query: Query, _: Reading) -> Query:
    """Lists of columns get DISTINCT."""
    plain = query.items and all(item.column is not None and not item.aggregate for item in query.items)
    is_list = plain and not query.group and not query.order and not query.operation
    return replace(query, distinct=True) if is_list else query


def keep_duplicates(query: Query, reading: Reading) -> Query:
    """DISTINCT goes, unless the question asks for different ones."""
    return replace(query, distinct=False) if DISTINCT.isdisjoint(reading.lows) else query


def only_asked(query: Query, reading: Reading) -> Query:
    """Columns that the question does not speak of go, if others remain."""
    spoken = spoken_columns(reading)
    kept = tuple(i for i in query.items if i.column is None or i.aggregate or i.parts or i.column in spoken)
    return replace(query, items=kept) if kept else query


def with_measure(query: Query, _: Reading) -> Query:
    """What rows are ranked or groups compared by is returned too."""
    if query.operation:
        return query
    measures = [item for item, _ in query.order] if query.limit is not None else []
    measures += [condition.item for condition in query.having]
    plain = not any(item.aggregate or item.parts for item in query.items)
    more = [item for item in dict.fromkeys(measures) if item not in query.items] if plain else []
    return replace(query, items=(*query.items, *more))


def names_not_ids(query: Query, reading: Reading) -> Query:
    """A key that the question does not name becomes the name of its row."""
    if not _IDS.isdisjoint(reading.lows):
        return query

    def changed(column: Field) -> Field:
        shown = reading.schema.display(column.table)[0]
        return shown if column.is_primary and not shown.is_key else column

    return _with_columns(query, changed)


def ids_not_names(query: Query, reading: Reading) -> Query:
    """The name of a row that the question does not ask for becomes its key."""
    named = {t.column for m in reading.mentions for t in m.of("column")}

    def changed(column: Field) -> Field:
        key = reading.schema.key(column.table)
        is_shown = column == reading.schema.display(column.table)[0] and column not in named
        return key if key is not None and is_shown else column

    return _with_columns(query, changed)


def _with_columns(query: Query, change: Callable[[Field], Field]) -> Query:
    """Every plain column that is returned, changed; each once."""
    items = [
        replace(item, column=change(item.column)) if item.column is not None and not item.aggregate else item
        for item in query.items
    ]
    return replace(query, items=tuple(dict.fromkeys(items)))


def full_names(query: Query, reading: Reading) -> Query:
    """A first name comes with the last name."""
    items: list[Item] = []
    for item in query.items:
        items.append(item)
        surname = _beside(item, ("first", "name"), ("last", "name"), reading)
        if surname is not None and Item(column=surname) not in query.items:
            items.append(Item(column=surname))
    return replace(query, items=tuple(items))


def first_names(query: Query, reading: Reading) -> Query:
    """A last name that stands only beside its first name goes, unless the question says it."""
    if not {"last", "surname", "surnames", "family", "full"}.isdisjoint(reading.lows):
        return query
    firsts = [_beside(item, ("first", "name"), ("last", "name"), reading) for item in query.items]
    kept = tuple(item for item in query.items if item.column is None or item.column not in firsts)
    return replace(query, items=kept)


def _beside(item: Item, own: tuple[str, ...], other: tuple[str, ...], reading: Reading) -> Field | None:
    """The column called `other` in the table of an item called `own`."""
    if item.column is None or item.aggregate or item.column.words != own:
        return None
    return next((column for column in reading.schema.tables[item.column.table] if column.words == other), None)


def group_first(query: Query, _: Reading) -> Query:
    """Plain columns of groups before aggregates."""
    return replace(query, items=tuple(sorted(query.items, key=_is_measure))) if query.group else query


def group_last(query: Query, _: Reading) -> Query:
    """Aggregates before plain columns of groups."""
    items = tuple(sorted(query.items, key=lambda item: not _is_measure(item)))
    return replace(query, items=items) if query.group else query


def _is_measure(item: Item) -> bool:
    return bool(item.aggregate or item.parts)


def asked_order(query: Query, reading: Reading) -> Query:
    """Columns in the order of the words that name them; what no word names keeps its place at the end."""
    last = len(reading.tokens)

    def place(item: Item) -> int:
        if item.aggregate == "COUNT" and item.column is None:
            said = [at for at, low in enumerate(reading.lows) if low in {"number", "many", "count"}]
        else:
            said = [m.first for m in reading.mentions if any(t.column in item.columns for t in m.of("column"))]
        return min(said, default=last)

    return replace(query, items=tuple(sorted(query.items, key=place)))


def percent_hundred(query: Query, reading: Reading) -> Query:
    """A share becomes a percentage."""
    if _PERCENT.isdisjoint(reading.lows):
        return query

    def changed(item: Item) -> Item:
        texts = " ".join(part for part in item.parts if isinstance(part, str))
        if "/" not in texts or "100" in texts:
            return item
        return replace(item, parts=("(", *item.parts, f"){_HUNDRED}"))

    return replace(query, items=tuple(map(changed, query.items)))


def percent_fraction(query: Query, _: Reading) -> Query:
    """A percentage becomes a share."""

    def changed(item: Item) -> Item:
        parts = tuple(part.replace(_HUNDRED, "") if isinstance(part, str) else part for part in item.parts)
        return replace(item, parts=parts)

    return replace(query, items=tuple(map(changed, query.items)))


def group_by_key(query: Query, reading: Reading) -> Query:
    """Groups by a column that names rows become groups by the key of those rows."""

    def changed(column: Field) -> Field:
        key = reading.schema.key(column.table)
        names = column == reading.schema.display(column.table)[0]
        return key if key is not None and names and not column.is_key else column

    return replace(query, group=tuple(dict.fromkeys(map(changed, query.group))))


def group_by_name(query: Query, _: Reading) -> Query:
    """Groups by a key become groups by the columns of its table that are returned."""
    plain = [i.column for i in query.items if i.column is not None and not i.aggregate]
    group: list[Field] = []
    for column in query.group:
        shown = [other for other in plain if other.table == column.table]
        group.extend(shown if column.is_primary and shown else [column])
    return replace(query, group=tuple(dict.fromkeys(group)))
