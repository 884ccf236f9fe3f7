"""Which tables and columns a query names, for people; what it may read is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from orchestrator.domain.data_access import folded
from orchestrator.domain.sql import Schema, Table
from orchestrator.sql.gate import Statement


def named_columns(statement: Statement, schema: Schema) -> dict[str, tuple[str, ...]]:
    """Tables and views that a query names, each with the columns it may take from them, as the schema writes them.

    A name without a table counts for every table named in the query that has such a column, and `*` for all columns;
    so this may say too much, and never too little. A common table expression hides a table of its name.

    Args:
        statement: A query that passed the gate.
        schema: Of the database it is for.
    """
    tables = {folded(table.name): table for table in schema.tables}
    ctes = {folded(cte.alias) for cte in statement.tree.find_all(exp.CTE)}
    sources: dict[str, set[str]] = {}
    for node in statement.tree.find_all(exp.Table):
        name = folded(node.name)
        if name in tables and name not in ctes:
            sources.setdefault(name, set()).update({name, folded(node.alias_or_name)})
    columns = [(folded(node.table), node) for node in statement.tree.find_all(exp.Column)]
    takes_all = any(isinstance(star.parent, exp.Select) for star in statement.tree.find_all(exp.Star))
    return {
        tables[name].name: _named(tables[name], qualifiers, columns, takes_all=takes_all)
        for name, qualifiers in sources.items()
    }


def named_absent(statement: Statement, absent: Mapping[str, str]) -> str | None:
    """Why a table or view that a query names is not there; None: it names none of them.

    Args:
        statement: A query that passed the gate.
        absent: Name as `folded` gives it to the reason. A common table expression of that name stands for itself.
    """
    ctes = {folded(cte.alias) for cte in statement.tree.find_all(exp.CTE)}
    names = (folded(node.name) for node in statement.tree.find_all(exp.Table))
    return next((absent[name] for name in names if name in absent and name not in ctes), None)


def _named(
    table: Table, qualifiers: set[str], columns: list[tuple[str, exp.Column]], *, takes_all: bool
) -> tuple[str, ...]:
    mine = [node for qualifier, node in columns if not qualifier or qualifier in qualifiers]
    if takes_all or any(isinstance(node.this, exp.Star) for node in mine):
        return tuple(column.name for column in table.columns)
    wanted = {folded(node.name) for node in mine}
    return tuple(column.name for column in table.columns if folded(column.name) in wanted)
