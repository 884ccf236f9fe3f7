"""What `audit tool` prints."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.release_documents import ToolAuditDocument
from orchestrator.cli.releasing import audit_parts
from orchestrator.cli.terminal import Rows

FINDING = {"file": "tools/analyze.py", "line": 3, "message": "uses 'exec'"}


def document(*, findings: int = 0, concerns: int = 0, **observed: Any) -> ToolAuditDocument:
    seen = {"imports": [], "opened": ["sqlite database.sqlite"], "sql": ["SELECT 1"], "events": {}, "omitted": 0}
    run = {
        "database": "shop",
        "failure": None,
        "detail": "",
        "concerns": [f"it imported {number}" for number in range(concerns)],
        "containers": [],
        "observed": {**seen, **observed},
    }
    return ToolAuditDocument(
        package="sha256:1",
        image="sha256:2",
        policy="sha256:3",
        is_clean=not findings and not concerns,
        findings=[FINDING] * findings,
        runs=[run],
    )


def run_rows(audited: ToolAuditDocument) -> list[Any]:
    (table,) = (part for part in audit_parts(audited) if isinstance(part, Rows) and part.title == "On shop")
    return list(table.rows)


def test_imports_that_are_not_listed_are_said_to_be_the_preloaded() -> None:
    rows = run_rows(document())
    assert ["imports", "none beyond the preloaded"] in rows
    assert [row for row in rows if row[0] == "sql"] == [["sql", "SELECT 1"]]
    rows = run_rows(document(imports=["csv", "difflib"], sql=[]))
    assert [row for row in rows if row[0] == "imports"] == [["imports", "csv"], ["imports", "difflib"]]
    assert [row for row in rows if row[0] == "sql"] == []


@pytest.mark.parametrize(
    ("findings", "concerns", "words"),
    [
        (1, 1, "1 finding of the screen, 1 thing to look at."),
        (0, 2, "0 findings of the screen, 2 things to look at."),
        (2, 0, "2 findings of the screen, 0 things to look at."),
    ],
)
def test_what_was_found_is_counted(findings: int, concerns: int, words: str) -> None:
    assert audit_parts(document(findings=findings, concerns=concerns))[-1] == f"The audit of its tool: {words}"
