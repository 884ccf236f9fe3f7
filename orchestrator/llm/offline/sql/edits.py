"""Repairs carried out: a query changed so that it does what one demand asks for.

Derivations can only reach what the grammar proposes for a question; a repair starts from a query that is nearly right
and changes the one thing that a critic names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orchestrator.llm.offline.sql import restructuring
from orchestrator.llm.offline.sql.demands import Demand, same_value
from orchestrator.llm.offline.sql.draft import negate
from orchestrator.llm.offline.sql.logic import Condition, Item, Query, tables_of
from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.sql.quoting import text_literal


@dataclass(frozen=True, slots=True)
class _Case:
    """What is to be repaired."""

    query: Query
    demand: Demand
    schema: SchemaView


_Edit = Callable[[_Case], list[Query]]
_MAX_WAYS = 6


def repairs_of(query: Query, demand: Demand, schema: SchemaView) -> list[Query]:
    """The query after one repair, in each way there is; empty: the demand is none that this knows how to meet."""
    edit = _EDITS.get(demand.kind)
    changed = [] if edit is None else edit(_Case(query, demand, schema))
    return [other for other in dict.fromkeys(changed) if other != query and other.items][:_MAX_WAYS]


def _with_output(case: _Case) -> list[Query]:
    """Return the column instead of one that is called the same, or beside the others."""
    column = case.demand.column
    if column is None or any(item.column == column for item in case.query.items):
        return []
    changed = [
        _replace_item(case.query, place, replace(item, column=column))
        for place, item in enumerate(case.query.items)
        if item.column is not None
        and (restructuring.may_be_mistaken(item.column, column) or len(case.query.items) == 1)
    ]
    is_fuller = any(restructuring.is_part(c, column) for item in case.query.items for c in item.columns)
    if not case.query.group and not is_fuller:
        changed.append(replace(case.query, items=(*case.query.items, Item(column=column))))
        changed.append(replace(case.query, items=(Item(column=column), *case.query.items)))
    return changed


def _with_use(case: _Case) -> list[Query]:
    """Use the column somewhere: as output, as measure, or in a condition on its namesake."""
    column = case.demand.column
    if column is None:
        return []
    changed = [*restructuring.with_column(case.query, column), *_with_output(case)]
    if case.query.order and case.query.order[0][0].column is not None:
        changed.append(replace(case.query, order=((Item(column=column), case.query.order[0][1]),)))
    for place, condition in enumerate(case.query.where):
        if condition.item.column is not None and condition.query is None and condition.item.column != column:
            changed.append(_replace_condition(case.query, place, replace(condition, item=Item(column=column))))
    return changed


def _replace_condition(query: Query, place: int, condition: Condition) -> Query:
    return replace(query, where=(*query.where[:place], condition, *query.where[place + 1 :]))


def _replace_item(query: Query, place: int, item: Item) -> Query:
    items = (*query.items[:place], item, *query.items[place + 1 :])
    return replace(query, items=items)


def _without_output(case: _Case) -> Query | None:
    items = tuple(item for item in case.query.items if item.column != case.demand.column)
    return replace(case.query, items=items) if items else None


def _with_width(case: _Case) -> list[Query]:
    """Fewer columns: each only once, then without any one of them."""
    items = tuple(dict.fromkeys(case.query.items))
    wanted = int(case.demand.text) if case.demand.text.isdigit() else 0
    if not 0 < wanted < len(case.query.items):
        return []
    if wanted == len(items):
        return [replace(case.query, items=items)]
    if wanted == len(items) - 1:
        return [replace(case.query, items=(*items[:n], *items[n + 1 :])) for n in reversed(range(len(items)))]
    return [replace(case.query, items=items[:wanted])]


def _compared(case: _Case) -> list[Query]:
    """Another operator in one of the comparisons with a number."""
    if case.demand.text not in {"<", ">", "<=", ">=", "="}:
        return []
    return [
        _replace_condition(case.query, place, replace(condition, op=case.demand.text))
        for place, condition in enumerate(case.query.where)
        if condition.query is None and len(condition.literals) == 1 and not condition.literals[0].startswith("'")
    ]


def _excluded(case: _Case) -> list[Query]:
    """One of the conditions turned round, or rows left out of which something is unknown."""
    turned = [
        _replace_condition(case.query, place, negate(condition))
        for place, condition in enumerate(case.query.where)
        if condition.op in {"=", "LIKE", "IN"}
    ]
    return [*turned, *restructuring.without_nulls(case.query)]


def _excepted(case: _Case) -> list[Query]:
    return restructuring.excepted(case.query)


def _included(case: _Case) -> list[Query]:
    """One of the denied conditions turned round, or left out."""
    return [
        changed
        for place, condition in enumerate(case.query.where)
        if condition.op in {"!=", "NOT LIKE", "NOT IN"}
        for changed in (
            _replace_condition(case.query, place, negate(condition)),
            replace(case.query, where=(*case.query.where[:place], *case.query.where[place + 1 :])),
        )
    ]


def _grouped(case: _Case) -> Query | None:
    plain = tuple(item.column for item in case.query.items if item.column is not None and not item.aggregate)
    return replace(case.query, group=plain) if plain and not case.query.group else None


def _limited(case: _Case) -> Query | None:
    return replace(case.query, limit=1) if case.query.order and case.query.limit is None else None


def _with_function(case: _Case) -> Query | None:
    name = case.demand.text.upper()
    if name == "COUNT":
        items = tuple(item for item in case.query.items if item.aggregate or item.column in case.query.group)
        return replace(case.query, items=(*items, Item(aggregate="COUNT")), order=(), limit=None, distinct=False)
    if name not in {"AVG", "SUM", "MIN", "MAX"}:
        return None
    for place, item in enumerate(case.query.items):
        if item.column is not None and item.column.is_number and not item.aggregate and not item.column.is_key:
            return replace(_replace_item(case.query, place, replace(item, aggregate=name)), order=(), limit=None)
    return None


def _without_function(case: _Case) -> Query | None:
    name = case.demand.text.upper()
    items = tuple(
        replace(item, aggregate="", distinct=False) if item.aggregate == name else item
        for item in case.query.items
        if item.aggregate != name or item.column is not None
    )
    return replace(case.query, items=items) if items else None


def _with_value(case: _Case) -> Query | None:
    """A condition on a value: that of another column is moved, otherwise one is added."""
    column = case.demand.column or _holder(case.demand.text, case.schema)
    if column is None:
        return None
    for place, condition in enumerate(case.query.where):
        if any(same_value(literal.strip("'"), case.demand.text) for literal in condition.literals):
            moved = replace(condition, item=replace(condition.item, column=column))
            return replace(case.query, where=(*case.query.where[:place], moved, *case.query.where[place + 1 :]))
    literal = text_literal(case.demand.text) if not column.is_number else case.demand.text
    added = Condition(item=Item(column=column), op="=", literals=(literal,))
    return replace(case.query, where=(*case.query.where, added))


def _holder(value: str, schema: SchemaView) -> Field | None:
    """The first column in which a value is known."""
    known = (c for c in schema.fields() if any(same_value(value, v) for v in (*c.matches, *c.examples)))
    return next(known, None)


def _without_value(case: _Case) -> Query | None:
    """The condition on another column in which the value is known, or none at all."""
    kept = tuple(
        condition
        for condition in case.query.where
        if condition.item.column != case.demand.column
        or not any(same_value(literal.strip("'"), case.demand.text) for literal in condition.literals)
    )
    if len(kept) == len(case.query.where):
        return None
    for column in case.schema.fields():
        if column != case.demand.column and any(same_value(case.demand.text, value) for value in column.matches):
            added = Condition(item=Item(column=column), op="=", literals=(text_literal(case.demand.text),))
            return replace(case.query, where=(*kept, added))
    return replace(case.query, where=kept)


def _turned(case: _Case) -> Query | None:
    down = case.demand.kind == "descending"
    return replace(case.query, order=tuple((item, down) for item, _ in case.query.order)) if case.query.order else None


def _ordered_by(case: _Case) -> Query | None:
    if case.demand.column is None:
        return None
    down = case.query.order[0][1] if case.query.order else False
    return replace(case.query, order=((Item(column=case.demand.column), down),))


def _unlimited(case: _Case) -> Query | None:
    return replace(case.query, limit=None, order=()) if case.query.limit is not None else None


def _ungrouped(case: _Case) -> Query | None:
    return replace(case.query, group=(), having=())


def _counted(case: _Case) -> Query | None:
    return restructuring.counted(case.query)


def _counted_rows(case: _Case) -> Query | None:
    rows = Item(aggregate="COUNT")
    return replace(case.query, items=tuple(rows if item.distinct else item for item in case.query.items))


def _counted_values(case: _Case) -> Query | None:
    tables = tables_of(case.query)
    key = case.schema.key(tables[0]) if tables else None
    items = tuple(
        replace(item, column=item.column or key, distinct=True)
        if item.aggregate == "COUNT" and (item.column or key) is not None
        else item
        for item in case.query.items
    )
    return replace(case.query, items=items)


def _distinct(case: _Case) -> Query | None:
    return replace(case.query, distinct=case.demand.kind == "distinct")


def _without_table(case: _Case) -> list[Query]:
    return restructuring.avoiding(case.query, case.demand.table, case.schema)


def _with_table(case: _Case) -> Query | None:
    return replace(case.query, joined=tuple(dict.fromkeys((*case.query.joined, case.demand.table))))


def _one(edit: Callable[[_Case], Query | None]) -> _Edit:
    """An edit for which there is one way at most."""

    def edits(case: _Case) -> list[Query]:
        changed = edit(case)
        return [] if changed is None else [changed]

    return edits


_EDITS: Mapping[str, _Edit] = {
    "output": _with_output,
    "use": _with_use,
    "no-output": _one(_without_output),
    "columns": _with_width,
    "operator": _compared,
    "exclude": _excluded,
    "no-exclude": _included,
    "except": _excepted,
    "group": _one(_grouped),
    "extreme": _one(_limited),
    "function": _one(_with_function),
    "no-function": _one(_without_function),
    "value": _one(_with_value),
    "column-value": _one(_with_value),
    "no-value": _one(_without_value),
    "descending": _one(_turned),
    "ascending": _one(_turned),
    "order-by": _one(_ordered_by),
    "no-limit": _one(_unlimited),
    "no-group": _one(_ungrouped),
    "count-order": _one(_counted),
    "count-rows": _one(_counted_rows),
    "count-distinct": _one(_counted_values),
    "distinct": _one(_distinct),
    "no-distinct": _one(_distinct),
    "join": _one(_with_table),
    "no-join": _without_table,
}
