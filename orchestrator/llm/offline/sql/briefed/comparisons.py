"""Comparisons as a rule has them: with what, how exactly, and of what; see `rewrites`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.llm.offline.sql.logic import Condition, Item, Query
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.sql.quoting import text_literal


def _with_conditions(query: Query, change: Callable[[Condition], Condition]) -> Query:
    """Every comparison of a column with a literal, changed, also in subqueries."""

    def deep(condition: Condition) -> Condition:
        inner = None if condition.query is None else _with_conditions(condition.query, change)
        others = tuple(map(deep, condition.alternatives))
        own = change(condition) if condition.item.column is not None and condition.literals else condition
        return replace(own, query=inner, alternatives=others)

    other = None if query.other is None else _with_conditions(query.other, change)
    return replace(query, where=tuple(map(deep, query.where)), other=other)


def _text(condition: Condition) -> str | None:
    """The text that a condition compares with; None: it compares with none."""
    literal = condition.literals[0] if len(condition.literals) == 1 else ""
    is_text = len(literal) > 1 and literal[0] == literal[-1] == "'"
    return literal[1:-1].replace("''", "'") if is_text else None


def exact_values(query: Query, _: Reading) -> Query:
    """LIKE with a text that is known to be a whole value becomes equality."""

    def changed(condition: Condition) -> Condition:
        text = (_text(condition) or "").strip("%")
        column = condition.item.column
        known = (*column.matches, *column.examples) if column is not None else ()
        value = next((value for value in known if value.lower() == text.lower()), None)
        if condition.op not in {"LIKE", "NOT LIKE"} or value is None:
            return condition
        return replace(condition, op="=" if condition.op == "LIKE" else "!=", literals=(text_literal(value),))

    return _with_conditions(query, changed)


def like_values(query: Query, _: Reading) -> Query:
    """Equality with a text becomes LIKE."""

    def changed(condition: Condition) -> Condition:
        text = _text(condition)
        if condition.op not in {"=", "!="} or text is None:
            return condition
        op = "LIKE" if condition.op == "=" else "NOT LIKE"
        return replace(condition, op=op, literals=(text_literal(f"%{text}%"),))

    return _with_conditions(query, changed)


def ignore_case(query: Query, _: Reading) -> Query:
    """Equality with a text gets COLLATE NOCASE."""

    def changed(condition: Condition) -> Condition:
        if condition.op not in {"=", "!="} or _text(condition) is None:
            return condition
        return replace(condition, literals=(f"{condition.literals[0]} COLLATE NOCASE",))

    return _with_conditions(query, changed)


def values_as_said(query: Query, _: Reading) -> Query:
    """Texts lose the blanks around them that no question has."""

    def changed(condition: Condition) -> Condition:
        text = _text(condition)
        if text is None or condition.op not in {"=", "!="}:
            return condition
        return replace(condition, literals=(text_literal(text.strip()),))

    return _with_conditions(query, changed)


def skip_nulls(query: Query, _: Reading) -> Query:
    """What is ranked upwards must be there."""
    if query.limit is None or not query.order or query.group:
        return query
    item, descending = query.order[0]
    if descending or item.column is None or item.aggregate:
        return query
    present = Condition(item=Item(column=item.column), op="IS NOT NULL")
    return query if present in query.where else replace(query, where=(*query.where, present))


def cast_numbers(query: Query, _: Reading) -> Query:
    """Numbers in columns of text are cast where they are sorted or compared."""

    def cast(item: Item) -> Item:
        column = item.column
        if column is None or item.aggregate or not column.is_number:
            return item
        if not any(part in column.type.lower() for part in ("char", "text", "string", "clob")):
            return item
        return Item(parts=("CAST(", column, " AS REAL)"))

    def changed(condition: Condition) -> Condition:
        if condition.op not in {"<", ">", "<=", ">=", "BETWEEN"} or _text(condition) is not None:
            return condition
        return replace(condition, item=cast(condition.item))

    order = tuple((cast(item), down) for item, down in query.order)
    return replace(_with_conditions(query, changed), order=order)
