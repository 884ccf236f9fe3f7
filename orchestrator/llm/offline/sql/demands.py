"""Repairs as a small language: what the critic writes, and what the generator understands of any critic's words.

A demand is one sentence that a query meets or not. The critic writes these sentences; the generator finds them in the
issues and in the summary, and prefers derivations that meet them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.llm.offline.sql.profile import Profile
from orchestrator.llm.offline.sql.scanner import scan
from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.sql.quoting import identifier, text_literal

MAX_TEXT_CHARACTERS = 20_000
_MAX_DEMANDS = 60


@dataclass(frozen=True, slots=True)
class Demand:
    """One sentence."""

    kind: str
    """A key of `SENTENCES`."""
    column: Field | None = None
    table: str = ""
    text: str = ""
    """A value, number, function or operator, as the kind needs it."""

    def __str__(self) -> str:
        """The sentence."""
        name = ""
        if self.column is not None:
            name = f"{identifier(self.column.table)}.{identifier(self.column.name)}"
        value = text_literal(self.text[:80])
        return SENTENCES[self.kind].format(column=name, table=identifier(self.table), value=value, text=self.text)


SENTENCES: Mapping[str, str] = {
    "columns": "Return exactly {text} columns.",
    "output": "Return the column {column}.",
    "no-output": "Do not return the column {column}.",
    "function": "Return {text}(...).",
    "no-function": "Do not return {text}(...).",
    "value": "Filter on the value {value}.",
    "column-value": "Filter {column} on the value {value}.",
    "no-value": "Do not filter {column} on the value {value}.",
    "number": "Use the number {text}.",
    "operator": "Compare with the operator {text}.",
    "use": "Use the column {column}.",
    "no-use": "Do not use the column {column}.",
    "order": "Order the rows.",
    "order-by": "Order the rows by {column}.",
    "descending": "Order the rows descending.",
    "ascending": "Order the rows ascending.",
    "extreme": "Keep only the extreme, with LIMIT or a comparison with MAX or MIN.",
    "no-limit": "Return all rows, without LIMIT.",
    "group": "Group the rows.",
    "no-group": "Do not group the rows.",
    "count-order": "Order the groups by their number of rows.",
    "having": "Compare the number of rows of each group.",
    "exclude": "Exclude rows, with NOT IN, EXCEPT or !=.",
    "no-exclude": "Exclude no rows.",
    "except": "Exclude values of the result, with EXCEPT.",
    "join": "Join the table {table}.",
    "no-join": "Do not join the table {table}.",
    "distinct": "Return each row once, with DISTINCT.",
    "no-distinct": "Do not use DISTINCT.",
    "count-distinct": "Count distinct values.",
    "count-rows": "Count rows, not distinct values.",
    "both": "Combine two conditions that hold for different rows, with INTERSECT.",
    "either": "Accept rows that meet either condition, with OR.",
}
"""Kind to its sentence."""

_SHAPES: Mapping[str, Callable[[Profile], bool]] = {
    "order": lambda p: "order" in p.words,
    "descending": lambda p: p.descending,
    "ascending": lambda p: not p.descending,
    "extreme": lambda p: p.limit is not None or not {"max", "min"}.isdisjoint(p.words),
    "no-limit": lambda p: p.limit is None,
    "group": lambda p: "group" in p.words,
    "no-group": lambda p: "group" not in p.words,
    "count-order": lambda p: p.counts_in_order,
    "having": lambda p: "having" in p.words,
    "exclude": lambda p: p.denies or "null" in p.words,
    "no-exclude": lambda p: not p.denies,
    "except": lambda p: "except" in p.words,
    "distinct": lambda p: p.distinct or not {"group", "intersect", "except", "union"}.isdisjoint(p.words),
    "no-distinct": lambda p: not p.distinct,
    "count-distinct": lambda p: any(o.distinct for o in p.outputs),
    "count-rows": lambda p: not any(o.distinct for o in p.outputs),
    "both": lambda p: "intersect" in p.words,
    "either": lambda p: not {"or", "in"}.isdisjoint(p.words),
}
"""Kinds that say nothing but what they are."""

_CHECKS: Mapping[str, Callable[[Demand, Profile], bool]] = {
    "columns": lambda d, p: str(len(p.outputs)) == d.text,
    "output": lambda d, p: any(o.column == d.column for o in p.outputs),
    "no-output": lambda d, p: not any(o.column == d.column and not o.aggregate for o in p.outputs),
    "function": lambda d, p: any(o.aggregate == d.text.lower() for o in p.outputs) or d.text.lower() in p.words,
    "no-function": lambda d, p: not any(o.aggregate == d.text.lower() for o in p.outputs),
    "value": lambda d, p: any(same_value(d.text, literal) for literal in p.literals),
    "column-value": lambda d, p: any(
        t.column == d.column and any(same_value(d.text, literal) for literal in t.literals) for t in p.tests
    ),
    "no-value": lambda d, p: not any(t.column == d.column and d.text in t.literals for t in p.tests),
    "number": lambda d, p: d.text == str(p.limit) or any(same_value(d.text, literal) for literal in p.literals),
    "operator": lambda d, p: any(t.op == d.text.lower() for t in p.tests),
    "use": lambda d, p: d.column in p.columns,
    "no-use": lambda d, p: d.column not in p.columns,
    "order-by": lambda d, p: d.column in p.order,
    "join": lambda d, p: d.table in p.tables,
    "no-join": lambda d, p: d.table not in p.tables,
}
"""Kinds that name something."""


def is_met(demand: Demand, profile: Profile) -> bool:
    """Whether a query does what the sentence asks for."""
    shape = _SHAPES.get(demand.kind)
    return _CHECKS[demand.kind](demand, profile) if shape is None else shape(profile)


def same_value(left: str, right: str) -> bool:
    """Whether two texts are one value, but for case, white space and wildcards at the ends."""
    return left.strip(" %").lower() == right.strip(" %").lower()


_NAME = r"(?:\"(?:[^\"]|\"\")+\"|[^\s.\"']+)"


def _pattern(sentence: str) -> re.Pattern[str]:
    escaped = re.escape(sentence.rstrip("."))
    holes = {"column": rf"{_NAME}\.{_NAME}", "table": _NAME, "value": r"'(?:[^']|'')*'", "text": r"[\w.<>=!]{1,40}?"}
    for hole, form in holes.items():
        escaped = escaped.replace(r"\{" + hole + r"\}", f"(?P<{hole}>{form})")
    return re.compile(escaped + r"\.?(?=\s|\Z)", re.IGNORECASE)


_PATTERNS = {kind: _pattern(sentence) for kind, sentence in SENTENCES.items()}


def demands_in(text: str, schema: SchemaView) -> list[Demand]:
    """The demands that a critique's text makes, one sentence to a line or not, in the order of their kinds.

    Names that the schema does not have make no demand, so that nothing in a critique can bring in names of its own.
    """
    found: dict[Demand, None] = {}
    for line in text[:MAX_TEXT_CHARACTERS].split("\n"):
        for kind, pattern in _PATTERNS.items():
            for match in pattern.finditer(line):
                demand = _demand(kind, match.groupdict(), schema)
                if demand is not None and len(found) < _MAX_DEMANDS:
                    found.setdefault(demand)
    return list(found)


def _demand(kind: str, holes: Mapping[str, str | None], schema: SchemaView) -> Demand | None:
    column: Field | None = None
    table = ""
    text = holes.get("text") or ""
    if (named := holes.get("column")) is not None:
        column = _column(named, schema)
        if column is None:
            return None
    if (named := holes.get("table")) is not None:
        pieces = scan(named, 300)
        found = schema.table(pieces[0].text) if len(pieces) == 1 else None
        if found is None:
            return None
        table = found
    if (value := holes.get("value")) is not None:
        pieces = scan(value, 300)
        if len(pieces) != 1 or pieces[0].kind != "string":
            return None
        text = pieces[0].text
    return Demand(kind, column, table, text)


def _column(text: str, schema: SchemaView) -> Field | None:
    names = [piece.text for piece in scan(text, 300) if piece.is_name]
    return schema.field(names[0], names[1]) if len(names) == 2 else None
