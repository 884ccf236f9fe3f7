"""Nothing lost, nothing paid twice, nothing left to timing: a question comes to the same whatever interrupts it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.errors import BudgetExhausted, Cancelled, ModelError, RunStateError, SandboxError
from orchestrator.methods.evosql import Ending, QuestionView, explain
from orchestrator.search.replay import Mode
from orchestrator.storage.journal import SqliteJournal, check_key
from tests.memory_journal import Killed

TINY = {"candidates": 2, "rounds": 2}


def outcome(found: Any) -> Any:
    """What all methods came to, as data that does not hold on to a process."""
    first, solution, other, choice = found
    return first, solution, other, choice, explain(solution), explain(other)


def state(lab: Any) -> dict[str, str]:
    """The journal without announcements, whose number tells how often a call was cut off."""
    return {key: record for key, record in lab.journal.entries.items() if not key.endswith("/sent")}


def garbled(kit: Any, lab: Any) -> Any:
    """A laboratory whose critic must be asked twice in the first round."""
    honest = kit.judges(kit.true_score)
    lab.critic.answers = dict(lab.critic.answers) | {
        "Judge SQLite queries": lambda r, s: honest(r, s) if r.turn or "Summary" in r.sections else "no"
    }
    return lab


def test_equal_seeds_give_equal_runs_and_other_seeds_other_candidates(labs: Any) -> None:
    one, two, other = labs(candidates=8), labs(candidates=8), labs(candidates=8, seed=8)
    assert outcome(one.everything()) == outcome(two.everything())
    other.everything()
    assert one.journal.entries == two.journal.entries
    queries = [[c.sql for c in lab.elicit().candidates] for lab in (one, other)]
    assert queries[0] != queries[1]


def test_every_request_of_a_run_has_a_seed_of_its_own(labs: Any) -> None:
    lab = labs(candidates=8)
    lab.solve()
    for model in (lab.generator, lab.critic):
        seeds = [sampling.seed for _, _, sampling in model.asked]
        assert len(set(seeds)) == len(seeds)
    assert {s.temperature for _, _, s in lab.generator.asked} == {0.8}
    assert {s.temperature for _, _, s in lab.critic.asked} == {0.0}


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_the_order_in_which_requests_complete_changes_nothing(labs: Any, is_repeatable: bool) -> None:
    plain, busy = labs(candidates=8), labs(candidates=8)
    busy.parallel = 4
    busy.generator.before = lambda _, sampling: time.sleep(sampling.seed % 3 / 1000)
    for lab in (plain, busy):
        lab.generator.is_repeatable = is_repeatable
    assert outcome(plain.everything()) == outcome(busy.everything())
    assert plain.journal.entries == busy.journal.entries
    assert plain.ledger.snapshot() == busy.ledger.snapshot()


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_killed_at_every_single_point_and_resumed_it_comes_to_the_same(
    kit: Any, labs: Any, is_repeatable: bool
) -> None:
    def lab() -> Any:
        made = garbled(kit, labs(**TINY))
        made.generator.is_repeatable = made.critic.is_repeatable = is_repeatable
        return made

    undisturbed = lab()
    expected = outcome(undisturbed.everything())
    bill = undisturbed.ledger.snapshot()
    assert bill.lost_count == 0
    touches, was_killed = 0, True
    while was_killed:
        found = lab()
        found.light(touches)
        try:
            found.everything()
            was_killed = False
        except Killed:
            pass
        found.light(None)
        in_flight = [key for key in found.keys if key.endswith("/sent") and key[:-5] not in found.journal.entries]
        assert outcome(found.everything()) == expected
        assert state(found) == state(undisturbed)
        again = found.ledger.snapshot()
        assert again.lost_count == len(in_flight) <= (0 if is_repeatable else 1)
        assert again.spent.requests == bill.spent.requests + len(in_flight)
        assert again.spent.usage.usd == bill.spent.usage.usd + Decimal("0.05") * len(in_flight)
        if not in_flight:
            assert again == bill
        touches += 1
    assert touches > 40


def test_from_a_journal_cut_anywhere_it_comes_to_the_same(kit: Any, labs: Any) -> None:
    whole = garbled(kit, labs(**TINY))
    expected = outcome(whole.everything())
    records = list(whole.journal.entries.items())
    for length in range(len(records) + 1):
        lab = garbled(kit, labs(**TINY))
        lab.journal.entries = dict(records[:length])
        lab.journal.blobs = dict(whole.journal.blobs)
        assert outcome(lab.everything()) == expected
        assert lab.journal.entries == whole.journal.entries
        assert lab.ledger.snapshot() == whole.ledger.snapshot()
        assert len(lab.generator.asked) + len(lab.critic.asked) == sum(
            "/request/" in key for key, _ in records[length:]
        )


def test_a_replay_asks_nobody_and_runs_nothing(labs: Any) -> None:
    lab = labs()
    expected, bill, before = outcome(lab.everything()), lab.ledger.snapshot(), dict(lab.journal.entries)
    lab.mode = Mode.REPLAY
    lab.light(0)  # whatever is asked of models, database or the journal's writing ends the process
    assert outcome(lab.everything()) == expected
    assert lab.journal.entries == before
    assert lab.ledger.snapshot() == bill


@pytest.mark.parametrize("kept", [0, 3, 6, 9])
def test_a_replay_of_what_is_unfinished_says_so(labs: Any, kept: int) -> None:
    lab = labs()
    lab.everything()
    lab.journal.entries = dict(list(lab.journal.entries.items())[:kept])
    lab.mode = Mode.REPLAY
    lab.light(0)
    with pytest.raises(RunStateError, match="a replay performs nothing"):
        lab.everything()


def test_the_real_journal_holds_a_question_and_gives_it_back(labs: Any, tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        lab = labs()
        lab.question = replace(lab.question, id="train/ü ?")
        lab.journal = journal
        expected = outcome(lab.everything())
        prefixes = {key.split("/")[1] for key, _ in journal.records()}
        lab.mode = Mode.REPLAY
        assert outcome(lab.everything()) == expected
    (prefix,) = prefixes
    assert prefix.startswith("x-")


@pytest.mark.parametrize("identifier", ["", "x-1", "../q", "a/b", "ü", "a" * 300, "1 2", "\n", "\ud800"])
def test_an_id_that_is_no_plain_name_has_a_key_of_its_own(identifier: str) -> None:
    key = QuestionView(id=identifier, text="").key
    check_key(key + "/sql/" + "0" * 32)
    assert key.startswith("q/x-")
    assert key != QuestionView(id=identifier + "!", text="").key
    assert QuestionView(id="bird-17.a_b", text="").key == "q/bird-17.a_b"


def test_another_text_schema_database_or_temperature_is_refused(labs: Any) -> None:
    lab = labs()
    lab.solve()
    question, settings = lab.question, lab.settings
    for change in (
        {"question": replace(question, text="Who lives in Rome?")},
        {"question": replace(question, evidence="")},
        {"schema": "CREATE TABLE q (a);"},
        {"settings": settings.model_copy(update={"temperature": 0.5})},
    ):
        for name, value in change.items():
            before = getattr(lab, name)
            setattr(lab, name, value)
            with pytest.raises(RunStateError, match="conversation"):
                lab.solve()
            setattr(lab, name, before)
    lab.database.digest = "sha256:" + "e" * 64
    with pytest.raises(RunStateError, match="database"):
        lab.solve()


def test_another_outcome_under_the_same_records_is_refused(labs: Any) -> None:
    lab = labs(rounds=1)
    lab.solve()
    lab.settings = lab.settings.model_copy(update={"empty_is_suspect": False, "tie_break": "later"})
    key = "q/17/evosql/end"
    lab.journal.entries[key] = lab.journal.entries[key].replace('"entries": 4', '"entries": 5')
    with pytest.raises(RunStateError, match="recorded with entries 5"):
        lab.solve()


def test_a_budget_that_ends_during_a_round_ends_the_question_with_its_best_so_far(labs: Any) -> None:
    free = labs()
    free.solve()
    total = free.ledger.snapshot().spent.requests
    seen: Counter[tuple[Ending, int]] = Counter()
    for requests in range(4, total):
        lab = labs()
        lab.budget = Budget(requests=requests)
        lab.process()
        solution = lab.solve()
        assert solution.ending is Ending.BUDGET
        assert solution.answer.sql
        assert lab.ledger.snapshot().spent.requests == requests
        seen[solution.ending, len(solution.rounds)] += 1
        lab.process()  # the same again from the journal
        assert lab.solve() == solution
        spent = lab.ledger.snapshot()
        lab.budget = Budget()  # and what it was ended by stays
        lab.process()
        assert lab.solve() == solution
        assert lab.ledger.snapshot() == spent
        lab.mode = Mode.REPLAY
        lab.process()
        assert lab.solve() == solution
    assert len(seen) > 1


def test_a_budget_that_does_not_cover_the_first_round_gives_no_answer_and_can_be_raised(labs: Any) -> None:
    lab = labs()
    lab.budget = Budget(requests=3)
    lab.process()
    with pytest.raises(BudgetExhausted):
        lab.solve()
    lab.budget = Budget()
    lab.process()
    free = labs()
    assert lab.solve() == free.solve()
    assert lab.ledger.snapshot() == free.ledger.snapshot()


def test_spending_is_booked_by_what_it_is_for(labs: Any) -> None:
    lab = labs(candidates=8, rounds=2)
    _, solution, other, choice = lab.everything()
    spent = lab.ledger.snapshot()
    assert len(choice.candidates) > 1
    assert {role: spend.requests for role, spend in spent.by_role.items()} == {
        "elicit": 8,
        "evosql/aggregate": 8 * (len(solution.rounds) - 1),
        "evosql/critic": len(solution.rounds),
        "evosql/choose": 1,
        "self-evolution/aggregate": 8 * (len(other.rounds) - 1),
    }
    assert set(spent.by_model) == {"fake/generator", "fake/critic"}


def test_a_failure_of_the_sandbox_or_a_model_pauses_and_is_no_candidates_fault(kit: Any, labs: Any) -> None:
    expected = labs().solve()

    class Failing(kit.Sqlite):
        def query_all(self, queries: Any, *, attempt_id: str) -> Any:
            raise SandboxError(f"no engine for {len(queries)} queries of {attempt_id}")

    lab = labs()
    working = lab.database
    lab.database = Failing()
    with pytest.raises(SandboxError, match=r"queries of q/17/r0"):
        lab.solve()
    lab.database.close()
    lab.database = working

    def fail(request: Any, sampling: Any) -> None:
        raise ModelError(f"no answer to {request.title} ({sampling.seed})")

    for model, title, parallel in (
        (lab.critic, "Judge", 2),
        (lab.generator, "Improve", 1),
        (lab.generator, "Improve", 2),
    ):
        model.before, lab.parallel = fail, parallel
        with pytest.raises(ModelError, match=title):
            lab.solve()
        model.before = lambda _request, _sampling: None
    assert lab.solve() == expected


def test_a_cancelled_question_performs_nothing_more(labs: Any) -> None:
    lab = labs()
    lab.critic.before = lambda _request, _sampling: lab.cancel.cancel("an operator asked to stop")
    with pytest.raises(Cancelled, match="an operator"):
        lab.solve()
    asked, performed = len(lab.generator.asked) + len(lab.critic.asked), list(lab.database.performed)
    assert asked == 5
    with pytest.raises(Cancelled):
        lab.solve()
    assert (len(lab.generator.asked) + len(lab.critic.asked), lab.database.performed) == (asked, performed)


def test_questions_do_not_meet_in_one_journal(labs: Any) -> None:
    lab = labs()
    questions = [replace(lab.question, id=name) for name in ("2", "0", "1")]
    found = {}
    for question in questions:
        lab.question = question
        found[question.id] = lab.solve()
    for question in questions:
        alone = labs()
        alone.question = question
        assert alone.solve() == found[question.id]
