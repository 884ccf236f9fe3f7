"""Superlatives and orders: what is the most, the least, and in which order rows come."""

from __future__ import annotations

from itertools import pairwise

from orchestrator.llm.offline.sql.cues import AGGREGATES, Superlative, superlatives
from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.logic import Item
from orchestrator.llm.offline.sql.schema import Field

_MOST = frozenset(
    {
        "most",
        "fewest",
        "least",
        "highest",
        "largest",
        "lowest",
        "smallest",
        "greatest",
        "maximum",
        "minimum",
        "biggest",
        "top",
    }
)
_REACH = 4


def superlative_orders(draft: Draft) -> None:
    """Each superlative becomes an order with a limit, or an aggregate if it is itself what is asked for."""
    _paired(draft)
    for found in draft.reading.superlatives:
        if not draft.spent.isdisjoint(range(found.first, found.last)):
            continue
        if _is_aggregate_word(draft, found) or _is_in_name(draft, found):
            continue
        _rank(draft, found)
        for statement in draft.reading.hint.statements:
            if statement.extreme is not None and draft.order and draft.choose.pick([(True, 2.5), (False, 0.0)]):
                _take_hinted(draft, statement.extreme)
    if not draft.order and draft.extreme is None:
        _hinted_extreme(draft)


def _paired(draft: Draft) -> None:
    """`the lowest and the highest price`: both are asked for as aggregates."""
    for first, second in pairwise(draft.reading.superlatives):
        between = draft.reading.lows[first.last : second.first]
        if "and" in between and len(between) <= 2 and not first.concepts and not second.concepts:
            for found in (first, second):
                draft.spent.update(range(found.first, found.last))
                draft.functions[found.first] = "MAX" if found.descending else "MIN"


def _hinted_extreme(draft: Draft) -> None:
    for statement in draft.reading.hint.statements:
        if statement.extreme is not None and draft.choose.pick([(True, 2.0), (False, 0.0)]):
            _take_hinted(draft, statement.extreme)
            draft.limit = 1
            return


def _take_hinted(draft: Draft, extreme: tuple[Item, bool]) -> None:
    item = extreme[0]
    draft.order = [extreme]
    draft.orders_groups = item.aggregate == "COUNT"
    if item.aggregate == "COUNT" and item.column is not None:
        draft.counted = draft.counted or item.column.table


def _is_aggregate_word(draft: Draft, found: Superlative) -> bool:
    """`maximum` and its like in the head are aggregates, unless something else is asked for there."""
    reading = draft.reading
    if reading.lows[found.first] not in AGGREGATES or reading.labels[found.first] != "head":
        return False
    before = reading.lows[max(0, found.first - 2) : found.first]
    return draft.choose.pick([(True, 2.0), (False, 0.0 if "with" not in before else 2.5)])


def _is_in_name(draft: Draft, found: Superlative) -> bool:
    """Whether the word belongs to a column's name of several words."""
    return any(
        m.first <= found.first < m.last and m.last - m.first > 1 and m.kind != "table" for m in draft.reading.mentions
    )


def _rank(draft: Draft, found: Superlative) -> None:
    options = _ranked(draft, found)
    if not options:
        return
    item, number, descending = draft.choose.pick(options)
    draft.spent.update(range(found.first, found.last))
    is_plain = item.column is not None and not _totalled(draft, found, item).aggregate
    if is_plain and _stands_alone(draft, found, number):
        function = "MAX" if descending else "MIN"
        alone = 2.5 if number is not None and draft.reading.labels[found.first] == "head" else -2.0
        if draft.choose.pick([(True, alone), (False, 0.0)]):
            draft.extreme = Item(column=item.column, aggregate=function)
            if number is not None:
                draft.use(number)
            return
    if number is not None and not (found.is_count and draft.label(draft.reading.mentions[number]) == "head"):
        _use_ranked(draft, found, item, number)
    item = _totalled(draft, found, item)
    if item.aggregate and item.column is not None:
        draft.counted = draft.counted or item.column.table
    draft.order.append((item, descending))
    draft.limit = found.limit or 1
    draft.orders_groups = bool(item.aggregate)


def _totalled(draft: Draft, found: Superlative, item: Item) -> Item:
    """`the highest total price`, `the most nights in total`: the measure is a sum or an average of groups."""
    after = draft.reading.lows[found.last : found.last + 5]
    if item.column is None or item.aggregate:
        return item
    if after[:1] == ("average",):
        return Item(column=item.column, aggregate="AVG")
    return Item(column=item.column, aggregate="SUM") if "total" in after else item


def _use_ranked(draft: Draft, found: Superlative, item: Item, number: int) -> None:
    """A column that is only the measure is not asked for itself; a table that is counted keeps its mention."""
    mention = draft.reading.mentions[number]
    if item.aggregate == "COUNT":
        draft.counted = mention.targets[0].table if mention.kind == "table" else draft.counted
        draft.spent.update(range(found.first, mention.last))
        draft.use(number)
    elif mention.first >= found.first or draft.label(mention) != "head":
        draft.use(number)


