"""An answer of `sql ask`: the document, and the text that stands for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from orchestrator.bootstrap.sql.ask import Answered, Asking
from orchestrator.bootstrap.sql.confidence import content_words, is_confident, known_confidence
from orchestrator.cli.ledger import taken, usage_document
from orchestrator.cli.sql_documents import HiddenColumn, SqlAnswerDocument, WithheldWords
from orchestrator.cli.terminal import Rows
from orchestrator.domain.data_access import Hidden
from orchestrator.domain.sql import QueryResult
from orchestrator.methods.evosql import Solution
from orchestrator.runtime.counts import counted
from orchestrator.search.reply_kinds import ReplyKind, in_words
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
    confidence = known_confidence(solution)
    threshold = asking.settings.confidence_threshold
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
        confidence=confidence,
        threshold=threshold,
        confident=is_confident(confidence, threshold, withheld=answered.withheld, unplaced=answered.unplaced),
        doubts=critics_doubts(solution),
        model=asking.generator.name,
        critic_model=asking.critic.name,
        seed=asking.settings.seed,
        policy=policy,
        hidden=len(answered.access.hidden),
        withheld=[WithheldWords(words=one.words, columns=hidden_columns(one.columns)) for one in answered.withheld],
        unplaced=None if answered.unplaced is None else list(answered.unplaced),
        sqlite=answered.sqlite_version,
        requests=answered.requests,
        replies={kind.value: count for kind, count in answered.outcomes.counts.items()},
        too_long=answered.outcomes.too_long,
        usage=usage_document(answered.usage),
        explanation=answered.explanation if explain else None,
    )


def critics_doubts(solution: Solution) -> list[str]:
    """What the critic found wrong with the answer, or why it says nothing of it."""
    critique = solution.answer.critique
    if critique is not None:
        return [issue.problem for issue in critique.issues]
    if known_confidence(solution) is not None:
        return []
    unreadable = sum(round_.unreadable for round_ in solution.rounds)
    if unreadable:
        return [
            f"the critic's replies could not be read ({unreadable} of {counted(len(solution.entries), 'candidate')})"
        ]
    return ["the budget was spent before anybody judged it"]


def answer_parts(document: SqlAnswerDocument) -> list[Rows | str]:
    """An answer as people read it: what the policy keeps back stands first, what else speaks against it below."""
    kept_back: list[Rows | str] = [part for one in document.withheld for part in (_kept_back(document, one), "")]
    if not document.sql:
        return [*kept_back, _no_query(document), _how(document), *_took(document)]
    parts = [*kept_back, document.sql, ""]
    if document.answered:
        parts.append(_result(document))
    else:
        parts.append(f"No candidate ran to its end; this one: {document.status}, {document.message}")
    if document.answered and not document.confident:
        parts += ["", f"Doubtful: {'; '.join(_doubts(document))}."]
    if document.unplaced:
        parts += ["", f"Words of the question that the model passed over: {_quoted(document.unplaced)}."]
    return [*parts, "", _how(document), *_took(document)]


def _no_query(document: SqlAnswerDocument) -> str:
    said = in_words(document.replies, document.too_long, wanted=(ReplyKind.TEXT,))
    if said:
        return f"No candidate held a query: {' '.join(said)}"
    if document.replies:
        return "No candidate held a query: there was none in what the model said."
    if document.ending == "budget":
        return "No candidate held a query: the budget was spent before the model had given one."
    return (
        "No candidate held a query: question and schema leave no room for one in the model's context; ask a --model "
        "with a longer one, or say in a --models file what it really takes (`context_tokens`)."
    )


def nothing_passed_over(document: SqlAnswerDocument) -> list[str]:
    """That the model made something of every word, where it says so."""
    return ["The model passed over no word of the question."] if document.unplaced == [] else []


def _took(document: SqlAnswerDocument) -> list[str]:
    return taken((document.model, document.critic_model), document.requests, document.usage)


def _kept_back(document: SqlAnswerDocument, withheld: WithheldWords) -> str:
    names = [f"{one.table}.{one.column}" for one in withheld.columns]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    rules = "; ".join(dict.fromkeys(one.rule for one in withheld.columns))
    instead = "; if you ask for it, the result is something else" if document.answered else ""
    return (
        f"Policy {document.policy} keeps back what the question calls {withheld.words!r}: "
        f"{', '.join(names[:_NAMES_SHOWN])}{more} ({rules}). No query could read it{instead}."
    )


def _doubts(document: SqlAnswerDocument) -> Iterator[str]:
    """What speaks against an answer; the critic comes last, for its list has an open end."""
    kept_back = [one.words for one in document.withheld]
    if kept_back:
        yield f"the policy keeps back what the question calls {_quoted(kept_back)}"
    missing = [word for word in content_words(document.unplaced or ()) if word not in kept_back]
    if missing:
        yield f"the query may have nothing to do with {_quoted(missing)}"
    if document.confidence is None:
        yield from document.doubts
    elif document.confidence < document.threshold:
        found = "; ".join(document.doubts)
        yield f"the critic gives it {document.confidence:g} of 10{': ' + found if found else ''}"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


def _result(document: SqlAnswerDocument) -> Rows | str:
    if not document.rows:
        return "The result has no rows."
    shown, kept = len(document.rows), document.row_count
    more = f", the first {shown} of {kept}{' that are kept' if document.truncated else ''}" if shown < kept else ""
    title = f"{counted(kept, 'row')}{' and more' if document.truncated else ''}{more}"
    return Rows(title=title, columns=document.columns, rows=[list(map(_shown, row)) for row in document.rows])


def _shown(cell: Any) -> object:  # noqa: ANN401 - a cell
    return "NULL" if cell is None else str(cell)


def _how(document: SqlAnswerDocument) -> str:
    ending = {
        "stable": "the best candidates agreed" + (" with confidence" if document.confident else ""),
        "rounds": "all rounds were made",
        "budget": "the budget was spent",
    }[document.ending]
    agreeing = f"; {document.supporting} of the best {document.of_best} give this result" if document.answered else ""
    hidden = f" Policy {document.policy} keeps back {counted(document.hidden, 'column')}." if document.hidden else ""
    return (
        f"{'Found' if document.answered else 'Looked for'} in {counted(document.rounds, 'round')} with "
        f"{counted(document.candidates, 'candidate')}: {ending}{agreeing}.{hidden}"
    )
