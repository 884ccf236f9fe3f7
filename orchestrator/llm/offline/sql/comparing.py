"""Numbers become conditions: comparisons, bare numbers and years, and conditions on numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.llm.offline.sql.cues import Comparison
from orchestrator.llm.offline.sql.draft import Draft, Filter
from orchestrator.llm.offline.sql.logic import Condition, Item, Query
from orchestrator.llm.offline.sql.reading import nearest
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.sql.quoting import text_literal

_REACH = 7
_ANTECEDENT = 0.7


def comparison_filters(draft: Draft) -> None:
    """`older than 20`, `between 5000 and 10000`, `above the average age`, `more than two keys`."""
    for comparison in draft.reading.comparisons:
        if not draft.spent.isdisjoint(range(comparison.first, comparison.last)) and _number_spent(draft, comparison):
            continue
        _compare(draft, comparison)


def _number_spent(draft: Draft, comparison: Comparison) -> bool:
    return any(
        draft.reading.tokens[place].number is not None and place in draft.spent
        for place in range(comparison.first, comparison.last)
    )


def _compare(draft: Draft, comparison: Comparison) -> None:
    options: list[tuple[tuple[Field | None, int | None], float]] = list(_compared_columns(draft, comparison))
    counted = _counted_after(draft, comparison)
    if counted is not None and comparison.numbers:
        is_next = draft.reading.mentions[counted].first == comparison.last
        options.append(((None, counted), 4.6 if is_next else 2.6))
    before = [
        found.column
        for found in draft.filters
        if found.place < comparison.first and found.condition.op in {"<", ">", "<=", ">="}
    ]
    if not options and before and before[-1] is not None:
        options.append(((before[-1], None), 1.0))
    if not options:
        return
    column, number = draft.choose.pick(options, _antecedence(draft, comparison.first, [o[0][0] for o in options]))
    draft.spent.update(range(comparison.first, comparison.last))
    if number is not None:
        mention = draft.reading.mentions[number]
        is_subject = 0 <= comparison.first - mention.last <= 1
        if column is None or draft.label(mention) != "head" or mention.first >= comparison.first or is_subject:
            draft.use(number)
    place = comparison.first
    if column is None:
        _count_filter(draft, comparison, number)
    elif comparison.numbers:
        _add_comparison(draft, place, column, comparison)
    else:
        average = Query(items=(Item(column=column, aggregate="AVG"),))
        condition = Condition(item=Item(column=column), op=comparison.op, query=average)
        draft.filters.append(Filter(place=place, condition=condition))


def _add_comparison(draft: Draft, place: int, column: Field, comparison: Comparison) -> None:
    """A year is compared with the year of a date."""
    if column.is_date and all(_is_year(number) for number in comparison.numbers):
        year = Item(parts=("strftime('%Y', ", column, ")"))
        literals = tuple(f"'{number}'" for number in comparison.numbers)
        condition = Condition(item=year, op=comparison.op, literals=literals)
        draft.filters.append(Filter(place=place, condition=condition))
    else:
        draft.add_filter(place, column, comparison.op, *comparison.numbers, negated=False)


def _antecedence(draft: Draft, place: int, columns: Sequence[Field | None]) -> list[float]:
    """A bonus for columns of the table that was spoken of last: `a tree that is 3 years old`."""
    near = draft.antecedent(place)
    return [_ANTECEDENT if column is not None and column.table == near else 0.0 for column in columns]


def _count_filter(draft: Draft, comparison: Comparison, number: int | None) -> None:
    table = draft.reading.mentions[number].targets[0].table if number is not None else None
    condition = Condition(item=Item(aggregate="COUNT"), op=comparison.op, literals=comparison.numbers)
    draft.counts.append(Filter(place=comparison.first, condition=condition))
    draft.counted = draft.counted or table


def _compared_columns(draft: Draft, comparison: Comparison) -> list[tuple[tuple[Field | None, int | None], float]]:
    """((column, mention), score) of what may be compared: columns named nearby, of the concept, of time."""
    reading = draft.reading
    options: list[tuple[tuple[Field | None, int | None], float]] = []
    strong = draft.free("column")
    for number, distance in nearest(reading.mentions, comparison.first, strong):
        mention = reading.mentions[number]
        inside = comparison.first <= mention.first < comparison.last + 2
        inside = inside and not any(
            c.first <= mention.first < c.last for c in reading.comparisons if c is not comparison
        )
        if not inside and (distance > 0 or distance < -_REACH):
            continue
        for target in mention.of("column")[:3]:
            column = target.column
            if column is None:
                continue
            kind = 0.8 if column.is_number or _is_time(column) else -2.0
            kind -= 1.5 if column.is_key else 0.0
            score = (
                1.4 * target.score + 0.5 * reading.context(column, reading.owners[number]) + kind - 0.25 * abs(distance)
            )
            head = 1.0 if draft.label(mention) == "head" and not inside else 0.0
            options.append(((column, number), score - head))
    if comparison.concept:
        options.extend(((column, None), 1.5 + score) for column, score in reading.columns_about(comparison.concept))
    if comparison.numbers and all(_is_year(number) for number in comparison.numbers):
        options.extend(((column, None), 0.9 + 0.5 * score) for column, score in reading.columns_about("year"))
        options.extend(((column, None), 0.2 + 0.5 * score) for column, score in reading.columns_about("date"))
    return options


def _counted_after(draft: Draft, comparison: Comparison) -> int | None:
    """The mention of a table whose rows are counted: `more than 2 keys`, `number of keys above 2`."""
    reading = draft.reading
    for number, mention in enumerate(reading.mentions):
        if mention.kind != "table":
            continue
        if 0 <= mention.first - comparison.last <= 2 and not {"and", ",", "whose"} & reading.between(
            comparison.last, mention.first
        ):
            return number
        before = reading.lows[max(0, mention.first - 3) : mention.first]
        if "number" in before and 0 <= comparison.first - mention.last <= 3:
            return number
    return None


def number_filters(draft: Draft) -> None:
    """Bare numbers: `in 2014`, `age 3`, `3 years old`."""
    reading = draft.reading
    for place, token in enumerate(reading.tokens):
        number = token.number
        if (
            number is None
            or place in draft.spent
            or _is_limit(draft, place)
            or (token.kind == "word" and token.lower in {"one", "zero"})
        ):
            continue
        options = _numbered(draft, place, number)
        if not options:
            continue
        column, mention = draft.choose.pick(options, _antecedence(draft, place, [o[0][0] for o in options]))
        draft.spent.add(place)
        if mention is not None and draft.label(reading.mentions[mention]) != "head":
            draft.use(mention)
        if _is_year(number) and column.is_date:
            _add_comparison(draft, place, column, Comparison(first=place, last=place + 1, op="=", numbers=(number,)))
        elif _is_year(number) and column.likeness_to("year") < 0.9 and not column.is_number:
            draft.add_filter(place, column, "LIKE", text_literal(f"%{number}%"))
        else:
            draft.add_filter(place, column, "=", number)


def _is_limit(draft: Draft, place: int) -> bool:
    return any(found.first - 1 <= place < found.last for found in draft.reading.superlatives)


def _numbered(draft: Draft, place: int, number: str) -> list[tuple[tuple[Field, int | None], float]]:
    reading = draft.reading
    options: list[tuple[tuple[Field, int | None], float]] = []
    for mention_number, distance in nearest(reading.mentions, place, draft.free("column")):
        if not -4 <= distance <= 3:
            continue
        mention = reading.mentions[mention_number]
        for target in mention.of("column")[:3]:
            if target.column is not None and (target.column.is_number or _is_time(target.column) or distance >= -2):
                fit = reading.context(target.column, reading.owners[mention_number])
                options.append(((target.column, mention_number), target.score + 0.5 * fit - 0.2 * abs(distance) + 0.8))
    if _is_year(number):
        options.extend(((column, None), 1.6 + 0.6 * score) for column, score in reading.columns_about("year"))
        options.extend(((column, None), 0.6 + 0.6 * score) for column, score in reading.columns_about("date"))
    return options


def _is_year(number: str) -> bool:
    return number.isdigit() and 1000 <= int(number) <= 2100


def _is_time(column: Field) -> bool:
    return column.likeness_to("year") >= 0.9 or column.likeness_to("date") >= 0.9
