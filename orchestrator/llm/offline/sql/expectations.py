"""What any right answer to a question must show, read off its words one by one, without building a query.

The critic compares queries with these. They come from the same links as derivations do, but from no derivation: each
word stands for itself here, so that a derivation that forgot one is found out.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.llm.offline.sql import expected_shape
from orchestrator.llm.offline.sql.cues import Comparison
from orchestrator.llm.offline.sql.demands import Demand
from orchestrator.llm.offline.sql.expectation import STRONG, Expectation
from orchestrator.llm.offline.sql.linking import Mention
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.words import likeness, name_words


def expectations(reading: Reading) -> list[Expectation]:
    """All of a question, the weightiest first."""
    found = [
        *_values(reading),
        *_numbers(reading),
        *_operators(reading),
        *expected_shape.functions(reading),
        *expected_shape.extremes(reading),
        *expected_shape.orders(reading),
        *_columns(reading),
        *_tables(reading),
        *expected_shape.width(reading),
        *expected_shape.relations(reading),
        *_hints(reading),
    ]
    return sorted(found, key=lambda expected: -expected.weight)


def _values(reading: Reading) -> Iterator[Expectation]:
    covered = {
        literal.strip("'").lower() for s in reading.hint.statements for c in s.conditions for literal in c.literals
    }
    for mention in reading.mentions:
        values = mention.of("value")
        if mention.kind != "value" or any((t.value or "").lower() in covered for t in values):
            continue
        demands = tuple(Demand("value", text=target.value or "") for target in values)
        said = values[0].value or ""
        yield Expectation(demands=demands, problem=f"a filter on {said!r} is missing", weight=4.0, side="completeness")


def _numbers(reading: Reading) -> Iterator[Expectation]:
    inside = {place for m in reading.mentions for place in range(m.first, m.last)}
    for place, token in enumerate(reading.tokens):
        if token.number is None or place in inside or token.lower in {"one", "zero"}:
            continue
        yield Expectation(
            demands=(Demand("number", text=token.number),),
            problem=f"the number {token.number} of the question is not used",
            weight=3.5,
            side="completeness",
        )


def _operators(reading: Reading) -> Iterator[Expectation]:
    for comparison in reading.comparisons:
        allowed = _allowed(comparison)
        yield Expectation(
            demands=tuple(Demand("operator", text=op) for op in allowed),
            problem=f"nothing is compared with {allowed[0]}",
            weight=2.5,
            side="logic",
        )


def _allowed(comparison: Comparison) -> tuple[str, ...]:
    if comparison.op == "BETWEEN":
        return ("between", ">=", ">")
    if not comparison.numbers:
        return (comparison.op, "in")
    return (comparison.op,)


def _columns(reading: Reading) -> Iterator[Expectation]:
    for number, mention in enumerate(reading.mentions):
        targets = [target for target in mention.of("column") if target.column is not None]
        if mention.kind != "column" or targets[0].score < STRONG or reading.is_participle(number):
            continue
        fitting = _owned(reading, number, mention)
        said = " ".join(reading.lows[mention.first : mention.last])
        yield Expectation(
            demands=(
                *(Demand("use", column=column) for column in fitting),
                *(Demand("join", table=target.table) for target in mention.of("table")),
            ),
            problem=f"the column for {said!r} is not used, or it is that of another table",
            weight=2.0,
            side="schema",
        )


def _owned(reading: Reading, number: int, mention: Mention) -> list[Field]:
    """The columns a mention can mean, only those of the table it is said to belong to if that has one."""
    owner = reading.owners[number]
    columns = [target.column for target in mention.of("column") if target.column is not None]
    own = [column for column in columns if column.table == owner]
    if own:
        return own
    if owner is not None and mention.last - mention.first == 1:
        columns.append(reading.schema.display(owner)[0])
    return columns


def _tables(reading: Reading) -> Iterator[Expectation]:
    for number, mention in enumerate(reading.mentions):
        if mention.kind != "table" or reading.is_tail(number):
            continue
        table = mention.targets[0].table
        own = name_words(table)
        named = tuple(
            Demand("use", column=column)
            for column in reading.schema.fields()
            if any(likeness(word, own[-1]) >= 0.9 for word in column.words)
        )
        others = tuple(Demand("join", table=target.table) for target in mention.of("table"))
        yield Expectation(
            demands=(*others, *named),
            problem=f"the table {table} is spoken of, but not used",
            weight=2.0,
            side="schema",
        )


def _hints(reading: Reading) -> Iterator[Expectation]:
    for statement in reading.hint.statements:
        for condition in statement.conditions:
            column = condition.item.column
            literal = condition.literals[0].strip("'") if condition.literals else ""
            if column is not None and literal:
                yield Expectation(
                    demands=(Demand("column-value", column=column, text=literal),),
                    problem=f"the hint's condition for {statement.phrase!r} is missing",
                    weight=3.5,
                    side="alignment",
                )
        if statement.formula is not None:
            for column in statement.formula.columns[:2]:
                yield Expectation(
                    demands=(Demand("use", column=column),),
                    problem="the hint's formula is not used",
                    weight=2.5,
                    side="alignment",
                )
