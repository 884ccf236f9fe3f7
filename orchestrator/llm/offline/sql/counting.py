"""Counts: what `how many` and `the number of` ask for."""

from __future__ import annotations

from orchestrator.llm.offline.sql.cues import DISTINCT
from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.logic import Item


def asks_count(draft: Draft, place: int) -> bool:
    lows = draft.reading.lows
    low = lows[place]
    following = lows[place + 1] if place + 1 < len(lows) else ""
    before = lows[place - 1] if place else ""
    if low == "how":
        return following == "many" and draft.reading.labels[place] in {"head", "group"}
    if low == "number":
        return (
            following in {"of", "for", ".", ""}
            and draft.reading.labels[place] == "head"
            and place not in number_names(draft)
        )
    if low == "count" and "number" in lows[place + 1 : place + 4]:
        return False
    return (
        low in {"count", "counts"}
        and (place == 0 or before in {"and", "the", "with", ","})
        and draft.reading.labels[place] == "head"
    )


def number_names(draft: Draft) -> set[int]:
    """Tokens inside mentions of columns such as `number_products`."""
    reading = draft.reading
    return {place for m in reading.mentions if m.kind == "column" for place in range(m.first, m.last)}


def add_count(draft: Draft, items: list[tuple[int, Item]], place: int, pending: list[str]) -> bool:
    """A count of the rows or of the values that the next mention names."""
    reading = draft.reading
    after = [
        n
        for n, m in enumerate(reading.mentions)
        if m.first > place and m.first - place <= 7 and (n not in draft.used or m.kind == "table") and m.kind != "value"
    ]
    distinct = not DISTINCT.isdisjoint(reading.between(place, reading.mentions[after[0]].first if after else place + 4))
    if not after:
        items.append((place, Item(aggregate="COUNT")))
        return True
    if len(after) > 1 and _is_compound(draft, after[0]):
        after = after[1:]
    mention = reading.mentions[after[0]]
    if mention.kind == "column" and pending:
        return False
    if mention.kind == "table" and not (distinct and mention.of("column")):
        draft.counted = draft.counted or mention.targets[0].table
        draft.use(after[0])
        item = Item(aggregate="COUNT")
        if distinct:
            key = reading.schema.display(mention.targets[0].table)[0]
            item = draft.choose.pick([(Item(column=key, aggregate="COUNT", distinct=True), 1.0), (item, 0.8)])
        items.append((place, item))
        return True
    if not mention.of("column"):
        return False
    _count_column(draft, items, place, after[0], distinct=distinct)
    return True


def _is_compound(draft: Draft, number: int) -> bool:
    """`store locations`: a table's mention that only says whose column the next one is."""
    mention, following = draft.reading.mentions[number : number + 2]
    named = following.kind == "column" and following.targets[0].score >= 1.0
    return mention.kind == "table" and named and following.first == mention.last and number + 1 not in draft.used


def _count_column(draft: Draft, items: list[tuple[int, Item]], place: int, number: int, *, distinct: bool) -> None:
    reading = draft.reading
    column = draft.column(number)
    draft.use(number)
    rows = Item(aggregate="COUNT")
    values = Item(column=column, aggregate="COUNT", distinct=True)
    total = Item(column=column, aggregate="SUM")
    measure = column.is_number and not column.is_key
    options = [(values, 2.5 if distinct else 0.6), (rows, 0.5), (Item(column=column, aggregate="COUNT"), 0.4)]
    if measure and not distinct:
        adds = "total" in reading.between(max(0, place - 2), place)
        options += [(Item(column=column), 1.5), (total, 2.5 if adds else 1.3)]
    item = draft.choose.pick(options)
    items.append((place, item))
    draft.counted = draft.counted or column.table
    following = [n for n in range(number + 1, len(reading.mentions)) if distinct and n not in draft.used]
    for other in following[:2]:
        mention = reading.mentions[other]
        between = reading.between(reading.mentions[other - 1].last, mention.first)
        if mention.kind == "column" and between <= {"and", ",", "different", "the", "distinct"} and between:
            draft.use(other)
            items.append((mention.first, Item(column=draft.column(other), aggregate="COUNT", distinct=True)))
