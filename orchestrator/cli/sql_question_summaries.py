"""Questions of a bench as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import get_args

from orchestrator.bootstrap.sql.one_question import OneQuestion, Ran
from orchestrator.bootstrap.sql.outcomes import CallRecord, Method, Outcome, Right
from orchestrator.bootstrap.sql.results import BenchView, Measured
from orchestrator.bootstrap.sql.scores import HEADLINE, Share
from orchestrator.cli.ledger import usage_document
from orchestrator.cli.sql_question_documents import (
    SqlAnswer,
    SqlAsked,
    SqlQueryDocument,
    SqlQuestionDocument,
    SqlQuestionEntry,
    SqlQuestionsDocument,
    Standing,
)
from orchestrator.cli.sql_summaries import shares_document
from orchestrator.domain.conversation import Usage
from orchestrator.domain.sql import QueryResult
from orchestrator.evaluation.sql_judge import Metric
from orchestrator.sql.shown_results import ShownBounds, shown_result


class Which(StrEnum):
    """Questions of a bench to list."""

    FAILED = "failed"
    RIGHT = "right"
    LEFT_OUT = "left-out"
    ALL = "all"


def questions_document(view: BenchView, which: Which) -> SqlQuestionsDocument:
    """Some or all questions, each in one line."""
    method = view.choices.methods[0]
    return SqlQuestionsDocument(
        run=view.run_id,
        which=which.value,
        method=method.value,
        metric=HEADLINE.value,
        questions=[_entry(one) for one in view.questions if _is_wanted(one, which, method)],
    )


def question_document(view: BenchView, question: OneQuestion) -> SqlQuestionDocument:
    """All that is recorded of one question."""
    measured, text = question.measured, question.text
    outcome = measured.outcome
    entry = _entry(measured)
    return SqlQuestionDocument(
        run=view.run_id,
        id=entry.id,
        database=entry.database,
        text=None if text is None else text.text,
        evidence=None if text is None else text.evidence,
        difficulty=None if text is None else text.difficulty,
        standing=entry.standing,
        reason=entry.reason,
        nondeterministic=measured.gold is not None and measured.gold.nondeterministic,
        answered=entry.answered,
        answers=[] if outcome is None else list(_answers(question, outcome)),
        not_reached=[] if outcome is None else [m.value for m in view.choices.methods if m not in outcome.answers],
        candidates=shares_document(_candidates(outcome)),
        asked=[] if outcome is None else list(_asked(outcome)),
        requests=0 if outcome is None else outcome.spent.requests,
        lost=0 if outcome is None else outcome.spent.lost,
        usage=usage_document(Usage() if outcome is None else outcome.spent.usage),
        queries=[_query(one.sql, one.result) for one in question.ran],
        gold=None if question.gold is None else _gold(question.gold),
    )


def _is_wanted(one: Measured, which: Which, method: Method) -> bool:
    is_right = one.outcome is not None and HEADLINE in one.outcome.answers.get(method, ())
    match which:
        case Which.ALL:
            return True
        case Which.LEFT_OUT:
            return _standing(one) not in {"evaluable", "pending"}
        case Which.RIGHT:
            return is_right
        case Which.FAILED:
            return one.outcome is not None and not is_right


def _entry(one: Measured) -> SqlQuestionEntry:
    outcome = one.outcome
    return SqlQuestionEntry(
        id=one.id,
        database=one.database,
        standing=_standing(one),
        reason="" if one.gold is None else one.gold.message,
        answered=outcome is not None,
        right={}
        if outcome is None
        else {m.value: _metrics(outcome.answers[m]) for m in Method if m in outcome.answers},
        flags=[] if outcome is None else sorted(flag.value for flag in outcome.flags),
    )


def _standing(one: Measured) -> Standing:
    found = "pending" if one.gold is None else one.gold.standing.value
    return next(standing for standing in get_args(Standing) if standing == found)


def _metrics(right: Right) -> list[str]:
    return [metric.value for metric in Metric if metric in right]


def _answers(question: OneQuestion, outcome: Outcome) -> Iterator[SqlAnswer]:
    for method in (one for one in Method if one in outcome.predictions):
        prediction = outcome.predictions[method]
        evolution = outcome.evolutions.get(method)
        yield SqlAnswer(
            method=method.value,
            query=_query(prediction.sql, question.answers[method]),
            right=_metrics(outcome.answers[method]),
            difference=list(question.differences.get(method, ())),
            flags=sorted(flag.value for flag in prediction.flags),
            ending=None if evolution is None else evolution.ending,
            after_rounds=[] if evolution is None else [_metrics(right) for right in evolution.answers],
            unreadable=0 if evolution is None else evolution.unreadable,
        )


def _candidates(outcome: Outcome | None) -> dict[Metric, Share]:
    first = () if outcome is None else outcome.first
    return {metric: Share(right=sum(metric in right for right in first), of=len(first)) for metric in Metric}


def _asked(outcome: Outcome) -> Iterator[SqlAsked]:
    yield from _counted(None, outcome.first_calls)
    for method, evolution in outcome.evolutions.items():
        yield from _counted(method, evolution.calls)
    yield from _counted(Method.BEST_OF_K, outcome.choice_calls)


def _counted(method: Method | None, calls: tuple[CallRecord, ...]) -> Iterator[SqlAsked]:
    for round_number, phase in dict.fromkeys((call.round, call.phase) for call in calls):
        mine = [call for call in calls if (call.round, call.phase) == (round_number, phase)]
        yield SqlAsked(
            method=None if method is None else method.value,
            phase=phase.value,
            round=round_number,
            requests=len(mine),
            input_tokens=sum(call.input for call in mine),
            cached_input_tokens=sum(call.cached for call in mine),
            cache_write_input_tokens=sum(call.written for call in mine),
            output_tokens=sum(call.output for call in mine),
        )


def _gold(gold: Ran) -> SqlQueryDocument:
    return _query(gold.sql, gold.result)


def _query(sql: str, result: QueryResult | None) -> SqlQueryDocument:
    if result is None:
        return SqlQueryDocument(sql=sql, status=None, message="", columns=[], rows=[], row_count=0, truncated=False)
    shown = shown_result(result, ShownBounds())
    return SqlQueryDocument(
        sql=sql,
        status=result.status.value,
        message=shown["error"],
        columns=shown["columns"],
        rows=shown["rows"],
        row_count=shown["row_count"],
        truncated=shown["truncated"],
    )
