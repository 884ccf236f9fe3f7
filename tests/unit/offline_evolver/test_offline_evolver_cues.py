"""Which wrong answers a rule could have changed."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.evolver.cues import could_change, evidence
from orchestrator.llm.offline.evolver.reports import ErrorReport
from orchestrator.llm.offline.evolver.rules import convention_ids


def wrong(question: str, sql: str, *differences: str, evidence: str = "") -> ErrorReport:
    return ErrorReport(
        question=question,
        evidence=evidence,
        sql=sql,
        status="ok",
        message="",
        row_count=3,
        differences=differences,
    )


@pytest.mark.parametrize(
    ("identifier", "fitting", "unfitting"),
    [
        ("superlative-ties", wrong("Who is oldest?", "SELECT n FROM t ORDER BY a LIMIT 1"), wrong("Who?", "SELECT 1")),
        ("superlative-limit", wrong("Who is oldest?", "SELECT n FROM t WHERE a = (SELECT MAX(a) FROM t)"),
         wrong("Who is oldest?", "SELECT n FROM t ORDER BY a LIMIT 1")),
        ("count-distinct", wrong("How many?", "SELECT COUNT(a)"), wrong("How many?", "SELECT COUNT(DISTINCT a)")),
        ("count-rows", wrong("How many?", "SELECT count( distinct a)"), wrong("How many?", "SELECT COUNT(*) FROM t")),
        ("distinct-lists", wrong("List a.", "SELECT a FROM t"), wrong("List a.", "SELECT DISTINCT a FROM t")),
        ("keep-duplicates", wrong("List a.", "SELECT DISTINCT a FROM t"), wrong("List a.", "SELECT a FROM t")),
        ("like-values", wrong("In Oslo?", "SELECT 1 WHERE a = 'Oslo'"), wrong("In Oslo?", "SELECT 1 WHERE a > 2")),
        ("not-in", wrong("Who has no pet?", "SELECT a EXCEPT SELECT b"), wrong("Who?", "SELECT a EXCEPT SELECT b")),
        ("except", wrong("Who has no pet?", "SELECT a WHERE b NOT IN (1)"), wrong("Who has no pet?", "SELECT a")),
        ("percent-hundred", wrong("What percentage?", "SELECT 1"), wrong("How many?", "SELECT 1")),
        ("group-first", wrong("For each city?", "SELECT 1 GROUP BY c"), wrong("For each city?", "SELECT 1")),
        ("only-asked", wrong("Who?", "SELECT a, b FROM t"), wrong("Who?", "SELECT a FROM t")),
        ("evidence-literally", wrong("?", "SELECT 1", evidence="a means b"), wrong("?", "SELECT 1", evidence=" ")),
        ("doubt-query", wrong("?", ""), None),
    ],
)  # fmt: skip
def test_a_rule_fits_questions_and_queries_that_it_is_about(
    identifier: str, fitting: ErrorReport, unfitting: ErrorReport | None
) -> None:
    assert identifier in convention_ids()
    assert could_change(identifier, fitting)
    assert unfitting is None or not could_change(identifier, unfitting)


def test_evidence_is_a_share_of_the_wrong_answers_and_names_both_of_two_opposites() -> None:
    found = evidence([
        wrong("Count the pets.", "SELECT name, COUNT(DISTINCT a), COUNT(b) FROM t", "the only row differs"),
        wrong("Who is it?", "SELECT name FROM t", "1 column too few"),
    ])  # fmt: skip
    assert found["count-distinct"] == pytest.approx(0.5)
    assert found["count-rows"] == pytest.approx(0.5 / 2**0.5)
    assert found["full-names"] == pytest.approx(0.5 / 2**0.5)
    assert "percent-hundred" not in found
    assert all(0 < value <= 1 for value in found.values())


def test_without_wrong_answers_there_is_no_evidence() -> None:
    assert evidence([]) == {}
