"""The statements that make a kept table, fill it and index it."""

from __future__ import annotations

from collections.abc import Iterator

from definitions import type_text
from plans import Plan
from survey import Column, Index, fold, quoted

_TYPES_IN_A_TERM = 100
"""Few enough for SQLite's limit on the depth of an expression, many enough for its limit on terms (see `plans`)."""


def create_table(plan: Plan, *, bare: bool = False) -> str:
    """CREATE TABLE.

    Args:
        plan: What of the table is kept.
        bare: Without its constraints, for rows that do not keep them.
    """
    parts = [_column(plan, column, bare=bare) for column in plan.columns]
    if not bare:
        parts += [*_keys(plan), *_references(plan)]
    options = [word for word, holds in (("WITHOUT ROWID", plan.without_rowid), ("STRICT", plan.table.strict)) if holds]
    body = ",\n  ".join(parts)
    end = f" {', '.join(options)}" if options and not bare else ""
    return f"CREATE TABLE {quoted(plan.table.name)} (\n  {body}\n){end}"


def insert(plan: Plan, source: str) -> str:
    """INSERT SELECT of the kept columns from the attached database `source`."""
    columns = ", ".join(quoted(column.name) for column in plan.columns)
    # With the table's name before it, a name in double quotes can never be read as a string.
    values = ", ".join(_value(plan, column) for column in plan.columns)
    order = f" ORDER BY {', '.join(_terms(plan))}" if plan.order else ""
    table = quoted(plan.table.name)
    # Nothing but quoted names.
    return f"INSERT INTO main.{table} ({columns}) SELECT {values} FROM {source}.{table} AS old NOT INDEXED{order}"  # noqa: S608


def create_indexes(plan: Plan) -> Iterator[tuple[Index, str]]:
    """CREATE INDEX for every index that no constraint makes."""
    for index in plan.indexes:
        if index.origin == "c":
            unique = "UNIQUE " if index.unique else ""
            yield index, f"CREATE {unique}INDEX {quoted(index.name)} ON {quoted(plan.table.name)} ({_key(plan, index)})"


def _column(plan: Plan, column: Column, *, bare: bool) -> str:
    parts = [quoted(column.name)]
    if declared := type_text(column.type):
        parts.append(declared)
    if column.name == plan.row_number:
        parts.append("PRIMARY KEY")
    elif not bare and _is_false_row_number(plan, column):
        parts.append("PRIMARY KEY DESC")
    if column.not_null and not bare and not column.generated:
        parts.append("NOT NULL")
    if column.name in plan.defaults:
        parts.append(f"DEFAULT {plan.defaults[column.name]}")
    if column.name in plan.collations:
        parts.append(f"COLLATE {plan.collations[column.name].upper()}")
    return " ".join(parts)


def _is_false_row_number(plan: Plan, column: Column) -> bool:
    """Whether it is an INTEGER PRIMARY KEY that is no other name of the row's number, which DESC alone can say."""
    is_alone = plan.table.primary_key == (column.name,) and fold(column.type) == "integer"
    return is_alone and plan.row_number is None and not plan.table.without_rowid


def _keys(plan: Plan) -> Iterator[str]:
    for index in plan.indexes:
        if index.origin == "u":
            yield f"UNIQUE ({_key(plan, index)})"
        elif index.origin == "pk" and not any(_is_false_row_number(plan, column) for column in plan.columns):
            yield f"PRIMARY KEY ({_key(plan, index)})"


def _references(plan: Plan) -> Iterator[str]:
    for key in plan.foreign_keys:
        columns = ", ".join(map(quoted, key.columns))
        references = f" ({', '.join(map(quoted, key.references))})" if key.references else ""
        yield f"FOREIGN KEY ({columns}) REFERENCES {quoted(key.table)}{references}"


def _key(plan: Plan, index: Index) -> str:
    parts = []
    for column in index.columns:
        name = str(column.name)  # an index over an expression is not in a plan
        is_declared = fold(column.collation) == plan.collations.get(name, "binary")
        collation = "" if is_declared else f" COLLATE {fold(column.collation).upper()}"
        parts.append(f"{quoted(name)}{collation}{' DESC' if column.descending else ''}")
    return ", ".join(parts)


def _value(plan: Plan, column: Column) -> str:
    """A value as it is; but a zero loses its sign, which no comparison sees, where comparing puts rows in order."""
    value = f"old.{quoted(column.name)}"
    if not plan.order or not plan.type_matters(column):
        return value
    return f"CASE WHEN typeof({value}) = 'real' AND {value} = 0 THEN 0.0 ELSE {value} END"


def _terms(plan: Plan) -> list[str]:
    """Terms that leave no two different rows as equals: bytes, not collations, and types where they matter."""
    names = [f"old.{quoted(name)} COLLATE BINARY" for name in plan.order]
    types = [f"typeof(old.{quoted(column.name)})" for column in plan.columns if plan.type_matters(column)]
    # No name of a type is the beginning of another one, so those of many columns can be written as one.
    steps = range(0, len(types), _TYPES_IN_A_TERM)
    return names + [" || ".join(types[step : step + _TYPES_IN_A_TERM]) for step in steps]
