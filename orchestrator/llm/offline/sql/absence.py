"""What must not be there: denied conditions, and tables that hold no row for what is asked for."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.llm.offline.sql.draft import Draft, Filter, negate
from orchestrator.llm.offline.sql.logic import Condition, Item, Query
from orchestrator.llm.offline.sql.rendering import path
from orchestrator.llm.offline.sql.schema import Edge, Field

_REACH = 7
_MISSING = frozenset({"missing", "unknown", "null", "empty", "unspecified"})


def absent_tables(draft: Draft) -> None:
    """`without any bridge`, `who do not have keys`: the first table after a denial that denies no condition."""
    reading = draft.reading
    for negation in reading.negations:
        if any(found.negated and 0 < found.place - negation <= _REACH for found in draft.filters):
            continue
        after = [m for m in reading.mentions if 0 < m.first - negation <= _REACH]
        tables = [m for m in after if m.of("table")]
        if not tables:
            continue
        draft.absent.append((negation, tables[0].of("table")[0].table))


def absent_values(draft: Draft) -> None:
    """`without a phone number`, `whose weight is missing`: columns that hold nothing."""
    reading = draft.reading
    for number in draft.free("column", strong=True):
        mention = reading.mentions[number]
        if mention.kind != "column" or draft.label(mention) == "head":
            continue
        before = [
            p for p in reading.negations if 0 < mention.first - p <= 4 and p not in {at for at, _ in draft.absent}
        ]
        around = set(reading.lows[max(0, mention.first - 4) : mention.last + 4])
        present = "known" in around or "recorded" in around
        if (before and not draft.filters) or _MISSING & around:
            draft.use(number)
            column = draft.column(number)
            op = "IS NOT NULL" if before and _MISSING & around else "IS NULL"
            draft.add_filter(mention.first, column, op, negated=False)
        elif present and not before:
            draft.use(number)
            draft.add_filter(mention.first, draft.column(number), "IS NOT NULL", negated=False)


def exclude(draft: Draft, query: Query, main: str) -> Query:
    """The query without the rows that the question denies."""
    denied = [found for found in draft.filters if found.negated]
    by_table: dict[str, list[Filter]] = {}
    for found in denied:
        table = found.column.table if found.column is not None else main
        by_table.setdefault(table, []).append(found)
    for table, group in by_table.items():
        conditions = tuple(found.condition for found in group)
        if draft.choose.pick([(True, 1.5 if table == main else 0.2), (False, 0.0 if table == main else 2.0)]):
            query = replace(query, where=(*query.where, *(negate(condition) for condition in conditions)))
        else:
            query = _without(draft, query, main, table, conditions)
    for _, table in draft.absent:
        if table != main and table not in by_table:
            query = _without(draft, query, main, table, ())
    return query


def _same_named(draft: Draft, query: Query, table: str) -> Field | None:
    """The denied table's own column of what is asked for, where the tables are not joined directly."""
    schema = draft.reading.schema
    if len(query.items) != 1 or query.items[0].column is None or query.items[0].aggregate or query.order:
        return None
    asked = query.items[0].column
    direct = any({edge.left.table, edge.right.table} == {asked.table, table} for edge in schema.edges)
    names_rows = asked == schema.display(asked.table)[0]
    return None if direct or asked.is_key or names_rows else schema.field(table, asked.name)


def _without(draft: Draft, query: Query, main: str, table: str, conditions: tuple[Condition, ...]) -> Query:
    """NOT IN along the way from the table asked for to the other; or EXCEPT on what is asked for."""
    schema = draft.reading.schema
    if table == main:
        key = schema.key(main)
        column = key if key is not None else schema.display(main)[0]
        inner = Query(items=(Item(column=column),), where=conditions)
        return replace(query, where=(*query.where, Condition(item=Item(column=column), op="NOT IN", query=inner)))
    plain = all(item.column is not None and not item.aggregate for item in query.items)
    if plain and not query.group and not query.order and conditions and draft.choose.pick([(False, 1.5), (True, 0.0)]):
        other = replace(query, where=conditions, joined=(table,))
        return replace(query, operation="EXCEPT", other=other)
    rival = _same_named(draft, query, table)
    if rival is not None and draft.choose.pick([(True, 1.5), (False, 0.5)]):
        return replace(query, operation="EXCEPT", other=Query(items=(Item(column=rival),), where=conditions))
    edge: Edge = path(schema, {main}, table)[0]
    inner = Query(items=(Item(column=edge.other(main)),), where=conditions, joined=(table,))
    return replace(query, where=(*query.where, Condition(item=Item(column=edge.end(main)), op="NOT IN", query=inner)))
