"""Nothing lost, nothing paid twice: whatever ends a process, a resume comes to the same candidates and bill."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.errors import BudgetExhausted, Cancelled, EvaluatorError, ModelError, RunStateError, SandboxError
from orchestrator.methods.agentic_evolve import Settings
from orchestrator.search.replay import Mode
from tests.memory_journal import Killed

TINY = {"commits_per_island": 3, "migration_interval": 2, "requests_per_island": 8, "islands": 2}
SMALL = {"commits_per_island": 4, "migration_interval": 2, "requests_per_island": 16, "islands": 3}


def state(lab: Any) -> dict[str, str]:
    """The journal without announcements, whose number tells how often a call was cut off."""
    return {key: record for key, record in lab.journal.entries.items() if not key.endswith("/sent")}


def killed_once(kit: Any, touches: int, **settings: Any) -> tuple[Any, bool]:
    """A run whose process ends at the n-th touch of the outside world, and whether it did."""
    lab = kit.Lab(**settings)
    lab.light(touches)
    try:
        lab.run()
    except Killed:
        lab.light(None)
        return lab, True
    return lab, False


def test_two_runs_with_one_seed_are_identical_and_another_seed_gives_other_candidates(kit: Any) -> None:
    first, second, other = kit.Lab(**SMALL), kit.Lab(**SMALL), kit.Lab(**SMALL, seed=8)
    assert first.run() == second.run()
    other.run()
    assert first.journal.entries == second.journal.entries
    payloads = [[entry.candidate.payload for entry in lab.history.commits] for lab in (first, other)]
    assert payloads[0] != payloads[1]


def test_the_speed_of_the_islands_changes_nothing(kit: Any) -> None:
    plain, slow_first, slow_last = kit.Lab(**SMALL), kit.Lab(**SMALL), kit.Lab(**SMALL)
    slow_first.bench.delays = {"i0-": 0.02}
    slow_last.bench.delays = {"i2-": 0.02, "i1-a": 0.01}
    results = [lab.run() for lab in (plain, slow_first, slow_last)]
    assert results[0] == results[1] == results[2]
    assert plain.journal.entries == slow_first.journal.entries == slow_last.journal.entries
    assert plain.ledger.snapshot() == slow_first.ledger.snapshot() == slow_last.ledger.snapshot()


@pytest.mark.parametrize("analysis", [True, False])
def test_killed_at_every_single_point_and_resumed_a_run_is_the_same(kit: Any, analysis: bool) -> None:
    undisturbed = kit.Lab(**TINY, analysis=analysis)
    result = undisturbed.run()
    touches = 0
    was_killed = True
    while was_killed:
        lab, was_killed = killed_once(kit, touches, **TINY, analysis=analysis)
        assert lab.run() == result
        assert state(lab) == state(undisturbed)
        assert lab.ledger.snapshot() == undisturbed.ledger.snapshot()
        touches += 1
    assert touches > 50


def test_killed_again_and_again_a_run_is_the_same(kit: Any) -> None:
    undisturbed, lab = kit.Lab(**SMALL), kit.Lab(**SMALL)
    result = undisturbed.run()
    kills = 0
    for touches in range(3, 400):
        lab.light(touches % 17)
        try:
            assert lab.run() == result
            break
        except Killed:
            kills += 1
    assert kills > 5
    assert state(lab) == state(undisturbed)
    assert lab.ledger.snapshot() == undisturbed.ledger.snapshot()


def test_a_call_lost_in_a_crash_is_charged_at_its_reservation_and_asked_again(kit: Any) -> None:
    undisturbed = kit.Lab(**SMALL)
    undisturbed.model.is_repeatable = False
    undisturbed.run()
    plain = undisturbed.ledger.snapshot()
    total_lost = 0
    for touches in range(0, 200, 7):
        lab = kit.Lab(**SMALL)
        lab.model.is_repeatable = False
        lab.light(touches)
        with pytest.raises(Killed):
            lab.run()
        lab.light(None)
        in_flight = [k for k in lab.journal.entries if k.endswith("/sent") and k[:-5] not in lab.journal.entries]
        lab.run()
        assert state(lab) == state(undisturbed)
        spent = lab.ledger.snapshot()
        assert spent.lost_count == len(in_flight)
        assert spent.lost.usage.usd == Decimal("0.05") * len(in_flight)
        assert spent.spent.usage == plain.spent.usage + spent.lost.usage
        assert lab.history.total.lost == len(in_flight)
        assert lab.history.total.usage == spent.spent.usage
        total_lost += len(in_flight)
    assert total_lost > 0


def test_a_call_lost_twice_is_charged_twice(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(1, 1)), islands=1)
    lab.model.is_repeatable = False
    lab.model.failing = RuntimeError("nobody knows")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            lab.run()
        assert lab.ledger.snapshot().spent.requests == lab.ledger.snapshot().lost_count
    lab.model.failing = None
    lab.run()
    assert lab.ledger.snapshot().lost_count == 2
    assert lab.history.total.lost == 2
    assert [key for key in lab.journal.entries if key.startswith("i0/request/0001")] == [
        "i0/request/0001/sent", "i0/request/0001/2/sent", "i0/request/0001/3/sent", "i0/request/0001",
    ]  # fmt: skip


def test_a_repeatable_call_that_is_cut_off_loses_nothing(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(1, 1)), islands=1)
    lab.model.failing = ModelError("no answer")
    with pytest.raises(ModelError):
        lab.run()
    assert lab.ledger.snapshot().spent.requests == 0
    lab.model.failing = None
    lab.run()
    assert lab.ledger.snapshot().lost_count == 0
    assert lab.history.total.lost == 0


@pytest.mark.parametrize("error", [SandboxError("engine gone"), EvaluatorError("task code failed")])
def test_a_failure_of_ours_pauses_the_run_is_never_a_score_and_the_rest_is_kept(kit: Any, error: Exception) -> None:
    undisturbed = kit.Lab(**SMALL)
    result = undisturbed.run()
    lab = kit.Lab(**SMALL)
    lab.bench.failing = {"i1-c02": error}
    with pytest.raises(type(error), match=str(error)):
        lab.run()
    assert lab.journal.get("i1/commit/c02") is None
    assert lab.journal.get("i1/commit/c01") is not None
    assert lab.journal.get("run/end") is None
    assert lab.history.result("run-1").evaluations == lab.ledger.snapshot().spent.commits
    lab.bench.failing = {}
    assert lab.run() == result
    performed = [step for step in lab.bench.performed if step != "initial"]
    assert sorted(performed) == sorted(set(performed))
    assert state(lab) == state(undisturbed)


@pytest.mark.parametrize("attempt", ["initial", "i1-a0001", "i2-c03"])
def test_a_step_that_an_operator_cut_off_is_repeated_under_its_id_and_charged_once(kit: Any, attempt: str) -> None:
    undisturbed = kit.Lab(**SMALL)
    result = undisturbed.run()
    assert attempt in undisturbed.bench.performed
    lab = kit.Lab(**SMALL)
    lab.bench.failing = {attempt: Cancelled("an operator asked to stop")}
    with pytest.raises(Cancelled):
        lab.run()
    lab.bench.failing = {}
    assert lab.run() == result
    assert lab.bench.performed.count(attempt) == 1
    assert lab.ledger.snapshot() == undisturbed.ledger.snapshot()


def test_cancelling_stops_between_two_steps_and_a_cancelled_run_performs_nothing(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    agent = lab.model.agent

    def cancelling(conversation: Any, sampling: Any) -> Any:
        lab.cancel.cancel("an operator asked to stop")
        return agent(conversation, sampling)

    lab.model.agent = cancelling
    with pytest.raises(Cancelled, match="an operator"):
        lab.run()
    performed, asked = list(lab.bench.performed), len(lab.model.asked)
    assert performed == ["initial"]
    with pytest.raises(Cancelled):
        lab.run()
    assert (lab.bench.performed, len(lab.model.asked)) == (performed, asked)


def test_a_replay_performs_nothing_and_comes_to_the_same_end(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    result = lab.run()
    spent, before = lab.ledger.snapshot(), dict(lab.journal.entries)
    lab.bench.performed.clear()
    lab.light(0)  # whatever is asked of model, evaluator, analyst or journal's writing ends the process
    assert lab.run(Mode.REPLAY) == result
    assert lab.bench.performed == []
    assert lab.journal.entries == before
    assert lab.ledger.snapshot() == spent


def test_a_replay_of_an_unfinished_run_ends_where_its_journal_ends(kit: Any) -> None:
    lab, was_killed = killed_once(kit, 60, **SMALL)
    assert was_killed
    before = dict(lab.journal.entries)
    with pytest.raises(RunStateError, match="a replay performs nothing"):
        lab.run(Mode.REPLAY)
    assert lab.journal.entries == before


def test_a_finished_run_is_not_gone_on_with(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    result = lab.run()
    asked, performed = len(lab.model.asked), list(lab.bench.performed)
    assert lab.run() == result
    assert (len(lab.model.asked), lab.bench.performed) == (asked, performed)


def test_a_journal_of_other_settings_another_task_or_other_texts_is_refused(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    lab.run()
    settings, task = lab.settings, lab.task
    lab.settings = Settings(**(settings.model_dump() | {"bins": 5}))
    with pytest.raises(RunStateError, match=r"started with settings\.bins 10, now it is 5"):
        lab.run()
    lab.settings, lab.task = settings, replace(task, name="other")
    with pytest.raises(RunStateError, match=r"task\.name 'toy'"):
        lab.run()
    lab.task = replace(task, description="Another text.")
    with pytest.raises(RunStateError, match="conversation"):
        lab.run()


def test_a_run_record_may_hold_more_than_the_method_needs(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    plain = kit.Lab(**SMALL)
    plain.run()
    record = dict(plain.journal.get("run"))
    record["task"] |= {"quality": "excess"}
    lab.journal.put("run", record | {"policy": "sha256:0", "created": "by whoever starts runs"})
    assert lab.run() == plain.history.result("run-1")
    assert lab.journal.get("run")["policy"] == "sha256:0"


def test_an_island_that_its_budget_has_stopped_stays_stopped(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    lab.per_island = Budget(usd=Decimal("0.08"))
    result = lab.run()
    assert set(result.stops.values()) == {"budget-spent"}
    asked = len(lab.model.asked)
    lab.per_island = Budget()
    assert lab.run() == result
    assert len(lab.model.asked) == asked


def test_a_model_whose_recording_ends_with_the_budget_ends_the_island_likewise(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(60, 20)), islands=1)
    lab.model.failing = BudgetExhausted("the recorded run's budget was spent here")
    result = lab.run()
    assert (result.stops, result.requests) == ({0: "budget-spent"}, 0)
    assert lab.ledger.snapshot().lost_count == 0
