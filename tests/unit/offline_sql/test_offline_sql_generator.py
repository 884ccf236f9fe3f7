"""The generator: each construct of the grammar on real rows, sampling, and repairs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.llm.offline.sql.choices import Chooser, best_runs, softmax
from tests.unit.offline_sql.observatory import SCHEMA, answer, ask, best, database, improved, judged, message, sql_in

CONSTRUCTS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("How many telescopes are there?", [(3,)]),
    (
        "What are the names and countries of all observatories?",
        [("Birch Hill", "Norway"), ("Grey Rock", "Chile"), ("Low Fen", "Norway")],
    ),
    ("How many observatories are in Norway?", [(2,)]),
    ("List the names of observatories with an altitude above 100.", [("Birch Hill",), ("Grey Rock",)]),
    ("Which astronomers are older than 40?", [("Bo Lind",), ("Cy Moe",)]),
    ("What is the average, minimum and maximum age of astronomers?", [((31 + 58 + 44) / 3, 31, 58)]),
    ("What is the name of the observatory with the highest altitude?", [("Grey Rock",)]),
    ("Who is the youngest astronomer?", [("Ada Holm",)]),
    ("Show the names of the 2 most expensive telescopes.", [("Argus",), ("Ursa",)]),
    (
        "List the full names of astronomers ordered by age in descending order.",
        [("Bo Lind",), ("Cy Moe",), ("Ada Holm",)],
    ),
    ("How many different countries are there?", [(2,)]),
    ("Show each country and the number of observatories in it.", [("Chile", 1), ("Norway", 2)]),
    ("What is the average price for each kind of telescope?", [(80.0, "optical"), (25.25, "radio")]),
    ("Which country has the most observatories?", [("Norway",)]),
    ("What is the most common kind of telescope?", [("radio",)]),
    ("Which countries have at least 2 observatories?", [("Norway",)]),
    ("What are the names of observatories that have no telescopes?", [("Low Fen",)]),
    ("List the full names of astronomers who have never made an observation.", [("Cy Moe",)]),
    ("What are the names of telescopes in Chile?", [("Lynx",)]),
    ("How many telescopes are optical or radio?", [(3,)]),
    ("Which observatories have both optical and radio telescopes?", [("Birch Hill",)]),
    ("What are the names of observatories that are not in Norway?", [("Grey Rock",)]),
    ("Which telescopes cost more than the average?", [("Argus",)]),
    ("Which observatories were opened after 2010?", [("Grey Rock",), ("Low Fen",)]),
    ("List the names of telescopes whose price is between 5 and 45.", [("Lynx",), ("Ursa",)]),
    ("Which telescope names contain the word Arg?", [("Argus",)]),
    ("What is the average age of astronomers with at least 2 observations?", [(31.0,)]),
    ("Which astronomer made the most hours in total?", [("Bo Lind",)]),
    ("What are the lowest and the highest price?", [(10.5, 80.0)]),
    ("What percentage of telescopes are radio?", [(200 / 3,)]),
    ("What is the total number of hours of observations?", [(7.5,)]),
    ("How many observatories are there that are public?", [(2,)]),
]


@pytest.mark.parametrize(("question", "rows"), CONSTRUCTS)
def test_a_question_is_answered(question: str, rows: list[tuple[Any, ...]]) -> None:
    found = answer(question)
    assert (found if "order" in question else sorted(found)) == (rows if "order" in question else sorted(rows)) or (
        pytest.approx(found[0][0]) == rows[0][0] and len(found) == len(rows) == 1
    )


HINTED: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    ("List the high ones.", "high refers to altitude_m > 1000; ones refers to observatory.name", [("Grey Rock",)]),
    ("What is the share of radio?", "share = DIVIDE(SUM(kind = 'radio'), COUNT(telescope_id))", [(2 / 3,)]),
    ("Name the dearest telescope.", "dearest refers to MAX(price)", [("Argus",)]),
    ("How much do the prices differ?", "differ = SUBTRACT(MAX(price), MIN(price))", [(69.5,)]),
]


@pytest.mark.parametrize(("question", "hint", "rows"), HINTED)
def test_a_hint_is_followed(question: str, hint: str, rows: list[tuple[Any, ...]]) -> None:
    found = answer(question, hint)
    assert len(found) == len(rows)
    assert found[0] == pytest.approx(rows[0]) if isinstance(rows[0][0], float) else found == rows


WRITE = message(
    "Write a SQLite query", Schema=SCHEMA, Question="Show the names of observatories with radio telescopes."
)


def test_samples_differ_and_are_repeatable() -> None:
    text = message("Write a SQLite query", Schema=SCHEMA, Question="Which names have a price or an altitude over 30?")
    samples = [sql_in(ask(text, seed=seed, temperature=1.5)) for seed in range(24)]
    assert len(set(samples)) >= 3
    assert samples == [sql_in(ask(text, seed=seed, temperature=1.5)) for seed in range(24)]


def test_temperature_zero_gives_the_likeliest_query_for_every_seed() -> None:
    assert len({ask(WRITE, seed=seed, temperature=0.0) for seed in range(8)}) == 1


def test_every_sample_runs() -> None:
    connection = database()
    for seed in range(24):
        connection.execute(sql_in(ask(WRITE, seed=seed, temperature=2.0)))


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8), st.floats(0.05, 5))
def test_softmax_sums_to_one(scores: list[float], temperature: float) -> None:
    assert sum(softmax(scores, temperature)) == pytest.approx(1)


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=3), min_size=1, max_size=3))
def test_derivations_come_once_each_and_in_order_of_cost(scores: list[list[float]]) -> None:
    def program(choose: Chooser) -> tuple[int, ...]:
        return tuple(choose.pick(list(enumerate(row))) for row in scores)

    runs = best_runs(program, 1000)
    assert len({run.result for run in runs}) == len(runs)
    assert [run.cost for run in runs] == sorted(run.cost for run in runs)
    assert runs[0].cost == 0


def test_a_first_draft_does_without_what_only_the_rest_of_the_question_says() -> None:
    runs = best_runs(lambda choose: choose.pick([("near", 1.0), ("far", 0.0)], [0.0, 3.0]), 10)
    assert [(run.result, run.cost, run.drafted) for run in runs] == [("far", 0.0, 1.0), ("near", 2.0, 0.0)]


def critique(*repairs: str) -> dict[str, Any]:
    issues = [{"problem": "wrong", "repair": repair} for repair in repairs]
    return {"scores": {"score": 3}, "issues": issues, "execution_assessment": ""}


REPAIRS = [
    (
        "What are the names of observatories?",
        "SELECT name FROM telescope",
        "Use the column observatory.name.",
        "observatory",
    ),
    (
        "What are the names of observatories?",
        "SELECT name FROM observatory",
        "Order the rows by observatory.altitude_m.",
        "ORDER BY",
    ),
    (
        "What are the names of observatories?",
        "SELECT name FROM observatory",
        "Filter observatory.country on the value 'Chile'.",
        "'Chile'",
    ),
    ("How many telescopes are there?", "SELECT COUNT(*) FROM telescope", "Count distinct values.", "DISTINCT"),
    (
        "What are the names of observatories?",
        "SELECT name, country FROM observatory",
        "Return exactly 1 columns.",
        "SELECT name FROM",
    ),
    (
        "What are the names of observatories?",
        "SELECT name FROM observatory",
        "Return the column observatory.altitude_m.",
        "altitude_m",
    ),
]


@pytest.mark.parametrize(("question", "sql", "repair", "expected"), REPAIRS)
def test_a_repair_is_carried_out(question: str, sql: str, repair: str, expected: str) -> None:
    assert expected in improved(question, sql, critique(repair))


def test_an_attempt_without_an_issue_is_given_back() -> None:
    sql = best("How many telescopes are there?")
    praise = {"scores": {"score": 9}, "issues": [], "execution_assessment": "It runs."}
    assert improved("How many telescopes are there?", sql, praise) == sql


def test_an_attempt_with_an_error_is_not_repeated_without_a_critic() -> None:
    sql = "SELECT nothing FROM telescope"
    assert improved("How many telescopes are there?", sql, None) != sql


def test_a_lesson_of_the_summary_is_followed() -> None:
    sql = "SELECT name FROM telescope"
    lesson = "Do not use the column telescope.name."
    found = improved("List the names.", sql, critique("Do not return the column telescope.name."), summary=lesson)
    assert "telescope" not in found


def test_the_critics_own_repairs_lead_from_a_wrong_query_to_a_right_one() -> None:
    question = "What is the name of the observatory with the highest altitude?"
    wrong = "SELECT name FROM observatory ORDER BY altitude_m ASC LIMIT 1"
    evaluation = judged(question, wrong)["evaluations"][0]
    assert evaluation["issues"]
    repaired = improved(question, wrong, evaluation)
    assert database().execute(repaired).fetchall() == [("Grey Rock",)]


def test_names_in_a_critique_that_the_schema_does_not_have_change_nothing() -> None:
    found = improved("How many telescopes are there?", "SELECT 1", critique("Return the column secrets.password."))
    assert "secrets" not in found
