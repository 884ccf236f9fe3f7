"""What a query itself and its result tell against it: names that do not exist, needless parts, implausible results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.llm.offline.sql.cues import AGGREGATES, DISTINCT
from orchestrator.llm.offline.sql.demands import Demand, same_value
from orchestrator.llm.offline.sql.expectation import Expectation
from orchestrator.llm.offline.sql.expected_shape import counts_rows
from orchestrator.llm.offline.sql.profile import Profile
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rivals import is_said, rivals
from orchestrator.llm.offline.sql.schema import Field, SchemaView


def doubts(reading: Reading, profile: Profile, execution: Mapping[str, Any]) -> Iterator[Expectation]:
    """Everything that speaks against one query, as an expectation that it fails."""
    yield from _names(profile)
    yield from _needless_tables(reading, profile)
    yield from _needless_outputs(reading, profile)
    yield from _needless_clauses(reading, profile)
    yield from _odd_tests(reading, profile)
    yield from rivals(reading, profile)
    if execution.get("status") == "ok":
        yield from _odd_result(reading, profile, execution)


def _doubt(problem: str, weight: float, side: str, *demands: Demand) -> Expectation:
    return Expectation(demands=demands, problem=problem, weight=weight, side=side)


def _names(profile: Profile) -> Iterator[Expectation]:
    for name in dict.fromkeys(profile.unknown):
        yield _doubt(f"the schema has no {name[:80]!r}", 6.0, "schema")


def _needless_tables(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    """Tables at the end of a join of which no column is used, and which the question does not speak of."""
    spoken = {target.table for m in reading.mentions for target in m.targets if target.kind != "column"}
    named = {column.table for column in profile.columns}
    for table in dict.fromkeys(profile.tables):
        links = [pair for pair in profile.joins if any(column.table == table for column in pair)]
        if len(set(profile.tables)) > 1 and table not in spoken and table not in named and len(links) == 1:
            yield _doubt(f"the join with {table} is not needed", 2.0, "schema", Demand("no-join", table=table))


def _needless_outputs(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    supported = spoken_columns(reading)
    for output in profile.outputs:
        column = output.column
        if column is None or output.is_expression or output.aggregate == "count":
            continue
        if column not in supported and reading.hint.favour(column) == 0:
            yield _doubt(
                f"the column {column.name} is not asked for", 2.5, "alignment", Demand("no-output", column=column)
            )


def spoken_columns(reading: Reading) -> set[Field]:
    """Columns that the question names or implies: by mention, by concept, or as the name of a table's rows."""
    spoken = {t.column for m in reading.mentions for t in m.of("column") if t.column is not None}
    spoken.update(column for column in reading.schema.fields() if is_said(reading, column))
    for mention in reading.mentions:
        for target in mention.of("table"):
            spoken.update(reading.schema.display(target.table)[:2])
    for low, concept in (
        ("old", "age"),
        ("when", "date"),
        ("when", "year"),
        ("where", "location"),
        ("tall", "height"),
        ("long", "length"),
    ):
        if low in reading.lows:
            spoken.update(column for column, _ in reading.columns_about(concept))
    return spoken


