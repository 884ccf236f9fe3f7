"""The critic and the selector: good queries over bad ones, issues with repairs, and no query of their own."""

from __future__ import annotations

import json

import pytest

from orchestrator.llm.offline.sql.demands import SENTENCES, Demand, demands_in, is_met
from orchestrator.llm.offline.sql.profile import profile_of
from orchestrator.llm.offline.sql.schema_reader import read_schema
from tests.unit.offline_sql.observatory import SCHEMA, ask, candidates, json_in, judged, message

VIEW = read_schema(SCHEMA)
PAIRS = [
    ("How many telescopes are there?", "SELECT COUNT(*) FROM telescope", "SELECT name FROM telescope"),
    (
        "List the names of observatories in Chile.",
        "SELECT name FROM observatory WHERE country = 'Chile'",
        "SELECT name FROM observatory",
    ),
    (
        "Who is the youngest astronomer?",
        "SELECT full_name FROM astronomer ORDER BY age LIMIT 1",
        "SELECT full_name FROM astronomer",
    ),
    (
        "Which telescope has the highest price?",
        "SELECT name FROM telescope ORDER BY price DESC LIMIT 1",
        "SELECT name FROM telescope ORDER BY price LIMIT 1",
    ),
    (
        "Which astronomers are older than 40?",
        "SELECT full_name FROM astronomer WHERE age > 40",
        "SELECT full_name FROM astronomer WHERE age < 40",
    ),
    (
        "What are the names of observatories that are not in Norway?",
        "SELECT name FROM observatory WHERE country != 'Norway'",
        "SELECT name FROM observatory WHERE country = 'Norway'",
    ),
    (
        "How many different kinds are there?",
        "SELECT COUNT(DISTINCT kind) FROM telescope",
        "SELECT COUNT(kind) FROM telescope",
    ),
    (
        "How many telescopes are there for each kind?",
        "SELECT kind, COUNT(*) FROM telescope GROUP BY kind",
        "SELECT COUNT(*) FROM telescope",
    ),
    ("What are the names of telescopes?", "SELECT name FROM telescope", "SELECT name, price FROM telescope"),
    (
        "What are the names of telescopes?",
        "SELECT name FROM telescope",
        "SELECT name FROM telescope JOIN observation ON telescope.telescope_id = observation.telescope_id",
    ),
    (
        "List the names of observatories in Chile.",
        "SELECT name FROM observatory WHERE country = 'Chile'",
        "SELECT name FROM observatory WHERE name = 'Chile'",
    ),
    ("What are the names of telescopes?", "SELECT name FROM telescope", "SELECT nme FROM telescope"),
    ("What are the names of telescopes?", "SELECT name FROM telescope", "SELECT name FROM telescope LIMIT 1"),
    (
        "List the ages of astronomers in descending order of age.",
        "SELECT age FROM astronomer ORDER BY age DESC",
        "SELECT age FROM astronomer ORDER BY age",
    ),
]


@pytest.mark.parametrize(("question", "good", "bad"), PAIRS)
def test_a_good_query_is_scored_over_a_bad_one(question: str, good: str, bad: str) -> None:
    first, second = judged(question, good, bad)["evaluations"]
    assert first["scores"]["score"] >= 8
    assert first["issues"] == []
    assert second["scores"]["score"] < 8
    assert second["issues"]
    assert all(0 <= e["scores"]["score"] <= 10 for e in (first, second))


@pytest.mark.parametrize(("question", "good", "bad"), PAIRS)
def test_the_selector_chooses_the_good_query_wherever_it_stands(question: str, good: str, bad: str) -> None:
    for order, right in (((good, bad), 1), ((bad, good), 2)):
        text = message("Choose a SQLite query", Schema=SCHEMA, Question=question, Candidates=candidates(*order))
        assert json_in(ask(text))["choice"] == right


