"""Changes of a whole query: a column replaced wherever it stands, other groups, EXCEPT for NOT IN, another path."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.llm.offline.sql.logic import Condition, Item, Query, all_conditions, tables_of
from orchestrator.llm.offline.sql.schema import Field, SchemaView


def replaced(query: Query, old: Field, new: Field) -> Query:
    """The query with another column in the place of one; tables that only the old one needed are left out."""

    def other(item: Item) -> Item:
        parts = tuple(new if part == old else part for part in item.parts)
        return replace(item, column=new if item.column == old else item.column, parts=parts)

    def changed(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(replace(c, item=other(c.item), alternatives=changed(c.alternatives)) for c in conditions)

    return replace(
        query,
        items=tuple(other(item) for item in query.items),
        where=changed(query.where),
        having=changed(query.having),
        group=tuple(new if column == old else column for column in query.group),
        order=tuple((other(item), down) for item, down in query.order),
        joined=tuple(table for table in query.joined if table != old.table),
    )


def with_column(query: Query, column: Field) -> list[Query]:
    """The query with the column instead of one that may be mistaken for it, or with rows grouped by it."""
    items = [*query.items, *(item for item, _ in query.order), *(c.item for c in all_conditions(query))]
    there = dict.fromkeys(found for item in items for found in item.columns)
    rivals = [found for found in there if found != column and may_be_mistaken(found, column)]
    ways = [replaced(query, found, column) for found in rivals]
    if query.group and column not in query.group and (query.having or query.order):
        ways.append(replace(query, group=(column,)))
    return ways


def may_be_mistaken(found: Field, column: Field) -> bool:
    """`name` for `song_name`, `age` for `pet_age`."""
    return found.words[-1:] == column.words[-1:] or is_part(found, column)


def is_part(found: Field, column: Field) -> bool:
    """Whether a name says less than another: `name` than `song_name`."""
    return set(found.words) < set(column.words)


def without_nulls(query: Query) -> list[Query]:
    """No rows whose group, or else whose first column, is unknown."""
    columns = query.group or tuple(item.column for item in query.items if item.column is not None)
    denied = [Condition(item=Item(column=column), op="IS NOT NULL") for column in columns[:1]]
    return [replace(query, where=(*query.where, condition)) for condition in denied if condition not in query.where]


def counted(query: Query) -> Query | None:
    """Groups ordered by their number of rows; None: nothing plain is returned that rows could be grouped by.

    What ordered the rows before is dropped, but its table stays: its rows are those that are counted.
    """
    plain = tuple(item.column for item in query.items if item.column is not None and not item.aggregate)
    if not plain:
        return None
    down = query.order[0][1] if query.order else True
    ordered = (column.table for item, _ in query.order for column in item.columns)
    return replace(
        query,
        group=query.group or plain,
        order=((Item(aggregate="COUNT"), down),),
        limit=query.limit or 1,
        distinct=False,
        joined=tuple(dict.fromkeys((*query.joined, *ordered))),
    )


def excepted(query: Query) -> list[Query]:
    """What is asked for less what the denied rows give: EXCEPT instead of each NOT IN and each condition denied."""
    ways: list[Query] = []
    if query.operation or query.group:
        return ways
    for place, condition in enumerate(query.where):
        rest = replace(query, where=(*query.where[:place], *query.where[place + 1 :]), order=(), limit=None)
        inner = condition.query
        if condition.op == "NOT IN" and inner is not None and not inner.group and not inner.operation:
            tables = dict.fromkeys((*rest.joined, *tables_of(inner)))
            other = replace(rest, where=(*rest.where, *inner.where), joined=tuple(tables))
        elif condition.op in {"!=", "NOT LIKE"}:
            opposite = {"!=": "=", "NOT LIKE": "LIKE"}[condition.op]
            other = replace(rest, where=(*rest.where, replace(condition, op=opposite)))
        else:
            continue
        ways.append(replace(rest, operation="EXCEPT", other=other))
    return ways


def avoiding(query: Query, table: str, schema: SchemaView) -> list[Query]:
    """The query without a table; where it only connects two others, without those that connect them likewise too."""
    kept = tuple(other for other in query.joined if other != table)
    if kept != query.joined:
        return [replace(query, joined=kept)]
    ends = neighbours(schema, table)
    alike = [t for t in schema.tables if t not in tables_of(query) and len(ends & neighbours(schema, t)) > 1]
    ways = [(*query.avoided, table), (*query.avoided, table, *alike)]
    return [replace(query, avoided=tuple(dict.fromkeys(tables))) for tables in ways]


def neighbours(schema: SchemaView, table: str) -> set[str]:
    """The tables that a key connects with one."""
    return {edge.other(table).table for edge in schema.edges if table in {edge.left.table, edge.right.table}}
