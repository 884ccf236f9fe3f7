"""Doubts whether another column or another way is meant: one whose name says more, one nearer by, a path that is named.

Such a doubt is never certain. It costs little, but enough that the rival is tried before an answer is agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.llm.offline.sql.cues import AGGREGATES, extreme_of
from orchestrator.llm.offline.sql.demands import Demand
from orchestrator.llm.offline.sql.expectation import Expectation
from orchestrator.llm.offline.sql.linking import Mention
from orchestrator.llm.offline.sql.profile import Profile
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.restructuring import neighbours
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.words import name_words

_PARTICLES = frozenset({"by", "of", "in", "at", "from", "to", "for", "on", "is", "has", "the", "with", "and"})
_NEARLY = 1.0
"""From this score on a mention may mean a column."""
_REACH = 7
"""So many tokens apart two words may still name one column together."""
_OPERAND = 3
"""So many tokens behind a function its column may stand: `the average of the ages`."""
_COUNTING = frozenset({"most", "fewest"})


def rivals(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """Everything that may be meant instead of what a query uses."""
    yield from _fuller_names(reading, profile)
    yield from _nearer_columns(reading, profile)
    yield from _stored_aggregates(reading, profile)
    yield from _uncounted(reading, profile)
    yield from _denied_properties(reading, profile)
    yield from _detours(reading, profile)


def _doubt(problem: str, weight: float, side: str, demand: Demand) -> Expectation:
    return Expectation(demands=(demand,), problem=problem, weight=weight, side=side)


def is_said(reading: Reading, column: Field) -> bool:
    """Whether the question says every word of a name of several words, none of them far from another."""
    words = [word for word in column.words if word not in _PARTICLES]
    if len(words) < 2 or set(words) <= set(name_words(column.table)):
        return False
    stems = [token.stem if token.kind == "word" else "" for token in reading.tokens]
    last = [place for place, stem in enumerate(stems) if stem == words[-1]]
    return any(all(word in stems[max(0, at - _REACH) : at + _REACH + 1] for word in words) for at in last)


def _fuller_names(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """`the name of the song`: not `name`, where there is a `song_name`; a name said twice may be both."""
    shown = [output.column for output in profile.outputs if not output.is_expression]
    stems = [token.stem for token in reading.tokens]
    for column in dict.fromkeys(c for c in (*shown, *profile.order) if c is not None):
        for other in reading.schema.tables[column.table]:
            if stems.count(column.words[-1]) > 1 or not _says_more(reading, column, other):
                continue
            if column not in shown:
                demand = Demand("order-by", column=other)
            else:
                demand = Demand("no-output" if other in shown else "output", column=column if other in shown else other)
            said = " ".join(other.words)
            yield _doubt(f"{said!r} is spoken of, which is more than {column.name}", 1.5, "schema", demand)


def _says_more(reading: Reading, column: Field, other: Field) -> bool:
    """Whether the question says all of another column's name, of which the name of the first is a part."""
    more = set(other.words) - set(column.words) - _PARTICLES
    return (
        set(column.words) < set(other.words)
        and bool(more)
        and more.isdisjoint(name_words(column.table))
        and is_said(reading, other)
        and not more <= _words_of_others(reading, column, other)
    )


def _words_of_others(reading: Reading, column: Field, other: Field) -> set[str]:
    """The words that the question says about something else: a value, a table, another column.

    `the name and the year of the song` is about the song's name too: what follows `of` may belong to both.
    """
    words: set[str] = set()
    for mention in reading.mentions:
        columns = {target.column for target in mention.of("column")}
        if mention.kind == "column" and columns & {column, other}:
            continue
        said = reading.tokens[mention.first : mention.last]
        shared = next((place for place, token in enumerate(said) if token.lower in {"of", "for"}), len(said))
        words.update(token.stem for token in said[:shared])
    return words


