"""What the function words of a question demand of the shape of an answer: aggregates, groups, order, width."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.llm.offline.sql.cues import AGGREGATES, DISTINCT, EACH
from orchestrator.llm.offline.sql.demands import Demand
from orchestrator.llm.offline.sql.expectation import STRONG, Expectation
from orchestrator.llm.offline.sql.linking import Mention
from orchestrator.llm.offline.sql.reading import Reading

_MOST = frozenset({"most", "fewest", "least"})


def functions(reading: Reading) -> Iterator[Expectation]:
    """Aggregates, distinct values, denials and groups, wherever a word asks for them."""
    yield from _aggregates(reading)
    counts = counts_rows(reading)
    if counts:
        demands = (Demand("function", text="COUNT"), Demand("function", text="SUM"))
        yield _logic("a number of rows is asked for, but nothing is counted", 3.5, *demands)
    if not DISTINCT.isdisjoint(reading.lows):
        demands = (Demand("distinct"), Demand("count-distinct"))
        yield _logic("different ones are asked for, but repetitions stay", 2.0, *demands)
    if reading.negations:
        yield _logic("the question excludes rows, the query does not", 4.0, Demand("exclude"))
    if not EACH.isdisjoint(reading.lows) and (counts or not AGGREGATES.keys().isdisjoint(reading.lows)):
        yield _logic("an answer for each is asked for, in one group", 2.5, Demand("group"))


def _aggregates(reading: Reading) -> Iterator[Expectation]:
    lows = reading.lows
    named = {place for m in reading.mentions if m.kind == "column" for place in range(m.first, m.last)}
    for place, low in enumerate(lows):
        if low not in AGGREGATES or place in named or {"number", "count"} & set(lows[place + 1 : place + 2]):
            continue
        function = AGGREGATES[low]
        stored = (Demand("use", column=column) for column in reading.schema.fields() if column.words == (low,))
        others = (*stored, *((Demand("extreme"),) if function in {"MAX", "MIN"} else ()))
        problem = f"{low!r} is asked for, but nothing is aggregated with {function}"
        yield _logic(problem, 3.0, Demand("function", text=function), *others)


def _logic(problem: str, weight: float, *demands: Demand) -> Expectation:
    return Expectation(demands=demands, problem=problem, weight=weight, side="logic")


def counts_rows(reading: Reading) -> bool:
    """Whether the question asks for a number of rows."""
    named = {place for m in reading.mentions if m.kind == "column" for place in range(m.first, m.last)}
    for place, low in enumerate(reading.lows):
        following = reading.lows[place + 1] if place + 1 < len(reading.lows) else ""
        after = next((m for m in reading.mentions if m.first > place), None)
        is_measure = after is not None and after.kind == "column" and bool(after.of("column")) and _is_measure(after)
        if low == "how" and following == "many" and not is_measure:
            return True
        if (
            low == "number"
            and following == "of"
            and place not in named
            and reading.labels[place] == "head"
            and not is_measure
        ):
            return not any(s.first < place <= s.last + 1 for s in reading.superlatives)
    return False


def _is_measure(mention: Mention) -> bool:
    column = mention.of("column")[0].column
    return column is not None and column.is_number and not column.is_key


def extremes(reading: Reading) -> Iterator[Expectation]:
    for found in reading.superlatives:
        word = reading.lows[found.first]
        in_name = any(m.first <= found.first < m.last and m.last - m.first > 1 for m in reading.mentions)
        if in_name or word in AGGREGATES:
            continue
        yield Expectation(
            demands=(Demand("extreme"),), problem=f"{word!r} is asked for, but all rows come", weight=3.5, side="logic"
        )
        following = next((m for m in reading.mentions if 0 <= m.first - found.last <= 3), None)
        counts = found.is_count or (
            not found.concepts and word in _MOST and following is not None and following.kind == "table"
        )
        if counts:
            yield Expectation(
                demands=(Demand("count-order"), Demand("having")),
                problem=f"{word!r} is about numbers of rows, which are not compared",
                weight=3.0,
                side="logic",
            )
        if not found.concepts:
            way, opposite = ("descending", "MAX") if found.descending else ("ascending", "MIN")
            yield Expectation(
                demands=(Demand(way), Demand("function", text=opposite)),
                problem=f"{word!r} is at the other end",
                weight=2.5,
                side="logic",
            )


def orders(reading: Reading) -> Iterator[Expectation]:
    order = reading.order
    if order is None:
        return
    yield Expectation(demands=(Demand("order"),), problem="rows are not ordered as asked", weight=3.0, side="logic")
    if order.descending is not None:
        way = "descending" if order.descending else "ascending"
        yield Expectation(demands=(Demand(way),), problem=f"the order is not {way}", weight=2.5, side="logic")
    for mention in reading.mentions:
        columns = mention.of("column")
        if reading.labels[mention.first] == "order" and mention.kind == "column" and columns[0].score >= STRONG:
            yield Expectation(
                demands=tuple(Demand("order-by", column=target.column) for target in columns),
                problem="rows are ordered by something else",
                weight=2.0,
                side="logic",
            )
            return


def relations(reading: Reading) -> Iterator[Expectation]:
    """`both ... and ...` of two values of one column, or of two comparisons."""
    if "both" not in reading.lows or counts_rows(reading):
        return
    after = reading.lows.index("both")
    columns = [m.targets[0].column for m in reading.mentions if m.kind == "value" and m.first > after]
    pairs = len(columns) >= 2 and columns[0] == columns[1]
    pairs = pairs or len([t for t in reading.tokens[after : after + 4] if t.number is not None]) == 2
    if pairs or len([c for c in reading.comparisons if c.first > after]) >= 2:
        yield Expectation(
            demands=(Demand("both"),), problem="both conditions must hold, each for some row", weight=4.0, side="logic"
        )


def _says_value(reading: Reading, number: int) -> bool:
    """`the city Bergen`: the column only says what the value next to it is."""
    following = reading.mentions[number + 1 : number + 2]
    if not following or following[0].kind != "value" or following[0].first != reading.mentions[number].last:
        return False
    holders = {target.column for target in following[0].of("value")}
    return any(target.column in holders for target in reading.mentions[number].of("column"))


def width(reading: Reading) -> Iterator[Expectation]:
    """How many columns are asked for, as far as that can be counted."""
    if any(s.formula is not None for s in reading.hint.statements) or {"information", "details", "all"} <= set(
        reading.lows
    ):
        return
    if any(low in {"?", ".", ";"} for low in reading.lows[:-1]) or "how" in reading.lows[2:]:
        return
    measures = {m.first for m in reading.mentions for s in reading.superlatives if 0 <= m.first - s.last <= 2}
    plain = {
        m.targets[0].column
        for number, m in enumerate(reading.mentions)
        if m.kind == "column" and reading.labels[m.first] == "head" and m.targets[0].score >= STRONG
        if m.first not in measures and not reading.is_participle(number) and not _says_value(reading, number)
    }
    functions = [low for place, low in enumerate(reading.lows) if low in AGGREGATES and reading.labels[place] == "head"]
    pairs = [
        s
        for s in reading.superlatives
        if reading.labels[s.first] == "head" and not s.concepts and reading.lows[s.first] not in AGGREGATES
    ]
    if len(pairs) == 2 and pairs[1].first - pairs[0].last <= 2:
        functions.extend(("least", "most"))
    count = int(counts_rows(reading))
    if count and len(plain) == 1 and not functions and not DISTINCT.isdisjoint(reading.lows):
        return
    low = max(1, len(plain) + count, len(functions) + count)
    high = max(low, len(plain) + len(functions) + count) + int(reading.labels.count("group") > 0)
    demands = tuple(Demand("columns", text=str(width)) for width in range(low, high + 1))
    said = f"{low} to {high} columns" if low < high else f"{low} column{'s' if low != 1 else ''}"
    yield Expectation(demands=demands, problem=f"the question asks for {said}", weight=2.0, side="completeness")
