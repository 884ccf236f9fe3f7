"""Questions of a bench as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.cli.ledger import dollars, token_row
from orchestrator.cli.sql_question_documents import (
    SqlAnswer,
    SqlQueryDocument,
    SqlQuestionDocument,
    SqlQuestionEntry,
    SqlQuestionsDocument,
)
from orchestrator.cli.sql_tables import method_title
from orchestrator.cli.terminal import Rows
from orchestrator.evaluation.sql_judge import Metric

_METRICS = [metric.value for metric in Metric]
_LISTED = 500
"""Questions of a list; `--json` has all."""
_RAN = 40
"""Queries of a question, likewise."""


def questions_parts(document: SqlQuestionsDocument, k: int, measured: list[str]) -> list[Rows | str]:
    """A list of questions.

    Args:
        document: The list.
        k: Candidates of a round.
        measured: Methods of the bench.
    """
    found = document.questions
    every = f"`evolvarium show {document.run} --questions all` lists every question."
    what = {
        "failed": f"Questions that {method_title(document.method, k)} did not get right ({document.metric})",
        "right": f"Questions that {method_title(document.method, k)} got right ({document.metric})",
        "left-out": "Questions that have left the denominator",
        "all": "Questions",
    }[document.which]
    if not found:
        return [f"{what}: none of run {document.run}.", every]
    more = f", the first {_LISTED} (--json has all)" if len(found) > _LISTED else ""
    columns = ["id", "database", *(method_title(one, k) for one in measured), "flags", "not evaluable because"]
    rows = Rows(
        title=f"{what}: {len(found)} of run {document.run}{more}",
        columns=columns,
        rows=[_listed(one, measured) for one in found[:_LISTED]],
        cell_characters=200,
    )
    return [rows, "", f"`evolvarium show {document.run} ID` shows one of them whole."]


def question_parts(document: SqlQuestionDocument, k: int) -> list[Rows | str]:
    """One question."""
    parts: list[Rows | str] = [_standing(document), ""]
    if document.answers:
        parts += [_answers(document, k), ""]
        for answer, titles in _different(document, k):
            parts += [f"{titles}:", *_query_parts(answer.query), *_difference(answer), ""]
    elif document.answered and document.not_reached:
        parts += ["The budget did not reach it.", ""]
    if document.asked:
        parts += [_asked(document, k), ""]
    if document.queries:
        parts += [_ran(document), ""]
    return [*parts, *_gold(document)]


def _listed(one: SqlQuestionEntry, measured: list[str]) -> list[object]:
    return [
        one.id,
        one.database,
        *(_right(one.right.get(method)) if one.answered else None for method in measured),
        ", ".join(one.flags) or None,
        f"{one.standing}: {one.reason}" if one.reason else None,
    ]


def _right(metrics: list[str] | None) -> str:
    if metrics is None:
        return "not reached"
    if len(metrics) == len(_METRICS):
        return "right"
    return f"only {', '.join(metrics)}" if metrics else "wrong"


def _standing(document: SqlQuestionDocument) -> Rows:
    strict = document.candidates["strict"]
    rows: list[list[object]] = [
        ["question", "not kept by the version that made the run" if document.text is None else document.text],
        ["evidence", document.evidence or None],
        ["difficulty", document.difficulty or None],
        ["database", document.database],
        ["standing", f"{document.standing}: {document.reason}" if document.reason else document.standing],
        ["gold depends on the order of reading", document.nondeterministic],
        ["right candidates of the first round (strict)", f"{strict.right} of {strict.of}"],
        ["not reached by the budget", ", ".join(document.not_reached) or None],
        ["requests", document.requests],
        ["calls lost in crashes", document.lost],
        token_row(document.usage),
        ["US dollars", dollars(document.usage)],
    ]
    title = f"Question {document.id} of run {document.run}"
    return Rows(title=title, columns=["what", "value"], rows=rows, cell_characters=4000)


def _answers(document: SqlQuestionDocument, k: int) -> Rows:
    rows: list[list[object]] = [
        [
            method_title(one.method, k),
            *(metric in one.right for metric in _METRICS),
            ", ".join(one.flags) or None,
            _result(one.query),
            one.ending,
            ", ".join(f"T{n} {_right(right)}" for n, right in enumerate(one.after_rounds, 1)) or None,
            one.unreadable or None,
        ]
        for one in document.answers
    ]
    columns = ["method", *_METRICS, "flags", "its result", "ending", "after each round", "unreadable critiques"]
    return Rows(title="Answers", columns=columns, rows=rows, cell_characters=200)


def _different(document: SqlQuestionDocument, k: int) -> Iterator[tuple[SqlAnswer, str]]:
    """Each different answer, with the methods that gave it."""
    by_sql: dict[str, list[SqlAnswer]] = {}
    for one in document.answers:
        by_sql.setdefault(one.query.sql, []).append(one)
    for same in by_sql.values():
        yield same[0], ", ".join(method_title(one.method, k) for one in same)


def _difference(answer: SqlAnswer) -> list[str]:
    """Why an answer is not right."""
    return [f"Against the gold result: {'; '.join(answer.difference)}."] if answer.difference else []


def _query_parts(query: SqlQueryDocument) -> list[Rows | str]:
    if not query.sql:
        return ["no candidate held a query"]
    if not query.rows:
        return [query.sql, f"Its result: {_result(query)}"]
    rows = [["NULL" if cell is None else str(cell) for cell in row] for row in query.rows]
    first = f", the first {len(rows)}" if len(rows) < query.row_count else ""
    return [query.sql, "", Rows(title=f"Its result: {_result(query)}{first}", columns=query.columns, rows=rows)]


def _result(query: SqlQueryDocument) -> str:
    if query.status is None:
        return "none"
    if query.status != "ok":
        return f"{query.status}: {query.message}"
    count = "1 row" if query.row_count == 1 else f"{query.row_count} rows"
    return f"{count}{' and more' if query.truncated else ''}"


def _asked(document: SqlQuestionDocument, k: int) -> Rows:
    has_writes = any(one.cache_write_input_tokens for one in document.asked)
    rows: list[list[object]] = [
        [
            "all" if one.method is None else method_title(one.method, k),
            one.round,
            one.phase,
            one.requests,
            one.input_tokens,
            one.cached_input_tokens,
            *([one.cache_write_input_tokens] if has_writes else []),
            one.output_tokens,
        ]
        for one in document.asked
    ]
    written = ["written to a cache"] if has_writes else []
    columns = ["method", "round", "asked for", "requests", "input tokens", "cached", *written, "output tokens"]
    return Rows(title="What was asked", columns=columns, rows=rows)


def _ran(document: SqlQuestionDocument) -> Rows:
    shown = document.queries[:_RAN]
    more = f", the first {_RAN} (--json has all)" if len(shown) < len(document.queries) else ""
    rows = [[_result(one), one.sql] for one in shown]
    title = f"Queries that were run: {len(document.queries)}{more}"
    return Rows(title=title, columns=["result", "SQL"], rows=rows, cell_characters=400)


def _gold(document: SqlQuestionDocument) -> list[Rows | str]:
    if document.gold is None:
        return [f"The gold query is not shown; `evolvarium show {document.run} {document.id} --gold` shows it."]
    return ["Gold:", *_query_parts(document.gold)]