def _nearer_columns(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """A column of a table that nothing else needs, although a table in use has one that may be meant."""
    there = set(profile.tables)
    spoken = {target.table for m in reading.mentions for target in m.of("table")}
    for number, mention in enumerate(reading.mentions):
        targets = [target for target in mention.of("column") if target.column is not None]
        used = [target.column for target in targets if target.column in profile.columns]
        if mention.kind != "column" or len(used) != 1 or used[0] is None:
            continue
        table = used[0].table
        others = {column for column in profile.columns if column.table == table} - {used[0]}
        if used[0].is_key or table in spoken or others or reading.owners[number] == table:
            continue
        near = [t.column for t in targets if t.table != table and t.table in there and t.score >= _NEARLY]
        if near and near[0] is not None:
            problem = f"{used[0].name} needs {table}, of which nothing else is asked"
            yield _doubt(problem, 1.5, "schema", Demand("use", column=near[0]))


def _stored_aggregates(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """`the highest average`: not to be computed, where a table in use has a column of that name."""
    for place, low in enumerate(reading.lows):
        columns = [c for c in reading.schema.fields() if c.words == (low,) and c.table in profile.tables]
        if low not in AGGREGATES or not columns or set(columns) & profile.columns or _aggregates(reading, place):
            continue
        ranks = place > 0 and extreme_of(reading.lows[place - 1]) is not None
        demand = Demand("order-by" if ranks else "use", column=columns[0])
        yield _doubt(f"{low!r} is a column of {columns[0].table}", 1.5, "schema", demand)


def _aggregates(reading: Reading, place: int) -> bool:
    """`the average age`, `the average and maximum ages`: the word is a function of a column, or one of several."""
    following = reading.lows[place + 1 : place + 3]
    is_listed = following[:1] in {("and",), (",",)} and not AGGREGATES.keys().isdisjoint(following)
    return is_listed or any(m.kind == "column" and 0 < m.first - place <= _OPERAND for m in reading.mentions)


def _uncounted(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """`the most prizes` are counted: no row has more of a date, a text or a key than another."""
    for found in reading.superlatives:
        if (
            reading.lows[found.last - 1] not in _COUNTING
            or found.concepts
            or profile.counts_in_order
            or not profile.order
        ):
            continue
        following = next((m for m in reading.mentions if 0 <= m.first - found.last <= 1), None)
        column = profile.order[0]
        if following is not None and _names(following, column) and (column.is_key or not _is_measure(column)):
            yield _doubt(
                f"{column.name} has no {reading.lows[found.first]}; rows have", 2.0, "logic", Demand("count-order")
            )


def _names(mention: Mention, column: Field) -> bool:
    return any(target.column == column for target in mention.of("column"))


def _is_measure(column: Field) -> bool:
    return column.is_number and max(column.likeness_to("year"), column.likeness_to("date")) < 0.8


def _denied_properties(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """`countries without a harbour`: a country that many rows share has none only if none of its rows has one."""
    head = next((m for m in reading.mentions if m.kind != "value"), None)
    if not reading.negations or "except" in profile.words or len(profile.outputs) != 1 or head is None:
        return
    output = profile.outputs[0]
    column = output.column
    if column is None or output.is_expression or output.aggregate or column.is_key or not _names(head, column):
        return
    names_rows = column in reading.schema.display(column.table)[:1] or column.words[-1] in {"name", "title"}
    if _is_of_rows(reading, head, column.table):
        return
    if head.kind == "column" and not names_rows and profile.depth and "not" in profile.words:
        yield _doubt(f"{column.name} is shared by rows of both sorts", 1.0, "logic", Demand("except"))


def _is_of_rows(reading: Reading, head: Mention, table: str) -> bool:
    """`the country of the ports that have no ...`: each row by itself is what has none."""
    for mention in reading.mentions:
        if mention.kind == "table" and mention.targets[0].table == table and mention.first >= head.last:
            return "of" in reading.lows[head.last : mention.first]
    return False


def _detours(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """A table that only connects, that nobody speaks of, although tables that are spoken of connect as well."""
    spoken = {target.table for m in reading.mentions for target in m.targets if target.kind != "column"}
    used = {column.table for column in profile.columns} | spoken
    for table in dict.fromkeys(profile.tables):
        ends = [column.table for pair in profile.joins if _touches(pair, table) for column in pair]
        sides = sorted(set(ends) - {table})
        if table in used or profile.depth or len(sides) != 2:
            continue
        if _connects(reading, sides[0], sides[1], used, table):
            problem = f"the tables are joined over {table}, which is not spoken of"
            yield _doubt(problem, 1.5, "schema", Demand("no-join", table=table))


def _touches(pair: frozenset[Field], table: str) -> bool:
    return any(column.table == table for column in pair)


def _connects(reading: Reading, start: str, goal: str, spoken: set[str], barred: str) -> bool:
    """Whether tables lead from one to the other that are spoken of, or a word of whose names is, but for one."""
    stems = {token.stem for token in reading.tokens}
    open_to = {t for t in reading.schema.tables if t in spoken or not stems.isdisjoint(name_words(t))}
    reached, waiting = {start, barred}, [start]
    while waiting:
        table = waiting.pop()
        for other in sorted(neighbours(reading.schema, table)):
            if other == goal and table != start:
                return True
            if other in open_to and other not in reached:
                reached.add(other)
                waiting.append(other)
    return False
