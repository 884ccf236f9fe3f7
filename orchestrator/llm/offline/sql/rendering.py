"""From logical form to SQL text: joins along the edges of the schema, names quoted where they must be."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from orchestrator.llm.offline.sql.logic import Condition, Item, Query, tables_of
from orchestrator.llm.offline.sql.schema import Edge, Field, SchemaView
from orchestrator.sql.quoting import identifier


class Unconnected(Exception):
    """Two tables of a query cannot be joined, or it needs none."""


def render(query: Query, schema: SchemaView) -> str:
    """The query on one line.

    Raises:
        Unconnected: Its tables cannot be joined.
    """
    text = _select(query, schema)
    if query.other is not None:
        text += f" {query.operation} {_select(query.other, schema)}"
    return text


def path(
    schema: SchemaView, start: set[str], goal: str, preferred: Sequence[Edge] = (), avoided: Sequence[str] = ()
) -> list[Edge]:
    """The cheapest edges from any of the tables in `start` to `goal`; preferred edges cost half, avoided tables bar.

    Raises:
        Unconnected: There is none.
    """
    waiting: list[tuple[float, int, str, list[Edge]]] = [(0.0, n, table, []) for n, table in enumerate(sorted(start))]
    seen: set[str] = set()
    pushed = len(waiting)
    while waiting:
        cost, _, table, edges = heapq.heappop(waiting)
        if table == goal:
            return edges
        if table in seen or (table in avoided and edges):
            continue
        seen.add(table)
        for edge in schema.edges:
            if table not in {edge.left.table, edge.right.table}:
                continue
            step = edge.weight * (0.5 if edge in preferred else 1.0)
            pushed += 1
            heapq.heappush(waiting, (cost + step, pushed, edge.other(table).table, [*edges, edge]))
    raise Unconnected(goal)


def join_tree(query: Query, schema: SchemaView) -> tuple[list[str], list[Edge]]:
    """Tables in the order in which they are joined, and the edge that each but the first hangs on.

    Raises:
        Unconnected: They cannot be joined.
    """
    needed = tables_of(query)
    if not needed:
        raise Unconnected("")
    tables, edges = [needed[0]], []
    for goal in needed[1:]:
        if goal in tables:
            continue
        table_at = None
        for edge in path(schema, set(tables), goal, query.edges, query.avoided):
            here = (
                table_at
                if table_at is not None
                else (edge.left.table if edge.left.table in tables else edge.right.table)
            )
            new = edge.other(here).table
            if new not in tables:
                tables.append(new)
                edges.append(edge)
            table_at = new
    return tables, edges


def _select(query: Query, schema: SchemaView) -> str:
    tables, edges = join_tree(query, schema)
    names = {table: f"T{number}" for number, table in enumerate(tables, 1)} if len(tables) > 1 else {}
    source = _source(tables, edges, names)
    items = ", ".join(_item(item, names) for item in query.items)
    parts = [f"SELECT {'DISTINCT ' if query.distinct else ''}{items} FROM {source}"]  # noqa: S608 - a query is what this makes; it is run sealed
    if query.where:
        parts.append("WHERE " + " AND ".join(_condition(c, names, schema, among=len(query.where)) for c in query.where))
    if query.group:
        parts.append("GROUP BY " + ", ".join(_column(column, names) for column in query.group))
    if query.having:
        parts.append("HAVING " + " AND ".join(_condition(c, names, schema, among=2) for c in query.having))
    if query.order:
        parts.append(
            "ORDER BY " + ", ".join(f"{_item(item, names)}{' DESC' if down else ' ASC'}" for item, down in query.order)
        )
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    return " ".join(parts)


def _source(tables: Sequence[str], edges: Sequence[Edge], names: Mapping[str, str]) -> str:
    def named(table: str) -> str:
        return identifier(table) + (f" AS {names[table]}" if names else "")

    text = named(tables[0])
    for table, edge in zip(tables[1:], edges, strict=True):
        text += f" JOIN {named(table)} ON {_column(edge.other(table), names)} = {_column(edge.end(table), names)}"
    return text


def _column(column: Field, names: Mapping[str, str]) -> str:
    prefix = f"{names[column.table]}." if column.table in names else ""
    return prefix + identifier(column.name)


def _item(item: Item, names: Mapping[str, str]) -> str:
    if item.parts:
        return "".join(part if isinstance(part, str) else _column(part, names) for part in item.parts)
    name = "*" if item.column is None else _column(item.column, names)
    if not item.aggregate:
        return name
    return f"{item.aggregate}({'DISTINCT ' if item.distinct else ''}{name})"


def _condition(condition: Condition, names: Mapping[str, str], schema: SchemaView, *, among: int) -> str:
    texts = [_comparison(condition, names, schema)]
    texts.extend(_comparison(other, names, schema) for other in condition.alternatives)
    text = " OR ".join(texts)
    return f"({text})" if len(texts) > 1 and among > 1 else text


def _comparison(condition: Condition, names: Mapping[str, str], schema: SchemaView) -> str:
    left = _item(condition.item, names)
    if condition.query is not None:
        return f"{left} {condition.op} ({render(condition.query, schema)})"
    if condition.op in {"BETWEEN", "NOT BETWEEN"}:
        return f"{left} {condition.op} {condition.literals[0]} AND {condition.literals[1]}"
    if condition.op in {"IN", "NOT IN"}:
        return f"{left} {condition.op} ({', '.join(condition.literals)})"
    return " ".join((left, condition.op, *condition.literals))
