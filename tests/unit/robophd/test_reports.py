"""Reports of single questions: bounded, and made of nothing that is secret."""

from __future__ import annotations

import json

from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.reports import error_report, errors_document, success_report
from orchestrator.sql.shown_results import ShownBounds

QUESTION = QuestionView(
    id="shop/17", database="shop", text="Who lives in Oslo?", evidence="A city.", group="secret-group"
)
RESULT = QueryResult(status=QueryStatus.OK, columns=("name",), rows=tuple((f"n{n}",) for n in range(50)))


def test_an_error_report_holds_question_answer_result_and_difference() -> None:
    report = error_report(
        QUESTION, sql="SELECT name FROM p", result=RESULT, difference=("1 row too many",), bounds=ShownBounds(rows=2)
    )
    assert report.document == {
        "question": "Who lives in Oslo?",
        "evidence": "A city.",
        "sql": "SELECT name FROM p",
        "result": {
            "status": "ok",
            "error": "",
            "columns": ["name"],
            "rows": [["n0"], ["n1"]],
            "row_count": 50,
            "truncated": False,
        },
        "difference": ["1 row too many"],
    }


def test_a_report_without_a_query_says_that_there_was_none() -> None:
    report = error_report(QUESTION, sql="", result=None, difference=(), bounds=ShownBounds())
    assert report.document["result"] == {
        "status": None,
        "error": "there was no query to run",
        "columns": [],
        "rows": [],
        "row_count": 0,
        "truncated": False,
    }


def test_a_success_report_holds_question_and_query_alone() -> None:
    assert success_report(QUESTION, sql="SELECT 1").document == {
        "question": "Who lives in Oslo?",
        "evidence": "A city.",
        "sql": "SELECT 1",
    }


def test_reports_over_the_limit_are_counted_and_nothing_is_endless() -> None:
    long = QuestionView(id="1", database="shop", text="q" * 100_000, evidence="e" * 100_000)
    errors = [
        error_report(long, sql="s" * 100_000, result=RESULT, difference=(), bounds=ShownBounds()) for _ in range(5)
    ]
    document = errors_document("p02", "shop", errors, limit=2)
    assert (document["agent"], document["database"]) == ("p02", "shop")
    assert (len(document["errors"]), document["omitted"]) == (2, 3)
    assert len(json.dumps(document)) < 2 * 13_000
    assert errors_document("p02", "shop", errors, limit=9)["omitted"] == 0
    assert len(json.dumps(success_report(long, sql="s" * 100_000).document)) < 13_000
