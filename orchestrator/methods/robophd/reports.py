"""What an evolver may read of single questions: what was asked, what a package answered, and how that differs in shape.

No gold query and no gold row can get in: nothing here is made from either, but for the words of `sql.differences`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.sql import QueryResult
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.sql.shown_results import ShownBounds, shown_result

_TEXT_CHARACTERS = 4_000
_NO_RESULT: Mapping[str, Any] = {
    "status": None,
    "error": "there was no query to run",
    "columns": [],
    "rows": [],
    "row_count": 0,
    "truncated": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """A question that a package answered wrong."""

    question: str
    evidence: str
    """Empty: there is none."""
    sql: str
    """What the package's model wrote; empty: it wrote no query."""
    result: Mapping[str, Any]
    """What running it gave, as models are shown it."""
    difference: tuple[str, ...]
    """The shape of the difference to what is wanted, never a value."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "question": self.question,
            "evidence": self.evidence,
            "sql": self.sql,
            "result": dict(self.result),
            "difference": list(self.difference),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessReport:
    """A question that a package answered right."""

    question: str
    evidence: str
    """Empty: there is none."""
    sql: str

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"question": self.question, "evidence": self.evidence, "sql": self.sql}


def error_report(
    question: QuestionView,
    *,
    sql: str,
    result: QueryResult | None,
    difference: tuple[str, ...],
    bounds: ShownBounds,
) -> ErrorReport:
    """A report of a wrong answer.

    Args:
        question: Without its gold query.
        sql: The answer; empty: there was no query.
        result: What running it gave; None: there was no query.
        difference: From whoever knows the gold result.
        bounds: How much of the result is shown.
    """
    return ErrorReport(
        question=_cut(question.text),
        evidence=_cut(question.evidence),
        sql=_cut(sql),
        result=_NO_RESULT if result is None else shown_result(result, bounds),
        difference=difference,
    )


def success_report(question: QuestionView, *, sql: str) -> SuccessReport:
    """A report of a right answer.

    Args:
        question: Without its gold query.
        sql: The answer.
    """
    return SuccessReport(question=_cut(question.text), evidence=_cut(question.evidence), sql=_cut(sql))


def errors_document(agent: str, database: str, errors: Sequence[ErrorReport], *, limit: int) -> dict[str, Any]:
    """The errors of one package on one database, as JSON.

    Args:
        agent: Id of the package.
        database: Id.
        errors: In the order of the questions.
        limit: How many are shown; the others are counted.
    """
    shown = errors[:limit]
    return {
        "agent": agent,
        "database": database,
        "errors": [error.document for error in shown],
        "omitted": len(errors) - len(shown),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS else text[: _TEXT_CHARACTERS - 1] + "…"
