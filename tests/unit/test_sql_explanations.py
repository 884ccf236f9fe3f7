"""What `sql ask --explain` shows of a round: equal candidates once, and everything else as it was."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.sql_explanations import explanation_parts, numbers
from orchestrator.cli.terminal import Rows

FOUND = {"status": "ok", "row_count": 1, "truncated": False, "error": None}
ROUND = {
    "round": 0,
    "clusters": {"r1": 2},
    "agreement": {"result": "r1", "share": 1.0, "is_stable": True},
    "summary": "",
    "is_judged": True,
    "unreadable": 0,
    "answer": {"index": 0, "round": 0, "result": "r1", "utility": 9.3},
}
CRITIQUE = {"scores": {"score": 9.0}, "issues": [], "execution_assessment": "fits"}


def entry(index: int, sql: str, **different: Any) -> dict[str, Any]:
    same = {"result": "r1", "execution": FOUND, "confidence": 9.0, "utility": 9.3, "critique": CRITIQUE}
    return {"index": index, "sql": sql, **same, **different}


def shown(*candidates: dict[str, Any]) -> Rows:
    """The table of a round with these candidates."""
    round_ = {**ROUND, "candidates": list(candidates), "clusters": {"r1": len(candidates)}}
    _, table, _ = explanation_parts({"rounds": [round_]})
    assert isinstance(table, Rows)
    return table


def columns(table: Rows, *names: str) -> list[list[object]]:
    places = [list(table.columns).index(name) for name in names]
    return [[row[place] for place in places] for row in table.rows]


def test_equal_candidates_are_one_row_that_counts_and_names_them() -> None:
    table = shown(entry(0, "SELECT 1"), entry(1, "SELECT 2"), entry(2, "SELECT\n 1"), entry(3, "SELECT 1"))
    assert columns(table, "count", "candidates", "SQL") == [[3, "0, 2, 3", "SELECT 1"], [1, "1", "SELECT 2"]]
    assert table.title == "Round 0: 2 different of 4 candidates"


def test_candidates_with_equal_sql_that_were_judged_otherwise_stay_apart() -> None:
    other = {**CRITIQUE, "scores": {"score": 4.0}}
    table = shown(entry(0, "SELECT 1"), entry(1, "SELECT 1", confidence=4.0, critique=other))
    assert columns(table, "count", "candidates", "confidence") == [[1, "0", 9.0], [1, "1", 4.0]]
    assert table.title == "Round 0: 2 candidates"


def test_a_score_that_was_made_up_is_not_shown_and_why_is_said() -> None:
    unread = [entry(0, "SELECT 1", confidence=5.0, critique=None), entry(1, "SELECT 2")]
    round_ = {**ROUND, "candidates": unread, "unreadable": 1}
    _, table, _, said = explanation_parts({"rounds": [round_]})
    assert isinstance(table, Rows)
    assert columns(table, "confidence") == [[None], [9.0]]
    assert said == "The critic's replies could not be read (1 of 2 candidates)."
    inherited = explanation_parts({"rounds": [{**round_, "unreadable": 0, "is_judged": False}]})[1]
    assert isinstance(inherited, Rows)
    assert columns(inherited, "confidence") == [[5.0], [9.0]]


def test_white_space_inside_a_text_makes_another_query() -> None:
    assert len(shown(entry(0, "SELECT 'a  b'"), entry(1, "SELECT 'a b'")).rows) == 2


def test_many_numbers_are_written_as_ranges() -> None:
    assert numbers([0, 2, 3, 4, 5, 9, 10]) == "0, 2-5, 9, 10"
    assert numbers([7]) == "7"
    assert numbers([]) == ""
