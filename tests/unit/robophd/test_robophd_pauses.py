"""What fails on our side, or an operator's stop, pauses a run; it goes on to what it would have come to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import Usage
from orchestrator.errors import BudgetExhausted, Cancelled, EvolvariumError, ModelError, SandboxError
from orchestrator.methods.robophd.results import Ending
from orchestrator.runtime.ledger import Ledger, Reservation
from tests.evolution_lab import EvolutionLab, cheaper, small, tiny
from tests.evolution_world import World


@dataclass
class WatchedLedger:
    """Tells when a budget was refused."""

    ledger: Ledger
    on_refusal: Callable[[], object]

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        try:
            return self.ledger.reserve(amounts, account)
        except BudgetExhausted:
            self.on_refusal()
            raise

    def charge(self, amounts: Spend, account: Account, *, lost: bool = False) -> None:
        self.ledger.charge(amounts, account, lost=lost)


def test_a_failure_beside_a_spent_budget_pauses_the_run_and_does_not_end_it(world: World) -> None:
    """A thread that failed may have left a step undone that its budget covered."""
    lab = cheaper(EvolutionLab(world, {}, small(iterations=1)), 1)
    lab.workers = 2
    refused = threading.Event()
    plain = lab.ports

    def fail_after_it(_: object) -> None:
        assert refused.wait(60)
        threading.Event().wait(0.05)
        msg = "no answer"
        raise ModelError(msg)

    lab.answerer.before = fail_after_it
    lab.ports = lambda: replace(plain(), ledger=WatchedLedger(lab.ledger, refused.set))  # type: ignore[method-assign]
    with pytest.raises(ModelError):
        lab.run()
    assert lab.journal.get("run/end") is None
    lab.answerer.before = lambda _: None
    assert lab.run().ending is Ending.BUDGET
    assert lab.ledger.snapshot().spent.requests == 1


def test_an_operators_stop_beside_a_spent_budget_pauses_the_run_as_well(world: World) -> None:
    lab = cheaper(tiny(world), 3)
    plain = lab.ports
    lab.ports = lambda: replace(plain(), ledger=WatchedLedger(lab.ledger, lab.cancel.cancel))  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        lab.run()
    assert lab.journal.get("run/end") is None
    lab.ports = plain  # type: ignore[method-assign]
    assert lab.run().ending is Ending.BUDGET


def interrupted(lab: EvolutionLab, model: str, number: int, error: EvolvariumError) -> None:
    """The n-th request of a model fails."""
    asked = getattr(lab, model)
    complete, count = asked.complete, [0]
    lock = threading.Lock()

    def failing(*arguments: Any) -> Any:
        with lock:
            count[0] += 1
            if count[0] == number:
                raise error
        return complete(*arguments)

    asked.complete = failing
    with pytest.raises(type(error)):
        lab.run()
    asked.complete = complete


@pytest.mark.parametrize("error", [ModelError("no answer"), Cancelled("enough"), SandboxError("no engine")])
@pytest.mark.parametrize(("model", "number"), [("evolver", 1), ("evolver", 3), ("answerer", 1), ("answerer", 9)])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_failure_of_ours_pauses_the_run_and_it_goes_on_to_the_same(
    world: World, error: EvolvariumError, model: str, number: int, workers: int
) -> None:
    undisturbed = tiny(world)
    expected = undisturbed.run()
    lab = tiny(world)
    lab.workers = workers
    interrupted(lab, model, number, error)
    assert lab.journal.get("run/end") is None
    assert lab.run() == expected
    assert lab.state == undisturbed.state
    assert lab.ledger.snapshot() == undisturbed.ledger.snapshot()


def test_a_call_of_a_model_that_is_not_repeatable_is_counted_as_lost_where_nobody_knows_its_end(world: World) -> None:
    undisturbed = tiny(world, is_repeatable=False)
    expected = undisturbed.run()
    lab = tiny(world, is_repeatable=False)
    interrupted(lab, "evolver", 2, Cancelled("enough"))
    assert lab.ledger.snapshot().lost_count == 1
    assert lab.run() == expected
    snapshot, bill = lab.ledger.snapshot(), undisturbed.ledger.snapshot()
    assert snapshot.lost_count == 1
    assert snapshot.spent.usage.usd == (bill.spent.usage.usd or Decimal(0)) + (snapshot.lost.usage.usd or Decimal(0))
    assert snapshot.lost.usage != Usage()


def test_a_tool_run_that_the_sandbox_failed_pauses_it_and_is_made_again(world: World) -> None:
    undisturbed = tiny(world)
    expected = undisturbed.run()
    lab = tiny(world)
    analyse, count = lab.tools.analyse, [0]

    def failing(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] == 3:
            msg = "the engine is gone"
            raise SandboxError(msg)
        return analyse(*arguments, **named)

    lab.tools.analyse = failing  # type: ignore[method-assign]
    with pytest.raises(SandboxError):
        lab.run()
    assert lab.run() == expected
    assert lab.state == undisturbed.state


@pytest.mark.parametrize("workers", [1, 4])
def test_an_operators_stop_is_obeyed_at_the_next_request_and_the_run_goes_on(world: World, workers: int) -> None:
    undisturbed = tiny(world)
    expected = undisturbed.run()
    for stop in (2, 12, 25):
        lab = tiny(world)
        lab.workers = workers
        seen: list[object] = []

        def stopping(_: object, lab: EvolutionLab = lab, seen: list[object] = seen, stop: int = stop) -> None:
            seen.append(None)
            if len(seen) == stop:
                lab.cancel.cancel("enough")

        lab.answerer.before = stopping
        if len(undisturbed.answerer.asked) < stop:
            continue
        with pytest.raises(Cancelled):
            lab.run()
        assert len(lab.answerer.asked) <= stop + workers - 1
        assert lab.run() == expected
        assert lab.state == undisturbed.state
