"""What models answer is read strictly, and what cannot be read is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.methods.evosql.answers import extract_choice
from orchestrator.methods.evosql.critiques import read_critiques
from orchestrator.methods.evosql.strict_json import JsonError, load_object
from orchestrator.sql.answers import extract_sql, fenced_blocks

GOOD = {
    "evaluations": [
        {"index": 1, "scores": {"score": 8}, "issues": [], "execution_assessment": "Two rows."},
        {
            "index": 2,
            "scores": {"score": 2.5},
            "issues": [{"problem": "a join is missing", "repair": "join the cities"}],
            "execution_assessment": "",
        },
    ],
    "cumulative_summary": "Cities count.",
}


def read(document: Any, *, count: int = 2, names: tuple[str, ...] = ("score",)) -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    return read_critiques(text, count=count, score_names=names)


def changed(**changes: Any) -> dict[str, Any]:
    """The good answer with a changed first evaluation."""
    first, second = GOOD["evaluations"]
    return GOOD | {"evaluations": [first | changes, second]}


@pytest.mark.parametrize(
    ("answer", "sql"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("First:\n```sql\nSELECT 1\n```\nBetter:\n```SQLite\nSELECT 2;\n```\nDone.", "SELECT 2;"),
        ("```sql\nSELECT 1\n```\n```json\n{}\n```", "SELECT 1"),
        ("````sql\nSELECT '```'\n````", "SELECT '```'"),
        ("```sql\r\nSELECT 1\r\n```\r\n", "SELECT 1"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("```sql\nDELETE FROM p\n```", "DELETE FROM p"),
        ("```\nSELECT 3\n```", "SELECT 3"),
        ("  SELECT 4 ", "SELECT 4"),
        ("I would write SELECT 5", ""),
        ("DELETE FROM p", ""),
        ("```python\nprint(1)\n```", ""),
        ("", ""),
        ("``` sql ```", ""),
    ],
)
def test_the_last_block_of_sql_counts_or_else_a_lone_statement(answer: str, sql: str) -> None:
    assert extract_sql(answer) == sql


@pytest.mark.parametrize(
    ("answer", "sql"),
    [
        ("```sql\nSELECT 1", ""),
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\nBetter:\n```sql\nSELECT 2", "SELECT 1"),
        ("```\nSELECT 3", ""),
        ("```\nSELECT 3\n```\nThat is", "SELECT 3"),
        ("SELECT 4", ""),
    ],
)
def test_of_an_answer_that_is_cut_off_whole_blocks_alone_count(answer: str, sql: str) -> None:
    assert extract_sql(answer, is_cut_off=True) == sql


def test_a_text_that_is_too_long_for_the_gate_is_no_lone_statement() -> None:
    assert extract_sql("SELECT " + "1," * 20_000 + "1") == ""


@given(st.text(alphabet="`~ab \n", max_size=80))
def test_no_text_breaks_the_reading_of_blocks(text: str) -> None:
    for info, body in fenced_blocks(text):
        assert "\n" not in info
        assert body in text


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ('```json\n{"choice": 2, "reason": "it has the city"}\n```', 2),
        ('{"choice": 3}', 3),
        ('{"choice": 4}', None),
        ('{"choice": 0}', None),
        ('{"choice": true}', None),
        ('{"choice": "2"}', None),
        ('{"choice": 2.0}', None),
        ('{"choice": 1, "choice": 2}', None),
        ("the second", None),
        ("", None),
    ],
)
def test_a_choice_is_a_whole_number_within_the_list(answer: str, choice: int | None) -> None:
    assert extract_choice(answer, 3) == choice


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[1]",
        "{",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1, "a": 2}',
        '{"a": {"b": 1, "b": 1}}',
        '{"a": ' + "1" * 5000 + "}",
        "[" * 100_000,
        '{"a": 1} and more',
        " " * 200_001,
    ],
)
def test_json_that_is_not_strict_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(JsonError) as caught:
        load_object(text)
    assert len(str(caught.value)) < 80


def test_a_good_answer_is_read_whole() -> None:
    for text in (json.dumps(GOOD), f"My view:\n```json\n{json.dumps(GOOD)}\n```"):
        answer = read(text)
        assert answer.problems == ()
        assert answer.summary == "Cities count."
        assert [dict(critique.scores) for critique in answer.critiques.values()] == [{"score": 8.0}, {"score": 2.5}]
        assert answer.critiques[2].issues[0].repair == "join the cities"


def test_four_scores_are_all_needed() -> None:
    names = ("alignment", "schema", "logic", "completeness")
    four = changed(scores={"alignment": 9, "schema": 8, "logic": 7, "completeness": 6, "style": 1})
    answer = read(four, names=names)
    assert dict(answer.critiques[1].scores) == {"alignment": 9, "schema": 8, "logic": 7, "completeness": 6}
    assert answer.problems == ('candidate 2: score "alignment" is not a number from 0 to 10',)


@pytest.mark.parametrize("score", [-0.1, 10.5, 80, "8", None, True, [8]])
def test_a_score_out_of_range_or_of_another_kind_is_not_a_score(score: Any) -> None:
    answer = read(changed(scores={"score": score}))
    assert list(answer.critiques) == [2]
    assert answer.problems == ('candidate 1: score "score" is not a number from 0 to 10',)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scores": 8}, '"scores" is not an object'),
        ({"issues": "none"}, '"issues" is not a list'),
        ({"issues": ["a join"]}, '"issues" is not a list'),
        ({"issues": [{"problem": 1}]}, '"issues" is not a list'),
        ({"execution_assessment": 7}, '"execution_assessment" is not a text'),
        ({"index": 2}, "it is evaluated more than once"),
        ({"index": "1"}, "candidate 1: it is not evaluated"),
        ({"index": True}, "candidate 1: it is not evaluated"),
        ({"index": 9}, "candidate 1: it is not evaluated"),
    ],
)
def test_what_is_wrong_with_an_evaluation_is_named_and_the_others_count(changes: dict[str, Any], problem: str) -> None:
    answer = read(changed(**changes))
    assert 1 not in answer.critiques
    assert any(problem in found for found in answer.problems)
    assert (2 in answer.critiques) == (changes.get("index") != 2)


def test_an_answer_without_evaluations_or_summary_says_so() -> None:
    assert read({"cumulative_summary": "x"}).problems[0] == '"evaluations" is not a list'
    without = read({"evaluations": GOOD["evaluations"]})
    assert (without.summary, without.problems) == (None, ('"cumulative_summary" is not a text',))
    assert read("I like the first one.").problems == ("the answer cannot be used: it is not valid JSON",)


def test_texts_of_a_critic_are_cut_and_can_be_recorded() -> None:
    long = changed(issues=[{"problem": "x" * 9999, "repair": "\ud800"}] * 15)
    answer = read(json.dumps(long | {"cumulative_summary": "y" * 9_999}))
    issues = answer.critiques[1].issues
    assert (len(issues), len(issues[0].problem), issues[0].repair) == (8, 500, "?")
    assert len(answer.summary) == 4000


def test_a_second_answer_is_completed_by_the_first() -> None:
    first = read({"evaluations": GOOD["evaluations"][:1], "cumulative_summary": "first"})
    second = read({"evaluations": [GOOD["evaluations"][1] | {"scores": {"score": 4}}]})
    both = second.completed_by(first)
    assert [critique.scores["score"] for critique in both.critiques.values()] == [8, 4]
    assert both.summary == "first"


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_no_value_in_any_place_breaks_the_reading(value: Any) -> None:
    for document in (
        {"evaluations": value},
        changed(index=value),
        changed(scores=value),
        changed(scores={"score": value}),
        changed(issues=value),
        GOOD | {"cumulative_summary": value},
    ):
        answer = read(json.dumps(document))
        assert set(answer.critiques) <= {1, 2}
        assert all(0 <= critique.scores["score"] <= 10 for critique in answer.critiques.values())
