"""Queries as values: the logical form that derivations build."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.llm.offline.sql.schema import Edge, Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something selected, ordered by or compared: a column, or an aggregate of one (or of rows)."""

    column: Field | None = None
    """None: the row itself (`*`)."""
    aggregate: str = ""
    distinct: bool = False
    """COUNT(DISTINCT ...)"""
    parts: tuple[str | Field, ...] = ()
    """An expression instead, in pieces of SQL text and columns."""

    @property
    def columns(self) -> tuple[Field, ...]:
        """The columns it reads."""
        inner = tuple(part for part in self.parts if isinstance(part, Field))
        return inner if self.column is None else (self.column, *inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A comparison of an item with literals or with a subquery."""

    item: Item
    op: str
    """`=`, `!=`, `<`, ..., `BETWEEN`, `LIKE`, `NOT LIKE`, `IN`, `NOT IN`, `IS NULL`, `IS NOT NULL`."""
    literals: tuple[str, ...] = ()
    """SQL literals."""
    query: Query | None = None
    alternatives: tuple[Condition, ...] = ()
    """Others joined to this one with OR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One SELECT, or two of them with a set operation between."""

    items: tuple[Item, ...]
    distinct: bool = False
    where: tuple[Condition, ...] = ()
    group: tuple[Field, ...] = ()
    having: tuple[Condition, ...] = ()
    order: tuple[tuple[Item, bool], ...] = ()
    """(what, descending)"""
    limit: int | None = None
    joined: tuple[str, ...] = ()
    """Tables that must be there beside those of the columns."""
    edges: tuple[Edge, ...] = ()
    """Edges to prefer where several connect two tables."""
    avoided: tuple[str, ...] = ()
    """Tables that no path may lead over."""
    operation: str = ""
    """`INTERSECT`, `EXCEPT` or `UNION` with `other`."""
    other: Query | None = None


def tables_of(query: Query) -> tuple[str, ...]:
    """The tables a query needs in its FROM, in the order of their first use; those of subqueries are not among them."""
    found: dict[str, None] = {}
    parts = [query.items, [c.item for c in all_conditions(query)], [item for item, _ in query.order]]
    for items in parts:
        for item in items:
            for column in item.columns:
                found.setdefault(column.table)
    for column in query.group:
        found.setdefault(column.table)
    for table in query.joined:
        found.setdefault(table)
    return tuple(found)


def all_conditions(query: Query) -> list[Condition]:
    """Those of WHERE and HAVING with their alternatives."""
    flat: list[Condition] = []
    for condition in (*query.where, *query.having):
        flat.append(condition)
        flat.extend(condition.alternatives)
    return flat