def _needless_clauses(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    lows = set(reading.lows)
    conditions = [condition for s in reading.hint.statements for condition in s.conditions]
    if profile.limit is not None and not _asks_extreme(reading):
        yield _doubt("nothing in the question limits the rows", 3.0, "logic", Demand("no-limit"))
    if profile.denies and not reading.negations and not any(c.op in {"!=", "IS NOT NULL"} for c in conditions):
        yield _doubt("nothing in the question excludes rows", 3.0, "logic", Demand("no-exclude"))
    if not any(s.formula is not None for s in reading.hint.statements):
        yield from _needless_functions(reading, profile, lows)
    measured = profile.counts_in_order or "having" in profile.words
    if "group" in profile.words and not measured and not any(o.aggregate or o.is_expression for o in profile.outputs):
        yield _doubt("the rows are grouped for nothing", 2.0, "logic", Demand("no-group"))
    plain = [str(output) for output in profile.outputs if not output.is_expression]
    twice = len(plain) - len(set(plain))
    if twice:
        width = str(len(profile.outputs) - twice)
        yield _doubt("a column is returned twice", 3.0, "alignment", Demand("columns", text=width))


def _asks_extreme(reading: Reading) -> bool:
    return bool(reading.superlatives) or any(s.extreme is not None for s in reading.hint.statements)


def _needless_functions(reading: Reading, profile: Profile, lows: set[str]) -> Iterator[Expectation]:
    said = {AGGREGATES[low].lower() for low in lows & AGGREGATES.keys()}
    if _asks_extreme(reading):
        said |= {"max", "min"}
    if lows & {"many", "much"}:
        said.add("sum")
    if counts_rows(reading) or lows & {"number", "many", "count"}:
        said.add("count")
    for function in sorted({output.aggregate for output in profile.outputs} - {""} - said):
        name = function.upper()
        yield _doubt(f"nothing asks for {name}", 3.0, "alignment", Demand("no-function", text=name))
    if any(o.distinct for o in profile.outputs) and DISTINCT.isdisjoint(lows):
        yield _doubt("the question counts rows, not different values", 1.5, "logic", Demand("count-rows"))


def _odd_tests(reading: Reading, profile: Profile) -> Iterator[Expectation]:
    hinted = {c.item.column for s in reading.hint.statements for c in s.conditions}
    for test in profile.tests:
        column = test.column
        if column is None or column in hinted:
            continue
        if (
            test.op in {"<", ">", "<=", ">="}
            and not column.is_number
            and not _is_time(column)
            and test.literals[0].isdigit()
        ):
            yield _doubt(
                f"{column.name} holds text, which is not greater or less than a number",
                2.5,
                "schema",
                Demand("no-value", column=column, text=test.literals[0]),
            )
        if test.op in {"<", ">", "<=", ">="} and column.is_key and not _is_time(column):
            yield _doubt(f"{column.name} is a key; it measures nothing", 2.5, "schema", Demand("no-use", column=column))
        yield from _misplaced(reading, column, test.literals[0], test.op)
    for output in profile.outputs:
        column = output.column
        if output.aggregate not in {"sum", "avg"} or column is None or output.is_expression:
            continue
        if column.is_key or not column.is_number:
            yield _doubt(f"{column.name} cannot be added up", 2.5, "schema", Demand("no-output", column=column))


def _misplaced(reading: Reading, column: Field, literal: str, op: str) -> Iterator[Expectation]:
    """A value that is known in other columns, but not in the one it is looked for in."""
    if op not in {"=", "in", "!="}:
        return
    holders = [f for f in reading.schema.fields() if any(same_value(literal, value) for value in f.matches)]
    if holders and column not in holders and not any(same_value(literal, value) for value in column.examples):
        where = holders[0]
        yield _doubt(
            f"the value {literal[:60]!r} is not known in {column.name}, but in {where.table}.{where.name}",
            3.0,
            "schema",
            Demand("column-value", column=where, text=literal),
        )


def _is_time(column: Field) -> bool:
    return column.likeness_to("year") >= 0.8 or column.likeness_to("date") >= 0.8


def _odd_result(reading: Reading, profile: Profile, execution: Mapping[str, Any]) -> Iterator[Expectation]:
    rows = [row for row in execution.get("rows") or [] if isinstance(row, list)]
    count = execution.get("row_count")
    if count == 0:
        suspects = unfounded(reading.schema, profile)
        for demand in suspects:
            yield _doubt("no row meets the conditions", 5.0, "schema", demand)
        if not suspects:
            yield _doubt("no row comes, though each condition by itself is well founded", 5.0, "schema")
        return
    if rows and all(cell is None for row in rows for cell in row):
        yield _doubt("the result holds nothing but NULL", 4.0, "logic")
    plain_count = len(rows) == 1 and rows[0] == [0] and len(profile.outputs) == 1
    if plain_count and profile.tests:
        yield _doubt(
            "the number is 0, so a condition may be on the wrong column",
            1.5,
            "schema",
            *(
                Demand("no-value", column=t.column, text=t.literals[0])
                for t in profile.tests[:1]
                if t.column is not None
            ),
        )
    yield from _odd_cells(reading, rows)


def unfounded(schema: SchemaView, profile: Profile) -> list[Demand]:
    """Conditions that may be why no row comes: on text that is not known to be in the column, or is in others too."""
    found = []
    for test in profile.tests:
        column, value = test.column, test.literals[0]
        if column is None or test.op not in {"=", "in", "like"} or (column.is_number and value.isdigit()):
            continue
        holders = [c for c in schema.fields() if any(same_value(value, known) for known in (*c.matches, *c.examples))]
        if holders != [column]:
            found.append(Demand("no-value", column=column, text=value))
    return list(dict.fromkeys(found))


def _odd_cells(reading: Reading, rows: list[list[Any]]) -> Iterator[Expectation]:
    """Names are no numbers, and numbers of rows no texts."""
    lows = reading.lows
    if not rows or not rows[0]:
        return
    first = rows[0][0]
    asks_name = bool({"name", "names", "who"} & set(lows[:6])) and not counts_rows(reading)
    if asks_name and len(rows[0]) == 1 and isinstance(first, int | float):
        yield _doubt("names are asked for, and numbers come", 2.5, "alignment")
    if lows[:2] == ("how", "many") and len(rows[0]) == 1 and isinstance(first, str) and not first.isdigit():
        yield _doubt("a number is asked for, and text comes", 3.0, "alignment", Demand("function", text="COUNT"))
