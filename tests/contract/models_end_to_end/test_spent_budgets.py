"""Two islands that come to the end of a shared budget at the same instant."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from orchestrator.domain.budgets import Account, Budget, Resource, Spend
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import Provider
from orchestrator.domain.records import from_record
from orchestrator.runtime.ledger import Ledger, Reservation
from orchestrator.storage.journal import SqliteJournal
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.world import World, check_account, check_end, check_ledger
from tests.model_servers.base import Trouble

REQUEST = 2
"""The islands' request that they reserve at the same instant."""


class CollidingLedger(Ledger):
    """Lets both islands reserve their second request at the same instant, and watches its ceiling."""

    def __init__(self, total: Budget) -> None:
        super().__init__(total)
        self._barrier = threading.Barrier(2)
        self._reserved: Counter[int | None] = Counter()
        self.tightest = Usage()

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        if account.role == "agent":
            self._reserved[account.island] += 1  # each island is a thread, and has a key of its own
            if self._reserved[account.island] == REQUEST:
                self._barrier.wait(20)
        reservation = super().reserve(amounts, account)
        now = self.snapshot()
        self.tightest = max(self.tightest, (now.spent + now.reserved).usage, key=lambda usage: usage.tokens)
        return reservation


def reserved_for_the_first(world: World) -> Usage:
    """What a first request may cost, as the announcement says of one that was refused."""
    world.stage.fault, world.stage.first, world.stage.times = (lambda _: Trouble(status=401)), 1, None
    world.go()
    world.stage.happens(None)
    with SqliteJournal(world.path, read_only=True) as journal:
        announced = [record["reserved"] for key, record in journal.records() if key.endswith("/request/0001/sent")]
    return from_record(Usage, announced[0])


@pytest.mark.parametrize("resource", [Resource.USD, Resource.TOKENS])
def test_a_budget_that_covers_one_of_two_requests_is_given_to_one_island(
    resource: Resource, provider: Provider, make_world: WorldMaker
) -> None:
    world = make_world(provider)
    first = reserved_for_the_first(world)
    assert first.usd is not None
    asked = len(world.stage.taken)
    # Both first requests fit together. Both second ones do not: they are longer, and something is spent by then.
    budget = Budget(usd=2 * first.usd) if resource is Resource.USD else Budget(tokens=2 * first.tokens)
    ledger = CollidingLedger(budget)
    went = world.go(ledger=ledger)
    assert went.error is None
    assert went.result is not None
    assert sorted(went.result.stops.values()) in (["budget-spent", "commits"], ["budget-spent", "budget-spent"])
    by_island = Counter(key.partition("/")[0] for key in went.keys if key.endswith("/request/0002"))
    assert sum(by_island.values()) == 1
    ceiling, most = budget.ceiling(resource), Spend(usage=ledger.tightest).amount(resource)
    assert ceiling is not None
    assert most is not None
    assert most <= ceiling
    assert went.spending.lost == 0
    check_account(went, world.stage)
    check_ledger(went)
    assert len(world.stage.taken) - asked == went.spending.requests
    check_end(world, went, ledger=Ledger(budget))
