"""A question whose model is cut off, refuses, only thinks, loses replies or finds the conversation too long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, StopReason, ToolCall
from orchestrator.domain.tool_runs import ToolFailure
from orchestrator.errors import ContextTooLong, LostReply, ModelError
from orchestrator.methods.robophd.answering import Ending, Verdict
from orchestrator.methods.robophd.answering.briefing import Source
from orchestrator.search.replay import Mode
from tests.answering_lab import (
    ANALYSE,
    REPAIR,
    RIGHT,
    VERIFY,
    WRITE,
    WRONG,
    AnsweringLab,
    ScriptedTools,
    everything,
    long_lab,
    tool_run,
)
from tests.memory_journal import Killed
from tests.scripted_answerer import Ended, call, ended, fenced

CUT = "I think:\n\n```sql\nSELECT name FROM p"
TOO_LONG = ContextTooLong("maximum context length is 1000 tokens")


def raising(title: str, error: Exception, *, times: int = 1) -> Any:
    """Called before a request: raises for the first ones of a title."""
    left = [times]

    def before(request: Any) -> None:
        if request.title == title and left[0] > 0:
            left[0] -= 1
            raise error

    return before


@pytest.mark.parametrize(
    "said",
    [
        ended(StopReason.LENGTH, CUT),
        ended(StopReason.REFUSAL, CUT),
        ended(StopReason.REFUSAL, "I cannot help with that."),
        ended(StopReason.THOUGHT),
        ended(StopReason.END, "", call("query", sql=WRONG)),
    ],
)
def test_a_reply_without_a_whole_query_is_repaired(said: Ended) -> None:
    lab = AnsweringLab(said)
    found = lab.answer()
    assert lab.model.titles == [WRITE, REPAIR]
    assert [attempt.verdict for attempt in found.attempts] == [Verdict.UNREADABLE, Verdict.QUERY]
    assert (found.sql, found.ending) == (RIGHT, Ending.ANSWERED)
    kept = lab.model.asked[-1][1].messages[1]
    assert kept == AssistantMessage(text=said.message.text or "(The reply is empty.)")


def test_a_model_that_never_gives_a_query_leaves_the_question_without_one() -> None:
    lab = AnsweringLab(ended(StopReason.THOUGHT))
    lab.model.scripts[REPAIR] = (ended(StopReason.LENGTH, CUT),)
    found = lab.answer()
    assert (found.ending, found.sql, found.unreadable) == (Ending.NO_QUERY, "", 2)


def test_a_correction_that_is_cut_off_leaves_the_query_that_stands() -> None:
    lab = AnsweringLab(fenced(RIGHT), verify=[ended(StopReason.LENGTH, CUT)])
    assert lab.answer().sql == RIGHT


def test_what_a_model_thought_goes_back_to_it() -> None:
    native = NativeMessage(protocol="anthropic", model="fake/answerer", body={"content": [{"type": "thinking"}]})
    message = AssistantMessage(text=fenced(RIGHT), reasoning="Oslo, then.", native=native)
    lab = AnsweringLab(message)
    found = lab.answer()
    assert lab.model.asked[1][1].messages[1] == message
    lab.mode = Mode.REPLAY
    lab.begin()
    assert lab.answer() == found


@pytest.mark.parametrize(
    ("title", "ending", "sql"),
    [(WRITE, Ending.NO_QUERY, ""), (VERIFY, Ending.BUDGET, WRONG), (REPAIR, Ending.BUDGET, "SELECT nam FROM p")],
)
def test_a_conversation_that_the_provider_finds_too_long_ends_the_question_as_one_without_room(
    title: str, ending: Ending, sql: str
) -> None:
    lab = AnsweringLab(fenced(sql or WRONG), verify=["CORRECT"])
    lab.model.is_repeatable = False
    lab.model.before = raising(title, TOO_LONG)
    lab.analyse()
    found, bill = lab.answer(), lab.ledger.snapshot()
    assert (found.ending, found.sql) == (ending, sql)
    assert found.requests == bill.spent.requests == len(lab.model.asked)
    for mode in (Mode.PERFORM, Mode.REPLAY):
        lab.mode = mode
        lab.begin()
        assert lab.answer() == found
        assert lab.ledger.snapshot() == bill


def test_what_was_lost_before_a_conversation_proved_too_long_is_charged_in_every_process() -> None:
    lab = AnsweringLab(fenced(RIGHT))
    lab.model.is_repeatable = False
    errors: list[Exception] = [LostReply("broke"), TOO_LONG]
    lab.model.before = lambda request: _raise_next(errors) if request.title == VERIFY else None
    found, bill = lab.answer(), lab.ledger.snapshot()
    assert (bill.lost_count, found.requests, bill.spent.requests) == (1, 1, 2)
    lab.begin()
    assert lab.answer() == found
    assert lab.ledger.snapshot() == bill


def _raise_next(errors: list[Exception]) -> None:
    if errors:
        raise errors.pop(0)


@pytest.mark.parametrize("error", [LostReply("broke"), ModelError("no answer")])
@pytest.mark.parametrize("title", [ANALYSE, WRITE, VERIFY, REPAIR])
def test_lost_replies_and_errors_come_to_the_same_answer_and_to_equal_sums(title: str, error: Exception) -> None:
    plain, lab = long_lab(is_repeatable=False), long_lab(is_repeatable=False)
    expected = everything(plain)
    lab.model.before = raising(title, error)
    if not isinstance(error, LostReply):
        with pytest.raises(ModelError, match="no answer"):
            everything(lab)
    assert everything(lab) == expected
    bill, spent = plain.ledger.snapshot(), lab.ledger.snapshot()
    assert spent.lost_count == isinstance(error, LostReply)
    assert spent.spent.usage == bill.spent.usage + spent.lost.usage
    everything(lab)
    assert lab.ledger.snapshot() == spent


@pytest.mark.parametrize("script", [LostReply("broke"), TOO_LONG])
def test_killed_at_every_single_point_it_costs_what_the_journal_says(script: Exception) -> None:
    def lab() -> AnsweringLab:
        made = long_lab(is_repeatable=False)
        made.model.before = raising(VERIFY, script)
        return made

    undisturbed = lab()
    expected, truly_lost = everything(undisturbed), isinstance(script, LostReply)
    touches, was_killed = 0, True
    while was_killed:
        found = lab()
        found.light(touches)
        try:
            everything(found)
            was_killed = False
        except Killed:
            pass
        found.light(None)
        again = everything(found)
        if truly_lost:  # otherwise a provider that is asked anew has room
            assert again == expected
        spent = found.ledger.snapshot()
        assert everything(found) == again
        assert found.ledger.snapshot() == spent
        assert spent.lost_count <= truly_lost + 1
        assert spent.spent.requests == spent.lost_count + again[0].hybrid_requests + again[1].requests
        touches += 1
    assert touches > 30


def hybrid_lab(*lines: Any) -> AnsweringLab:
    """Whose tool fails, so that the model looks at the database itself."""
    lab = AnsweringLab()
    lab.tools = ScriptedTools(tool_run(None, ToolFailure.ERROR, "it raised ValueError"))
    lab.model.scripts[ANALYSE] = (lambda request: lines[min(request.turn, len(lines) - 1)],)
    return lab


@pytest.mark.parametrize(
    "said", [ended(StopReason.REFUSAL, "I cannot look at people."), ended(StopReason.THOUGHT), TOO_LONG]
)
def test_a_model_that_says_nothing_of_a_database_leaves_it_without_an_analysis(said: Any) -> None:
    lab = hybrid_lab(said)
    analysis = lab.analyse()
    assert (analysis.source, analysis.text) == (Source.NONE, None)
    assert lab.answer().sql == RIGHT


def test_a_call_of_a_message_that_was_cut_off_is_answered_with_that() -> None:
    broken = ToolCall(id="c", name="query", arguments=None, raw_arguments='{"sql": "SEL')
    lab = hybrid_lab(ended(StopReason.LENGTH, "", call("list_tables"), broken), "People.")
    assert lab.analyse().text == "People."
    first, second = lab.results[0].results
    assert "cut off" not in first.text
    assert second.text.startswith("error: the arguments of query are no JSON object")
    assert "was cut off" in second.text


def test_an_analysis_keeps_what_the_model_thought_between_its_calls() -> None:
    native = NativeMessage(protocol="openai", model="fake/answerer", body={"reasoning_content": "hm"})
    message = replace(AssistantMessage(text="", tool_calls=(call("list_tables"),)), reasoning="hm", native=native)
    lab = hybrid_lab(message, "People.")
    lab.analyse()
    assert lab.model.asked[-1][1].messages[1] == message
