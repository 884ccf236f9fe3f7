"""Rules of instructions, and what error reports say for them."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.evolver.reports import ErrorReport
from orchestrator.llm.offline.evolver.rules import (
    GUIDES,
    PREFACE,
    Rule,
    convention_ids,
    convention_rule,
    put_together,
    read_rules,
    without_conflicts,
)
from orchestrator.llm.offline.evolver.sections import LIBRARY_ORDER
from orchestrator.llm.offline.evolver.symptoms import CONVENTIONS, SECTIONS, Symptom, symptoms_of
from orchestrator.llm.offline.sql.conventions import CONVENTIONS as KNOWN
from orchestrator.llm.offline.sql.instructions import conventions_in

INSTRUCTIONS = """\
# How to answer

Some prose - with a dash.

- One rule,
  on two lines
- Another rule

```
- no rule
```
1. A third one
"""


def test_rules_are_list_items_with_their_indented_lines_and_nothing_inside_of_fences() -> None:
    assert [rule.text for rule in read_rules(INSTRUCTIONS)] == [
        "- One rule,\n  on two lines",
        "- Another rule",
        "1. A third one",
    ]


def test_other_rules_leave_the_rest_of_instructions_word_by_word() -> None:
    text = put_together(INSTRUCTIONS, ["- One rule,\n  on two lines"], ["- New"])
    assert text == INSTRUCTIONS.replace("- One rule,\n  on two lines\n", "") + "\n## Rules\n\n- New\n"


def test_new_rules_join_a_list_of_rules_at_the_end_and_are_not_repeated() -> None:
    once = put_together("", [], ["- New"])
    assert once == PREFACE + "\n- New\n"
    twice = put_together(once, [], ["- New", "- Newer", "- Newer"])
    assert twice == once + "- Newer\n"


def test_without_changes_instructions_stay_as_they_are() -> None:
    assert put_together(INSTRUCTIONS, [], []) == INSTRUCTIONS


def test_what_we_write_of_sections_states_no_convention() -> None:
    assert set(GUIDES) <= set(LIBRARY_ORDER)
    assert conventions_in(PREFACE) == frozenset()
    assert conventions_in("\n".join(f"- {text}" for text in GUIDES.values())) == frozenset()


@pytest.mark.parametrize("identifier", convention_ids())
def test_a_convention_is_understood_as_itself_in_instructions(identifier: str) -> None:
    text = put_together("", [], [convention_rule(identifier).text])
    assert conventions_in(text) == {identifier}


def test_rules_that_say_the_same_or_the_opposite_of_an_earlier_one_are_left_out() -> None:
    first, opposite = convention_rule("superlative-limit"), convention_rule("superlative-ties")
    other_words = Rule(text="- For the highest value use ORDER BY and LIMIT 1.")
    plain = Rule(text="- Be brief.")
    assert other_words.conventions == {"superlative-limit"}
    assert without_conflicts([first, plain, opposite, other_words, Rule(text="- be brief!")]) == [first, plain]


def test_every_convention_can_answer_some_kind_of_error_and_no_kind_takes_sides() -> None:
    named = {name for names in CONVENTIONS.values() for name in names}
    assert named == {convention.id for convention in KNOWN}
    assert {name for names in SECTIONS.values() for name in names} == set(LIBRARY_ORDER)


def answered(*differences: str, status: str = "ok", message: str = "", rows: int | None = 3) -> ErrorReport:
    return ErrorReport(
        question="Which?",
        evidence="",
        sql="SELECT 1",
        status=status,
        message=message,
        row_count=rows,
        differences=differences,
    )


@pytest.mark.parametrize(
    ("report", "symptoms"),
    [
        (answered("1 column too many", "1 of the 1 wanted columns is there"), {Symptom.EXTRA_COLUMNS}),
        (answered("2 columns too few", "3 rows too many"), {Symptom.MISSING_COLUMNS, Symptom.EXTRA_ROWS}),
        (answered("the values are right, and the columns in another order than is wanted"), {Symptom.COLUMN_ORDER}),
        (answered("only duplicates differ", "4 rows too many"), {Symptom.DUPLICATES}),
        (answered("2 rows too few", "none of the 4 different rows that are wanted are there"), {Symptom.MISSING_ROWS}),
        (answered("the rows are right, and in another order than is wanted"), {Symptom.ROW_ORDER}),
        (answered("the values differ only in the case of letters"), {Symptom.FORM}),
        (answered("column 1: numbers, where text should be"), {Symptom.TYPES}),
        (answered("column 1: NULL, where there should be none"), {Symptom.NULLS}),
        (answered("3 rows, where there should be none"), {Symptom.EXTRA_ROWS}),
        (answered("the only row differs"), {Symptom.VALUES}),
        (answered("no rows, where 3 are wanted", rows=0), {Symptom.EMPTY}),
        (answered(status="error", message="no such column: t.x"), {Symptom.UNKNOWN_NAME}),
        (answered(status="error", message="ambiguous column name: id"), {Symptom.UNKNOWN_NAME}),
        (answered("the query took too long", status="timeout"), {Symptom.FAILED}),
        (answered(), {Symptom.VALUES}),
    ],
)
def test_an_error_report_tells_its_kind(report: ErrorReport, symptoms: set[Symptom]) -> None:
    assert symptoms_of(report) == symptoms
