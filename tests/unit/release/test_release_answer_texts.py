"""What `answer` prints: who has looked at the answer, and where the analysis came from."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.documents import UsageDocument
from orchestrator.cli.package_answer import answer_parts
from orchestrator.cli.release_documents import PackageAnswerDocument
from orchestrator.cli.terminal import Rows

ALONE = "Nobody else has checked it; there is no critic to doubt it."


def tried(*steps: str) -> list[dict[str, Any]]:
    """Attempts, each written as `phase verdict`."""
    return [dict(zip(("phase", "verdict"), step.split(), strict=True)) for step in steps]


def document(**changes: Any) -> PackageAnswerDocument:
    fields: dict[str, Any] = {
        "question": "How many?",
        "database": "shop",
        "digest": "sha256:1",
        "package": "p02",
        "manifest": "sha256:2",
        "approved_by": [],
        "answered": True,
        "ending": "answered",
        "sql": "SELECT count(*) FROM t",
        "status": "ok",
        "message": "",
        "columns": ["n"],
        "rows": [[3]],
        "row_count": 1,
        "truncated": False,
        "attempts": tried("query query", "verify correct"),
        "analysis": "tool",
        "analysis_kept": False,
        "tool_failure": None,
        "model": "offline",
        "seed": 0,
        "policy": "default",
        "hidden": 0,
        "same_image": True,
        "requests": 2,
        "usage": UsageDocument.model_construct(),
    }
    return PackageAnswerDocument.model_construct(**{**fields, **changes})


@pytest.mark.parametrize(
    ("attempts", "looked"),
    [
        (["query query", "verify correct"], "the model looked at its result once and kept it"),
        (["query query"], "the model did not look at its result"),
        (
            ["query query", "verify query"],
            "the model looked at its result once, changed its query once and did not look at the last result",
        ),
        (
            ["query query", "verify query", "verify query", "verify correct"],
            "the model looked at its results 3 times, changed its query 2 times and kept the last",
        ),
        (
            ["query query", "verify unreadable"],
            "the model looked at its result once and did not say that it keeps it",
        ),
        (
            ["query query", "verify correct", "repair query"],
            "the model looked at its result once and kept it, then repaired its query and did not look at the result",
        ),
        (
            ["query query", "verify correct", "repair correct"],
            "the model looked at its result once and kept it",
        ),
    ],
)
def test_it_says_who_has_looked_at_the_answer(attempts: list[str], looked: str) -> None:
    assert f"It may be wrong: {looked}. {ALONE}" in answer_parts(document(attempts=tried(*attempts)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "its tool's analysis of the database was made for this question, and kept"),
        ({"analysis_kept": True}, "its tool's analysis of the database was kept from an earlier question"),
        ({"analysis": "hybrid"}, "a model analysed the database, since the tool failed"),
        ({"analysis": "none"}, "there is no analysis of the database"),
    ],
)
def test_it_says_where_the_analysis_came_from(changes: dict[str, Any], words: str) -> None:
    assert answer_parts(document(**changes))[-1] == f"Package p02; {words}."


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "Answer (1 row)"),
        ({"rows": [[1], [2]], "row_count": 2}, "Answer (2 rows)"),
        ({"rows": [], "row_count": 0}, "Answer (0 rows)"),
        ({"rows": [[1]], "row_count": 3}, "Answer (3 rows, 2 not shown)"),
    ],
)
def test_rows_are_counted(changes: dict[str, Any], title: str) -> None:
    (table,) = (part for part in answer_parts(document(**changes)) if isinstance(part, Rows))
    assert table.title == title


def test_where_nothing_was_answered_nothing_is_said_of_its_worth() -> None:
    parts = answer_parts(document(answered=False, message="no such table: t", ending="answered"))
    assert parts == ["SELECT count(*) FROM t", "", "No answer: no such table: t."]


def test_what_the_answer_took_comes_last_where_a_model_was_asked() -> None:
    usage = UsageDocument(input_tokens=10, cached_input_tokens=0, output_tokens=5, usd=None)
    assert answer_parts(document(model="openai/x", usage=usage))[-1] == (
        "It took 2 requests, 15 tokens and an unknown sum of US dollars."
    )
