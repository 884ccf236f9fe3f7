"""How much likelier or less likely a query is under a rule; nats."""

from __future__ import annotations

from orchestrator.llm.offline.sql.logic import Query, all_conditions
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rendering import Unconnected, join_tree

_STRONG = 4.0
_TABLE = 1.0
_CONTAINING = frozenset(["contain", "contains", "containing", "include", "includes", "including", "substring", "word"])


def evidence_literally(query: Query, reading: Reading) -> float:
    """For each formula and condition of the evidence that is used."""
    items = [*query.items, *(item for item, _ in query.order)]
    placed = {(c.item, c.op, c.literals) for c in all_conditions(query)}
    used = 0
    for statement in reading.hint.statements:
        used += statement.formula is not None and statement.formula in items
        used += sum((c.item, c.op, c.literals) in placed for c in statement.conditions)
    return _STRONG * used


def contain_like(query: Query, reading: Reading) -> float:
    """For LIKE where the question speaks of parts of texts."""
    if _CONTAINING.isdisjoint(reading.lows):
        return 0.0
    return _STRONG * any(condition.op in {"LIKE", "NOT LIKE"} for condition in all_conditions(query))


def not_in(query: Query, _: Reading) -> float:
    """Against EXCEPT."""
    return -_STRONG * (query.operation == "EXCEPT")


def with_except(query: Query, _: Reading) -> float:
    """Against NOT IN with a query."""
    return -_STRONG * any(c.op == "NOT IN" and c.query is not None for c in all_conditions(query))


def fewest_tables(query: Query, reading: Reading) -> float:
    """Against every table but the first."""
    try:
        return -_TABLE * (len(join_tree(query, reading.schema)[0]) - 1)
    except Unconnected:
        return 0.0