def test_the_earlier_of_two_equal_queries_is_chosen() -> None:
    same = "SELECT name FROM telescope"
    text = message(
        "Choose a SQLite query", Schema=SCHEMA, Question="List telescope names.", Candidates=candidates(same, same)
    )
    assert json_in(ask(text))["choice"] == 1


def test_four_scores_are_given_where_four_are_asked_for() -> None:
    names = ["alignment", "schema", "logic", "completeness"]
    good, bad = judged(
        "How many telescopes are there?", "SELECT COUNT(*) FROM telescope", "SELECT name FROM telescope", scores=names
    )["evaluations"]
    assert list(good["scores"]) == names
    assert min(good["scores"].values()) >= 8
    assert max(bad["scores"].values()) < 8


def test_an_empty_result_is_named_and_costs_the_score() -> None:
    evaluation = judged("List the names of telescopes named Hydra.", "SELECT name FROM telescope WHERE name = 'Hydra'")[
        "evaluations"
    ][0]
    assert evaluation["scores"]["score"] <= 2.5
    assert "no row" in evaluation["execution_assessment"]
    assert "Do not filter telescope.name on the value 'Hydra'." in [issue["repair"] for issue in evaluation["issues"]]


def test_the_summary_keeps_earlier_lessons_and_adds_new_ones_within_bounds() -> None:
    answer = judged(
        "Who is the youngest astronomer?", "SELECT full_name FROM astronomer", summary="Use the column astronomer.age."
    )
    lines = answer["cumulative_summary"].split("\n")
    assert lines[0] == "Use the column astronomer.age."
    assert any("extreme" in line for line in lines)
    assert len(lines) <= 14


def test_the_critic_writes_no_sql() -> None:
    answer = judged(PAIRS[0][0], PAIRS[0][2])
    texts = [issue["repair"] for e in answer["evaluations"] for issue in e["issues"]] + [answer["cumulative_summary"]]
    assert not any("SELECT" in text.upper().split() for text in texts)


@pytest.mark.parametrize("kind", sorted(SENTENCES))
def test_every_sentence_is_understood_by_the_generator_as_it_is_written(kind: str) -> None:
    column = VIEW.field("observatory", "name") if "{column}" in SENTENCES[kind] else None
    table = "telescope" if "{table}" in SENTENCES[kind] else ""
    text = "O'Neil. Jr" if "{value}" in SENTENCES[kind] else "3" if "{text}" in SENTENCES[kind] else ""
    demand = Demand(kind, column, table, text)
    assert demand in demands_in(f"Surely. {demand} And so on.", VIEW)


def test_a_profile_sees_subqueries_with_their_own_aliases() -> None:
    profile = profile_of(
        "SELECT T1.name FROM observatory AS T1 WHERE T1.observatory_id NOT IN "
        "(SELECT T1.observatory_id FROM telescope AS T1)",
        VIEW,
    )
    assert not profile.unknown
    assert profile.denies
    assert is_met(Demand("output", VIEW.field("observatory", "name")), profile)


def test_a_profile_notes_names_that_the_schema_does_not_have() -> None:
    assert profile_of("SELECT a.nothing FROM telescope AS a JOIN nowhere", VIEW).unknown == ["nowhere", "a.nothing"]


def test_candidates_that_are_malformed_are_left_out() -> None:
    listed = json.dumps([{"sql": "SELECT 1"}, 3, {"index": 2, "sql": "SELECT COUNT(*) FROM telescope"}])
    text = message("Judge SQLite queries", Schema=SCHEMA, Question="How many telescopes?", Candidates=listed)
    assert [e["index"] for e in json_in(ask(text))["evaluations"]] == [2]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What are the names of telescopes?", "the question asks for 1 column"),
        ("What are the names and prices of telescopes?", "the question asks for 2 columns"),
    ],
)
def test_it_counts_the_columns_that_are_asked_for_in_words(question: str, said: str) -> None:
    (evaluation,) = judged(question, "SELECT name, price, kind FROM telescope")["evaluations"]
    assert said in [issue["problem"] for issue in evaluation["issues"]]
