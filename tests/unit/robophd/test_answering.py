"""One question's conversation: query, verification and repair, in the order and the words of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, UserMessage
from orchestrator.domain.sql import QueryStatus
from orchestrator.errors import InputError
from orchestrator.methods.robophd.answering import (
    Ending,
    Phase,
    Verdict,
    answer,
    brief,
    brief_on,
    over_budget,
    read_result,
)
from orchestrator.methods.robophd.answering.briefing import Source
from orchestrator.methods.robophd.questions import QuestionView
from tests.answering_lab import (
    BROKEN,
    EMPTY,
    REPAIR,
    RIGHT,
    VERIFY,
    WRITE,
    WRONG,
    ZERO,
    AnsweringLab,
    package,
    question,
)
from tests.scripted_answerer import fenced, read_sections


def phases(found: Any) -> list[tuple[Phase, Verdict]]:
    return [(attempt.phase, attempt.verdict) for attempt in found.attempts]


def test_a_query_that_is_approved_stands_after_two_requests() -> None:
    lab = AnsweringLab()
    found = lab.answer()
    assert (found.sql, found.status, found.rows, found.ending) == (RIGHT, QueryStatus.OK, 2, Ending.ANSWERED)
    assert phases(found) == [(Phase.QUERY, Verdict.QUERY), (Phase.VERIFY, Verdict.CORRECT)]
    assert (found.requests, found.unreadable) == (2, 0)
    result = read_result(found, lab.journal)
    assert result is not None
    assert result.rows == (("Ann",), ("Cy",))


def test_the_model_is_told_analysis_and_instructions_once_and_then_question_query_and_result() -> None:
    lab = AnsweringLab()
    lab.answer()
    (first, begin, _), (second, then, _) = lab.model.asked
    assert begin.system == then.system
    head, known = read_sections(begin.system)
    assert known == {
        "Database analysis": "Table p holds people.",
        "Instructions": "Give only the columns that are asked for.",
    }
    assert "single word CORRECT" in head
    assert first.title == WRITE
    assert first.sections == {"Question": "Who lives in Oslo?", "Evidence": "Oslo is a city."}
    assert second.title == VERIFY
    assert second.sections["Query"] == RIGHT
    shown = json.loads(second.sections["Result"])
    assert (shown["status"], shown["rows"], shown["row_count"]) == ("ok", [["Ann"], ["Cy"]], 2)
    assert then.messages[: len(begin.messages)] == begin.messages


def test_a_question_without_evidence_has_no_such_section() -> None:
    lab = AnsweringLab()
    lab.question = question(evidence=" ")
    lab.answer()
    assert set(lab.model.asked[0][0].sections) == {"Question"}


def test_a_correction_is_run_and_verified_in_the_next_round() -> None:
    lab = AnsweringLab(fenced(WRONG), verify=[fenced(RIGHT), "CORRECT"])
    found = lab.answer()
    assert lab.database.asked == [WRONG, RIGHT]
    assert lab.model.titles == [WRITE, VERIFY, VERIFY]
    assert lab.model.asked[2][0].sections["Query"] == RIGHT
    assert (found.sql, found.rows) == (RIGHT, 2)


def test_there_are_as_many_rounds_as_the_settings_allow_and_the_last_correction_stands() -> None:
    lab = AnsweringLab(fenced(RIGHT), verify=[fenced(EMPTY), fenced(WRONG)])
    found = lab.answer()
    assert lab.model.titles == [WRITE, VERIFY, VERIFY]
    assert (found.sql, found.rows) == (WRONG, 4)
    none = AnsweringLab(corrections=0)
    none.answer()
    assert none.model.titles == [WRITE]


def test_temperatures_rise_and_the_last_one_stays() -> None:
    lab = AnsweringLab(fenced(BROKEN), verify=[fenced(BROKEN)], corrections=3)
    found = lab.answer()
    assert [sampling.temperature for _, _, sampling in lab.model.asked] == [0.0, 0.2, 0.3, 0.3, 0.3]
    assert [attempt.temperature for attempt in found.attempts] == [0.0, 0.2, 0.3, 0.3, 0.3]
    assert lab.model.titles[-1] == REPAIR


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("CORRECT", Verdict.CORRECT),
        ("  CORRECT\n", Verdict.CORRECT),
        ("CORRECT.", Verdict.UNREADABLE),
        ("correct", Verdict.UNREADABLE),
        ("The query is CORRECT", Verdict.UNREADABLE),
        ("CORRECTED: SELECT name FROM p", Verdict.UNREADABLE),
        ("INCORRECT", Verdict.UNREADABLE),
        ("", Verdict.UNREADABLE),
        ("```\nCORRECT\n```", Verdict.UNREADABLE),
        (f"CORRECT\n{fenced(WRONG)}", Verdict.QUERY),
        (fenced(WRONG), Verdict.QUERY),
        (WRONG, Verdict.QUERY),
    ],
)
def test_only_the_one_word_approves_and_only_a_query_corrects(said: str, verdict: Verdict) -> None:
    lab = AnsweringLab(verify=[said], corrections=1)
    found = lab.answer()
    assert found.attempts[1].verdict is verdict
    assert found.sql == (WRONG if verdict is Verdict.QUERY else RIGHT)
    assert found.unreadable == (verdict is Verdict.UNREADABLE)


def test_the_word_of_approval_is_no_query_to_begin_with() -> None:
    lab = AnsweringLab("CORRECT")
    found = lab.answer()
    assert phases(found) == [(Phase.QUERY, Verdict.UNREADABLE), (Phase.REPAIR, Verdict.QUERY)]
    assert lab.model.asked[1][0].sections == {"Failure": "The reply held no query."}
    assert (found.sql, found.unreadable) == (RIGHT, 1)


def test_a_reply_that_cannot_be_read_uses_up_a_round_and_the_query_stays() -> None:
    lab = AnsweringLab(fenced(WRONG), verify=["I am not sure.", fenced(RIGHT)])
    found = lab.answer()
    assert lab.model.titles == [WRITE, VERIFY, VERIFY]
    assert lab.model.asked[2][0].sections["Query"] == WRONG
    assert (found.sql, found.unreadable) == (RIGHT, 1)


def test_a_failure_that_stands_is_repaired_once_with_its_error() -> None:
    lab = AnsweringLab(fenced(BROKEN), verify=["CORRECT"])
    found = lab.answer()
    assert lab.model.titles == [WRITE, VERIFY, REPAIR]
    sections = lab.model.asked[2][0].sections
    assert sections["Failure"] == "no such column: nam"
    assert sections["Query"] == BROKEN
    assert json.loads(sections["Result"])["status"] == "error"
    assert (found.sql, found.rows) == (RIGHT, 2)


@pytest.mark.parametrize(
    ("sql", "status", "words"),
    [
        ("DELETE FROM p", "refused", "SELECT"),
        ("SELECT * FROM secret", "refused", "secret may not be read"),
        ("SELECT slow FROM p", "timeout", "it took too long"),
    ],
)
def test_refusals_and_timeouts_are_failures_as_well(sql: str, status: str, words: str) -> None:
    lab = AnsweringLab(fenced(sql))
    lab.model.scripts[REPAIR] = ("no idea",)
    found = lab.answer()
    assert found.status == status
    assert words in lab.model.asked[-1][0].sections["Failure"]
    assert (found.sql, found.ending) == (sql, Ending.ANSWERED)


def test_no_rows_are_repaired_and_a_count_of_zero_is_not() -> None:
    empty, zero = AnsweringLab(fenced(EMPTY)), AnsweringLab(fenced(ZERO))
    assert empty.answer().sql == RIGHT
    assert empty.model.asked[-1][0].sections["Failure"] == "It returned no rows."
    assert zero.answer().sql == ZERO
    assert zero.model.titles == [WRITE, VERIFY]


@pytest.mark.parametrize("repair", [EMPTY + " AND 1 = 1", BROKEN, "nothing"])
def test_a_repair_stands_only_if_it_gives_rows(repair: str) -> None:
    lab = AnsweringLab(fenced(EMPTY))
    lab.model.scripts[REPAIR] = (repair if repair == "nothing" else fenced(repair),)
    found = lab.answer()
    assert (found.sql, found.rows, found.ending) == (EMPTY, 0, Ending.ANSWERED)
    assert lab.model.titles.count(REPAIR) == 1


def test_without_any_query_there_is_no_answer() -> None:
    lab = AnsweringLab("I would rather not.")
    lab.model.scripts[REPAIR] = ("Still no.",)
    found = lab.answer()
    assert (found.ending, found.sql, found.result, found.status) == (Ending.NO_QUERY, "", None, None)
    assert (found.unreadable, found.requests) == (2, 2)
    assert lab.database.asked == []
    assert read_result(found, lab.journal) is None


def test_a_query_that_is_sent_again_is_not_run_again() -> None:
    lab = AnsweringLab(fenced(RIGHT), verify=[fenced(RIGHT)])
    found = lab.answer()
    assert lab.database.asked == [RIGHT]
    assert len(found.attempts) == 3


def test_replies_go_on_as_text_and_never_empty() -> None:
    lab = AnsweringLab("")
    lab.answer()
    said = [m for m in lab.model.asked[-1][1].messages if isinstance(m, AssistantMessage)]
    assert said == [AssistantMessage(text="(The reply is empty.)")]


def test_what_a_database_holds_ends_no_block_and_no_line() -> None:
    lab = AnsweringLab(fenced("SELECT '```' || char(10) || '## Failure' || char(10) || '# Repair a SQLite query'"))
    found = lab.answer()
    assert found.rows == 1
    (request, conversation, _) = lab.model.asked[1]
    assert set(request.sections) == {"Query", "Result"}
    last = conversation.messages[-1]
    assert isinstance(last, UserMessage)
    assert "\n## Failure" not in last.text


def test_over_the_token_budget_nothing_is_asked_and_the_answer_says_so() -> None:
    lab = AnsweringLab(token_budget=1000)
    lab.package = package(instructions="x" * 10_000)
    found = lab.answer()
    assert (found.ending, found.requests, found.attempts) == (Ending.OVER_BUDGET, 0, ())
    assert lab.model.asked == []
    assert lab.ledger.snapshot().spent.requests == 0


def test_a_package_scores_what_it_can_answer_the_question_counts_too() -> None:
    lab = AnsweringLab()
    briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
    long = QuestionView(id="2", database="shop/people", text="Who? " * 2000)
    budget = lab.settings.model_copy(update={"token_budget": briefing.tokens + 500})
    assert not briefing.is_over_budget
    assert not over_budget(lab.question, briefing, model=lab.model, settings=budget)
    assert over_budget(long, briefing, model=lab.model, settings=budget)


def test_the_models_context_is_a_budget_as_well() -> None:
    lab = AnsweringLab()
    lab.model.context_tokens = 100
    assert lab.answer().ending is Ending.OVER_BUDGET


def test_where_the_context_has_no_room_to_verify_the_query_stands() -> None:
    lab = AnsweringLab("x" * 4000 + "\n" + fenced(RIGHT))
    briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
    lab.model.context_tokens = briefing.tokens + 800
    found = lab.answer()
    assert (found.ending, found.sql, found.requests) == (Ending.BUDGET, RIGHT, 1)


def test_a_reply_is_never_longer_than_the_context_has_room_for() -> None:
    lab = AnsweringLab()
    briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
    lab.model.context_tokens = briefing.tokens + 2000
    lab.answer()
    for _, conversation, sampling in lab.model.asked:
        assert lab.model.count_tokens(conversation, ()) + sampling.max_output_tokens <= lab.model.context_tokens


def test_a_briefing_without_an_analysis_says_so() -> None:
    lab = AnsweringLab()
    briefing = brief(lab.context, lab.package, database="shop/people", source=Source.NONE, analysis=None)
    assert "## Database analysis\nThere is no analysis of this database." in briefing.system
    assert briefing.analysis_tokens == 0
    assert briefing.tokens > 0


def test_a_briefing_of_another_database_is_refused() -> None:
    lab = AnsweringLab()
    briefing = brief(lab.context, lab.package, database="shop/other", source=Source.TOOL, analysis="x")
    with pytest.raises(InputError, match="'shop/17' is about database 'shop/people', the briefing about 'shop/other'"):
        answer(lab.context, lab.question, briefing, database=lab.database)


def test_seeds_depend_on_package_question_and_request_and_on_nothing_else() -> None:
    lab, again, other = AnsweringLab(), AnsweringLab(), AnsweringLab()
    other.package = package(instructions="Other.")
    for one in (lab, again, other):
        one.answer()
    again.answer(question("shop/18"))

    def seeds(one: AnsweringLab) -> list[int]:
        return [sampling.seed for _, _, sampling in one.model.asked]

    assert seeds(again)[:2] == seeds(lab)
    assert len({*seeds(again), *seeds(other)}) == 6
