"""One derivation: from a reading to a query, every doubtful decision a pick."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.llm.offline.sql import comparing, filters, outputs, ranking
from orchestrator.llm.offline.sql.absence import absent_tables, absent_values, exclude
from orchestrator.llm.offline.sql.choices import Chooser
from orchestrator.llm.offline.sql.conditions import Combined, combine
from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.logic import Condition, Item, Query, tables_of
from orchestrator.llm.offline.sql.outputs import Outputs
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rendering import Unconnected, join_tree, path
from orchestrator.llm.offline.sql.schema import Edge, Field
from orchestrator.llm.offline.sql.words import likeness, name_words


def derive(reading: Reading, choose: Chooser) -> Query:
    """A query for the question.

    Raises:
        Unconnected: Its tables cannot be joined.
    """
    draft = Draft(reading, choose)
    filters.hint_filters(draft)
    filters.value_filters(draft)
    comparing.comparison_filters(draft)
    ranking.superlative_orders(draft)
    comparing.number_filters(draft)
    filters.quoted_filters(draft)
    filters.word_filters(draft)
    ranking.ordering(draft)
    absent_tables(draft)
    absent_values(draft)
    filters.flag_filters(draft)
    asked = outputs.read_outputs(draft)
    return _assemble(draft, asked)


def _assemble(draft: Draft, asked: Outputs) -> Query:
    items = tuple(outputs.with_group_columns(draft, asked))
    main = _main_table(draft, asked)
    combined = combine(draft, is_aggregate=asked.has_aggregate())
    query = Query(items=items, where=combined.conditions, distinct=_is_distinct(draft, asked))
    query = _grouped(draft, asked, query, main)
    query = _ranked(draft, asked, query, main)
    query = exclude(draft, query, main)
    query = replace(query, joined=_joined(draft, query, main), edges=_edges(draft))
    _charge_joins(draft, query)
    return _with_operation(_in_both_tables(draft, query), combined)


def _in_both_tables(draft: Draft, query: Query) -> Query:
    """`cities that have both customers and warehouses`: one column that two tables have, in rows of either."""
    lows = draft.reading.lows
    if "both" not in lows or len(query.items) != 1 or query.items[0].column is None or query.where:
        return query
    asked = query.items[0].column
    named = [table for table in draft.reading.tables if draft.reading.schema.field(table, asked.name) is not None]
    if len(named) < 2 or asked.is_key or query.items[0].aggregate:
        return query
    first, second = (draft.reading.schema.field(table, asked.name) for table in named[:2])
    if not draft.choose.pick([(True, 2.0), (False, 0.0)]):
        return query
    right = Query(items=(Item(column=second),))
    return replace(query, items=(Item(column=first),), joined=(), operation="INTERSECT", other=right)


def _charge_joins(draft: Draft, query: Query) -> None:
    """Tables that the question does not speak of make a query less likely; those that only connect, hardly."""
    schema = draft.reading.schema
    spoken = {m.targets[0].table for m in draft.reading.mentions} if len(tables_of(query)) > 1 else set()
    tables, _ = join_tree(query, schema)
    for table in tables[1:]:
        connects = all(column.is_key for column in schema.tables[table]) or table not in tables_of(query)
        draft.choose.charge(0.2 if connects else 0.3 if table in spoken else 1.2)


def _main_table(draft: Draft, asked: Outputs) -> str:
    """Counted rows first, then the table of the first column asked for, then that of the first filter."""
    if draft.counted is not None and not asked.columns() and not asked.group:
        return draft.counted
    for _, item in sorted(asked.items, key=lambda pair: pair[0]):
        if item.columns:
            return item.columns[0].table
    named = [draft.counted] if draft.counted else []
    named += [f.column.table for f in draft.filters if f.column is not None]
    named += [m.targets[0].table for m in draft.reading.mentions]
    return named[0] if named else next(iter(draft.reading.schema.tables))


def _is_distinct(draft: Draft, asked: Outputs) -> bool:
    if asked.has_aggregate() or draft.order:
        return False
    if asked.distinct:
        return draft.choose.pick([(True, 3.0), (False, 0.0)])
    return draft.choose.pick([(False, 2.0), (True, 0.0)])


def _grouped(draft: Draft, asked: Outputs, query: Query, main: str) -> Query:
    """GROUP BY and HAVING, where the question names groups, mixes columns with aggregates, or compares counts."""
    plain = tuple(dict.fromkeys(i.column for i in query.items if i.column is not None and not i.aggregate))
    having = tuple(found.condition for found in draft.counts)
    needed = bool(having) or draft.orders_groups or any(i.aggregate or i.parts for i in query.items)
    if having and not plain and asked.has_aggregate() and not asked.group and draft.counted not in {None, main}:
        return _of_groups(draft, query, main, having)
    if asked.group and needed:
        group = tuple(asked.group)
    elif having or draft.orders_groups or (plain and any(item.aggregate for item in query.items)):
        group = _entity(draft, plain, main)
    else:
        if asked.group and not needed and draft.choose.pick([(False, 1.0), (True, 0.0)]):
            return replace(query, group=tuple(asked.group))
        return query
    return replace(query, group=group, having=having, distinct=False)


def _of_groups(draft: Draft, query: Query, main: str, having: tuple[Condition, ...]) -> Query:
    """An aggregate over the rows that have so many others: `the average age of guests with at least 3 stays`."""
    counted = draft.counted or main
    edge = path(draft.reading.schema, {main}, counted)[0]
    inner = edge.other(main)
    groups = Query(items=(Item(column=inner),), group=(inner,), having=having, joined=(counted,))
    return replace(query, where=(*query.where, Condition(item=Item(column=edge.end(main)), op="IN", query=groups)))


def _entity(draft: Draft, plain: tuple[Field, ...], main: str) -> tuple[Field, ...]:
    """What rows are counted per: the key of the table asked for, or the columns asked for if their own rows count."""
    schema = draft.reading.schema
    if not plain:
        key = schema.key(main)
        return (key,) if key is not None else (schema.display(main)[0],)
    table = plain[0].table
    key = schema.key(table)
    if key is None or key in plain or draft.counted in {None, table}:
        return plain
    return draft.choose.pick([((key,), 1.2), (plain, 0.8)])


def _ranked(draft: Draft, asked: Outputs, query: Query, main: str) -> Query:
    """ORDER BY and LIMIT, or a comparison with the extreme value."""
    if not draft.order:
        return query
    item, descending = draft.order[0]
    is_single = draft.limit == 1 and len(draft.order) == 1
    if is_single and asked.has_aggregate() and not query.group and item.column is not None:
        return _of_extreme(draft, query, item, descending=descending, main=main)
    is_plain = item.column is not None and not item.aggregate and not query.group
    if is_single and is_plain and draft.choose.pick([(True, 0.0), (False, 1.6)]):
        return _equal_extreme(query, item, descending=descending)
    return replace(query, order=tuple(draft.order), limit=draft.limit, distinct=False)


def _equal_extreme(query: Query, item: Item, *, descending: bool) -> Query:
    function = "MAX" if descending else "MIN"
    extreme = Query(items=(Item(column=item.column, aggregate=function),), where=query.where)
    return replace(query, where=(*query.where, Condition(item=item, op="=", query=extreme)))


def _of_extreme(draft: Draft, query: Query, item: Item, *, descending: bool, main: str) -> Query:
    """An aggregate over what belongs to the one row that is the extreme."""
    table = item.column.table if item.column is not None else main
    if table == main:
        return _equal_extreme(query, item, descending=descending)
    edges = path(draft.reading.schema, {main}, table)
    last = edges[-1]
    inner = last.end(table)
    outer = last.other(table)
    choice = Query(items=(Item(column=inner),), order=((item, descending),), limit=1)
    return replace(query, where=(*query.where, Condition(item=Item(column=outer), op="=", query=choice)))


def _joined(draft: Draft, query: Query, main: str) -> tuple[str, ...]:
    """Tables to join although no column of theirs is used: the counted one, and those the question names."""
    reading = draft.reading
    joined: dict[str, None] = {}
    there = set(tables_of(query)) or {main}
    if not tables_of(query):
        joined[main] = None
    if draft.counted is not None and any(i.aggregate == "COUNT" for i in _all_items(query)):
        joined[draft.counted] = None
    denied = {table for _, table in draft.absent}
    for number, mention in enumerate(reading.mentions):
        table = mention.targets[0].table
        weak = mention.targets[0].score < 1.5 or reading.is_tail(number)
        if mention.kind != "table" or weak or table in {*there, *joined, *denied}:
            continue
        if draft.is_negated(mention.first) or _is_said(query, table):
            continue
        if not _is_near(draft, {*there, *joined}, table):
            continue
        if draft.choose.pick([(True, 1.5), (False, 0.0)]):
            joined[table] = None
    return tuple(joined)


def _all_items(query: Query) -> list[Item]:
    return [*query.items, *(item for item, _ in query.order), *(c.item for c in query.having)]


def _is_said(query: Query, table: str) -> bool:
    """Whether a column in use has the table's name in its own, so that naming the table says no more."""
    own = name_words(table)
    used = [c for item in [*query.items, *(w.item for w in query.where)] for c in item.columns]
    return any(likeness(word, own[-1]) >= 0.9 for c in used for word in c.words if own) and all(
        c.table != table for c in used
    )


