"""An answer of `sql ask`: the document, and the text that stands for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.bootstrap.sql.ask import Answered, Asking
from orchestrator.cli.sql_documents import HiddenColumn, SqlAnswerDocument, WithheldWords
from orchestrator.cli.sql_summaries import usage_document
from orchestrator.cli.terminal import Rows
from orchestrator.domain.data_access import Hidden
from orchestrator.domain.sql import QueryResult
from orchestrator.sql.shown_results import shown_cell

_CELL_CHARACTERS = 200
_NAMES_SHOWN = 5


def hidden_columns(hidden: Iterable[Hidden]) -> list[HiddenColumn]:
    """What a policy keeps back, as documents have it."""
    return [HiddenColumn(table=one.table, column=one.column, rule=one.rule) for one in hidden]


def answer_document(asking: Asking, answered: Answered, *, policy: str, rows: int, explain: bool) -> SqlAnswerDocument:
    """The document of an answer.

    Args:
        asking: What was asked.
        answered: What came of it.
        policy: Its name.
        rows: So many of the result are in it.
        explain: Whether the explanation is.
    """
    solution = answered.solution
    result = answered.result or QueryResult(status=solution.answer.execution.status)
    best = [entry.outcome for entry in solution.best]
    chosen, critique = solution.rounds[-1].assessment.answer, solution.answer.critique
    return SqlAnswerDocument(
        question=asking.question,
        database=answered.database,
        digest=answered.digest,
        answered=solution.answer.is_valid,
        sql=solution.answer.sql,
        status=None if answered.result is None else result.status.value,
        message=result.message,
        columns=list(result.columns),
        rows=[[shown_cell(cell, _CELL_CHARACTERS) for cell in row] for row in result.rows[:rows]],
        row_count=len(result.rows),
        truncated=result.truncated,
        ending=solution.ending.value,
        rounds=len(solution.rounds),
        candidates=len(solution.entries),
        supporting=best.count(solution.answer.execution.cluster),
        of_best=len(best),
        confidence=chosen.confidence,
        confident=chosen.confidence >= asking.settings.confidence_threshold,
        doubts=[] if critique is None else [issue.problem for issue in critique.issues],
        model=asking.generator.name,
        critic_model=asking.critic.name,
        seed=asking.settings.seed,
        policy=policy,
        hidden=len(answered.access.hidden),
        withheld=[WithheldWords(words=one.words, columns=hidden_columns(one.columns)) for one in answered.withheld],
        unplaced=None if answered.unplaced is None else list(answered.unplaced),
        sqlite=answered.sqlite_version,
        requests=answered.requests,
        usage=usage_document(answered.usage),
        explanation=answered.explanation if explain else None,
    )


def answer_parts(document: SqlAnswerDocument) -> list[Rows | str]:
    """An answer as people read it; what the policy keeps back of the question stands first."""
    kept_back: list[Rows | str] = [part for one in document.withheld for part in (_kept_back(document, one), "")]
    if not document.sql:
        return [*kept_back, "No candidate held a query.", _how(document)]
    parts = [*kept_back, document.sql, ""]
    if document.answered:
        parts.append(_result(document))
    else:
        parts.append(f"No candidate ran to its end; this one: {document.status}, {document.message}")
    if document.answered and not document.confident:
        parts += ["", _doubt(document)]
    return [*parts, "", _how(document)]


def passed_over(document: SqlAnswerDocument) -> list[str]:
    """Which words of the question the model made nothing of, as far as it says."""
    if document.unplaced is None:
        return []
    if not document.unplaced:
        return ["The model passed over no word of the question."]
    return [f"Words of the question that the model passed over: {', '.join(map(repr, document.unplaced))}."]


def _kept_back(document: SqlAnswerDocument, withheld: WithheldWords) -> str:
    names = [f"{one.table}.{one.column}" for one in withheld.columns]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    rules = "; ".join(dict.fromkeys(one.rule for one in withheld.columns))
    instead = "; if you ask for it, the result is something else" if document.answered else ""
    return (
        f"Policy {document.policy} keeps back what the question calls {withheld.words!r}: "
        f"{', '.join(names[:_NAMES_SHOWN])}{more} ({rules}). No query could read it{instead}."
    )


def _doubt(document: SqlAnswerDocument) -> str:
    doubts = "; ".join(document.doubts)
    return f"Doubtful: the critic gives it {document.confidence:g} of 10{': ' + doubts if doubts else ''}."


def _result(document: SqlAnswerDocument) -> Rows | str:
    if not document.rows:
        return "The result has no rows."
    shown, kept = len(document.rows), document.row_count
    more = f", the first {shown} of {kept}{' that are kept' if document.truncated else ''}" if shown < kept else ""
    title = f"{document.row_count} row{'s' if kept != 1 else ''}{' and more' if document.truncated else ''}{more}"
    return Rows(title=title, columns=document.columns, rows=[list(map(_shown, row)) for row in document.rows])


def _shown(cell: Any) -> object:  # noqa: ANN401 - a cell
    return "NULL" if cell is None else str(cell)


def _how(document: SqlAnswerDocument) -> str:
    ending = {
        "stable": "its best candidates agreed with confidence",
        "rounds": "all rounds were made",
        "budget": "the budget was spent",
    }[document.ending]
    agreeing = f"; {document.supporting} of the best {document.of_best} give this result" if document.answered else ""
    hidden = f" Policy {document.policy} keeps back {document.hidden} columns." if document.hidden else ""
    return (
        f"{'Found' if document.answered else 'Looked for'} in {document.rounds} of EvoSQL's rounds with "
        f"{document.candidates} candidates: {ending}{agreeing}.{hidden}"
    )