def _stands_alone(draft: Draft, found: Superlative, number: int | None) -> bool:
    """Whether nothing else is asked for in the head."""
    reading = draft.reading
    head = [n for n in draft.free("column", strong=True) if n != number and draft.label(reading.mentions[n]) == "head"]
    counts = {"how", "number"} & reading.between(0, found.first)
    return not head and not counts and reading.lows[0] not in {"which", "who"} and found.limit is None


_Ranked = tuple[tuple[Item, int | None, bool], float]
"""((what, its mention, descending), score)"""


def _ranked(draft: Draft, found: Superlative) -> list[_Ranked]:
    """Everything that may be extreme here."""
    if found.is_count:
        return [((Item(aggregate="COUNT"), _asked_column(draft, found), found.descending), 3.0)]
    if found.concepts:
        return _of_concept(draft, found)
    options: list[_Ranked] = []
    for number, mention in enumerate(draft.reading.mentions):
        gap = mention.first - found.last
        is_before = mention.last <= found.first and found.first - mention.last <= 5
        if number in draft.used or not (0 <= gap <= _REACH or is_before):
            continue
        distance = gap if gap >= 0 else 1.5 + found.first - mention.last
        options.extend(_of_mention(draft, found, number, distance))
    return options


def _of_concept(draft: Draft, found: Superlative) -> list[_Ranked]:
    """Columns about what the word itself compares, those of the table that it stands before first."""
    mentions = draft.reading.mentions
    following = [m for m in mentions if 0 <= m.first - found.last <= 1 and m.kind != "column"]
    near = following[0].targets[0].table if following else None
    return [
        (
            (Item(column=column), None, descending),
            2.0 + score + (0.4 if column.is_number else 0.0) + (1.2 if column.table == near else 0.0),
        )
        for concept, descending in found.concepts
        for column, score in draft.reading.columns_about(concept)
    ]


def _of_mention(draft: Draft, found: Superlative, number: int, distance: float) -> list[_Ranked]:
    """What a mention near the word offers: its column as the measure, or the number of its table's rows."""
    reading = draft.reading
    mention = reading.mentions[number]
    word = reading.lows[found.first]
    options: list[_Ranked] = []
    if mention.kind == "table" and mention.first >= found.last and word in _MOST:
        counts = word in {"most", "fewest", "least"} or "number" in reading.between(found.last, found.last + 3)
        score = (2.6 if counts else 0.8) - 0.2 * distance
        options.append(((Item(aggregate="COUNT"), number, found.descending), score))
    for target in mention.of("column")[:3]:
        if target.column is not None:
            score = _measure(draft, target.column, target.score, number) - 0.35 * distance
            options.append(((Item(column=target.column), number, found.descending), score))
    return options


def _measure(draft: Draft, column: Field, score: float, number: int) -> float:
    """How well a column serves as a measure."""
    kind = (
        1.0
        if column.is_number and not column.is_key
        else 0.0
        if column.likeness_to("date") >= 0.8 or column.likeness_to("year") >= 0.8
        else -1.2
    )
    return 1.3 * score + 0.5 * draft.reading.context(column, draft.reading.owners[number]) + kind


def _asked_column(draft: Draft, found: Superlative) -> int | None:
    """What is the most common: the mention right after the word, or the one before."""
    after = [n for n, mention in enumerate(draft.reading.mentions) if 0 <= mention.first - found.last <= 2]
    return after[0] if after else None


def ordering(draft: Draft) -> None:
    """`sorted by age in descending order`, `from the oldest to the youngest`."""
    reading = draft.reading
    order = reading.order
    if order is None:
        return
    numbers = [n for n in draft.free("column") if draft.label(reading.mentions[n]) == "order"]
    after_by = [
        n for n in numbers if "by" in reading.lows[max(0, reading.mentions[n].first - 3) : reading.mentions[n].first]
    ]
    numbers = numbers[numbers.index(after_by[-1]) :] if after_by else numbers
    if not numbers and draft.order:
        draft.limit = None if draft.limit == 1 else draft.limit
        return
    descending = bool(order.descending)
    for number in numbers[:2]:
        column = draft.column(number)
        draft.use(number)
        if number != numbers[0] and "then" not in reading.lows and "and" not in reading.lows[order.first :]:
            continue
        draft.order.append((Item(column=column), descending))
    if not numbers:
        _implied_order(draft, descending=descending)


def _implied_order(draft: Draft, *, descending: bool) -> None:
    """An order whose measure is a count, a concept (`from oldest`), or what is asked for."""
    reading = draft.reading
    tables = [m for m in reading.mentions if m.kind == "table" and draft.label(m) == "order"]
    if tables and "number" in reading.lows:
        draft.counted = tables[0].targets[0].table
        draft.order.append((Item(aggregate="COUNT"), descending))
        draft.orders_groups = True
        return
    for found in superlatives(reading.tokens):
        options = [(column, score) for concept, _ in found.concepts for column, score in reading.columns_about(concept)]
        if options:
            draft.order.append((Item(column=draft.choose.pick(options)), found.concepts[0][1]))
            return
    head = [n for n in draft.free("column", strong=True) if draft.label(reading.mentions[n]) == "head"]
    if head:
        draft.order.append((Item(column=draft.column(head[0])), descending))
