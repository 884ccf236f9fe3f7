"""Hints, read as a small language: `X refers to Y`, where Y is a comparison, a column or a formula.

Hints come from data sets and are untrusted like everything else: only names of the schema, numbers, quoted text and the
functions known here get into a query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.llm.offline.sql.formulas import Parser, Statement
from orchestrator.llm.offline.sql.scanner import scan
from orchestrator.llm.offline.sql.schema import Field, SchemaView

MAX_HINT_CHARACTERS = 4_000
_STATEMENT = re.compile(r";|\n|\.(?=\s|\Z)")
_REFERS = re.compile(
    r"\b(?:refers? to|means?|stands? for|can be represented by|is represented by|indicates?)\b", re.IGNORECASE
)
_EQUALS = re.compile(
    r"(?<=[\w)'\"])\s*=\s*(?=(?:DIVIDE|SUBTRACT|MULTIPLY|ADD|SUM|COUNT|AVG|MAX|MIN|CAST)?\s*\()", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class HintView:
    """All statements of a hint."""

    statements: tuple[Statement, ...] = ()

    def favour(self, column: Field) -> float:
        """A bonus for columns that the hint names."""
        return 1.2 if any(column in statement.columns for statement in self.statements) else 0.0


def read_hint(text: str, schema: SchemaView) -> HintView:
    """The statements of a hint; what is not understood is left out."""
    statements = []
    for part in _split(text[:MAX_HINT_CHARACTERS]):
        found = _REFERS.search(part) or _EQUALS.search(part)
        phrase, body = (part[: found.start()], part[found.end() :]) if found else ("", part)
        statement = Parser(scan(body), schema).statement(phrase.strip(" ,'\""))
        if statement.conditions or statement.formula or statement.columns:
            statements.append(statement)
    return HintView(tuple(statements))


def _split(text: str) -> list[str]:
    return [part.strip() for part in _STATEMENT.split(text) if part.strip()][:40]