def _is_near(draft: Draft, there: set[str], table: str) -> bool:
    try:
        return len(path(draft.reading.schema, there, table)) <= 3
    except Unconnected:
        return False


def _edges(draft: Draft) -> tuple[Edge, ...]:
    """Edges to prefer: for every pair of tables with several, the one whose columns the question's words fit best."""
    pairs: dict[frozenset[str], list[Edge]] = {}
    for edge in draft.reading.schema.edges:
        pairs.setdefault(frozenset((edge.left.table, edge.right.table)), []).append(edge)
    words = [token.stem for token in draft.reading.tokens if token.kind == "word"]
    chosen = []
    for edges in pairs.values():
        if len(edges) > 1:
            options = [(edge, _said_share(edge, words, draft.reading)) for edge in edges]
            chosen.append(draft.choose.pick(options))
    return tuple(chosen)


def _said_share(edge: Edge, words: list[str], reading: Reading) -> float:
    share = sum(max((likeness(part, word) for word in words), default=0.0) for part in edge.left.words)
    return 2.0 * share / max(1, len(edge.left.words)) + reading.hint.favour(edge.left)


def _with_operation(query: Query, combined: Combined) -> Query:
    if combined.split is None:
        return query
    first, second = combined.split
    left = replace(query, where=(*query.where, first), order=(), limit=None)
    right = replace(query, where=(*query.where, second), order=(), limit=None)
    return replace(left, operation="INTERSECT", other=right)
