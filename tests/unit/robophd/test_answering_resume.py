"""Nothing lost, nothing paid twice: whatever interrupts analyses and answers, they and their cost come to the same."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.errors import BudgetExhausted, Cancelled, EvolvariumError, ModelError, RunStateError, SandboxError
from orchestrator.methods.robophd.answering import analyse, answer, brief_on
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.search.replay import Mode
from orchestrator.storage.journal import SqliteJournal
from tests.answering_lab import (
    ANALYSE,
    REPAIR,
    RIGHT,
    VERIFY,
    WRITE,
    WRONG,
    AnsweringLab,
    everything,
    long_lab,
)
from tests.memory_journal import Killed
from tests.scripted_answerer import fenced


def state(lab: AnsweringLab) -> dict[str, str]:
    """The journal without announcements, whose number tells how often a call was cut off."""
    return {key: record for key, record in lab.journal.entries.items() if not key.endswith("/sent")}


@pytest.mark.parametrize("is_priced", [True, False])
@pytest.mark.parametrize("is_repeatable", [True, False])
def test_killed_at_every_single_point_and_resumed_it_comes_to_the_same(is_repeatable: bool, is_priced: bool) -> None:
    undisturbed = long_lab(is_repeatable=is_repeatable, is_priced=is_priced)
    expected = everything(undisturbed)
    bill = undisturbed.ledger.snapshot()
    assert undisturbed.model.titles == [ANALYSE, ANALYSE, WRITE, VERIFY, VERIFY, REPAIR]
    assert (bill.lost_count, bill.spent.requests) == (0, 6)
    touches, was_killed = 0, True
    while was_killed:
        lab = long_lab(is_repeatable=is_repeatable, is_priced=is_priced)
        lab.light(touches)
        try:
            everything(lab)
            was_killed = False
        except Killed:
            pass
        lab.light(None)
        in_flight = [
            key for key in lab.journal.entries if key.endswith("/sent") and key[:-5] not in lab.journal.entries
        ]
        for _ in range(2):  # resumed where it stopped, and again from what is recorded
            assert everything(lab) == expected
            assert state(lab) == state(undisturbed)
            again = lab.ledger.snapshot()
            assert again.lost_count == len(in_flight) <= (0 if is_repeatable else 1)
            assert again.spent.requests == bill.spent.requests + len(in_flight)
            assert again.spent.usage.usd is not None
            assert bill.spent.usage.usd is not None
            assert again.spent.usage.usd == bill.spent.usage.usd + Decimal("0.05") * len(in_flight)
            if not in_flight:
                assert again == bill
        touches += 1
    assert touches > 40


def test_from_a_journal_cut_anywhere_it_comes_to_the_same_and_asks_only_for_what_is_missing() -> None:
    whole = long_lab()
    expected = everything(whole)
    records = list(whole.journal.entries.items())
    for length in range(len(records) + 1):
        lab = long_lab()
        lab.journal.entries = dict(records[:length])
        lab.journal.blobs = dict(whole.journal.blobs)
        assert everything(lab) == expected
        assert lab.journal.entries == whole.journal.entries
        assert lab.ledger.snapshot() == whole.ledger.snapshot()
        missing = [key for key, _ in records[length:]]
        assert len(lab.model.asked) == sum("/request/" in key for key in missing)
        assert len(lab.database.asked) == sum("/query/" in key or key.endswith("-02") for key in missing)
        assert len(lab.tools.asked) == sum(key.startswith("tool/") for key in missing)


def test_a_replay_asks_nobody_and_runs_nothing() -> None:
    lab = long_lab()
    expected, bill, before = everything(lab), lab.ledger.snapshot(), dict(lab.journal.entries)
    lab.mode = Mode.REPLAY
    lab.light(0)  # whatever is asked of model, database, tools or the journal's writing ends the process
    assert everything(lab) == expected
    assert lab.journal.entries == before
    assert lab.ledger.snapshot() == bill


def test_a_replay_of_what_is_unfinished_says_so() -> None:
    lab = long_lab()
    everything(lab)
    lab.mode = Mode.REPLAY
    for kept in range(len(lab.journal.entries)):
        lab.journal.entries = dict(list(lab.journal.entries.items())[:kept])
        with pytest.raises(RunStateError, match="a replay performs nothing"):
            everything(lab)


def test_the_real_journal_holds_an_answer_and_gives_it_back(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        lab = long_lab(is_repeatable=False)
        lab.journal = journal
        expected = everything(lab)
        asked = len(lab.model.asked)
        assert everything(lab) == expected
        assert len(lab.model.asked) == asked


def test_a_budget_that_does_not_suffice_leaves_no_half_answer_and_a_higher_one_goes_on() -> None:
    lab = AnsweringLab(fenced(WRONG), verify=[fenced(RIGHT), "CORRECT"])
    lab.budget = Budget(requests=2)
    lab.begin()
    with pytest.raises(BudgetExhausted):
        lab.answer()
    assert lab.keys.answer(lab.package.digest, "shop/17") not in lab.journal.entries
    with pytest.raises(BudgetExhausted):
        lab.answer()
    assert lab.ledger.snapshot().spent.requests == 2
    lab.budget = Budget(requests=3)
    lab.begin()
    assert lab.answer().sql == RIGHT
    assert len(lab.model.asked) == 3
    assert lab.ledger.snapshot().spent.requests == 3


@pytest.mark.parametrize("error", [ModelError("no answer"), SandboxError("engine"), Cancelled("stop")])
def test_what_fails_outside_is_raised_and_a_new_process_goes_on(error: EvolvariumError) -> None:
    lab = AnsweringLab(fenced(WRONG), verify=[fenced(RIGHT), "CORRECT"])
    lab.analyse()

    def fail(request: Any) -> None:
        if request.title == VERIFY:
            raise error

    lab.model.before = fail
    for _ in range(2):
        with pytest.raises(type(error)):
            lab.answer()
    assert lab.ledger.snapshot().spent.requests == 1
    lab.model.before = lambda _: None
    lab.begin()
    assert lab.answer().sql == RIGHT
    assert lab.ledger.snapshot().spent.requests == 3


def test_a_stop_keeps_requests_queries_and_tools_from_being_made() -> None:
    lab = AnsweringLab()
    lab.cancel.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        lab.analyse()
    lab.begin()
    lab.analyse()
    lab.cancel.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        lab.answer()
    assert (lab.model.asked, lab.database.asked, len(lab.tools.asked)) == ([], [], 1)


def test_a_stop_while_the_model_answers_keeps_its_query_from_being_run_and_its_reply_from_being_lost() -> None:
    lab = AnsweringLab()
    lab.model.before = lambda _: lab.cancel.cancel("enough")
    lab.analyse()
    with pytest.raises(Cancelled, match="enough"):
        lab.answer()
    assert (len(lab.model.asked), lab.database.asked) == (1, [])
    lab.model.before = lambda _: None
    lab.begin()
    assert lab.answer().sql == RIGHT
    assert lab.model.titles == [WRITE, VERIFY]


def test_half_a_conversation_about_one_database_is_not_continued_on_another() -> None:
    lab = AnsweringLab()
    expected = lab.answer()
    key = lab.keys.answer(lab.package.digest, "shop/17")
    del lab.journal.entries[key]
    lab.begin()
    assert lab.answer() == expected
    del lab.journal.entries[key]
    lab.begin()
    briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
    lab.database.digest = "sha256:" + "2" * 64
    with pytest.raises(RunStateError, match=f"step '{key}/query/0001' was recorded with database"):
        answer(lab.context, lab.question, briefing, database=lab.database)


def test_a_caller_can_forbid_further_requests_and_what_is_recorded_still_counts() -> None:
    lab = AnsweringLab()
    lab.answer()
    lab.begin()

    def stopped() -> None:
        msg = "the run has stopped here before"
        raise BudgetExhausted(msg)

    object.__setattr__(lab.context, "before", stopped)
    assert lab.answer().sql == RIGHT
    with pytest.raises(BudgetExhausted, match="stopped here before"):
        lab.answer(QuestionView(id="18", database="shop/people", text="Who?"))


def test_the_ledger_tells_answers_from_analyses() -> None:
    lab = long_lab()
    everything(lab)
    assert {role: spend.requests for role, spend in lab.ledger.snapshot().by_role.items()} == {
        "hybrid": 2,
        "answerer": 4,
    }
    analysis, found = everything(lab)
    snapshot = lab.ledger.snapshot()
    assert snapshot.by_role["hybrid"].usage == analysis.hybrid_usage
    assert snapshot.by_role["answerer"].usage == found.usage
    assert analyse(lab.context, lab.package, lab.database, tools=lab.tools) == analysis
