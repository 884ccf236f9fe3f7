"""Budgets hold under any interleaving, and nothing is counted twice or lost from the sums."""

from __future__ import annotations

import random
import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.budgets import Account, Budget, LedgerSnapshot, Resource, Spend
from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import from_record, to_record
from orchestrator.errors import BudgetExhausted, InputError
from orchestrator.runtime.ledger import Ledger, Reservation
from orchestrator.runtime.workers import CancelToken, WorkerGroup

AGENT = Account(role="agent", model="offline", island=0)

prices = st.decimals(0, 2, places=4)
usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 50),
    cached_input_tokens=st.integers(0, 50),
    output_tokens=st.integers(0, 50),
    usd=prices,
)
spends = st.builds(
    Spend, commits=st.integers(0, 2), analyses=st.integers(0, 3), requests=st.integers(0, 2), usage=usages
)
accounts = st.builds(
    Account,
    role=st.sampled_from(["agent", "evaluation"]),
    model=st.sampled_from([None, "offline", "anthropic/x"]),
    island=st.sampled_from([None, 0, 1, 2]),
)
budgets = st.builds(
    Budget,
    commits=st.none() | st.integers(0, 10),
    analyses=st.none() | st.integers(0, 10),
    requests=st.none() | st.integers(0, 10),
    tokens=st.none() | st.integers(0, 400),
    usd=st.none() | st.decimals(0, 6, places=2),
)
steps = st.lists(st.tuples(st.sampled_from(["reserve", "settle", "release", "lose"]), spends, accounts, st.integers(0)))


def capped(actual: Spend, reserved: Spend) -> Spend:
    """`actual`, but nowhere above `reserved`."""
    a, r = actual.usage, reserved.usage
    assert a.usd is not None
    assert r.usd is not None
    usage = Usage(
        input_tokens=min(a.input_tokens, r.input_tokens),
        cached_input_tokens=min(a.cached_input_tokens, r.cached_input_tokens),
        output_tokens=min(a.output_tokens, r.output_tokens),
        usd=min(a.usd, r.usd),
    )
    return Spend(
        commits=min(actual.commits, reserved.commits),
        analyses=min(actual.analyses, reserved.analyses),
        requests=min(actual.requests, reserved.requests),
        usage=usage,
    )


def is_within(amounts: Spend, budget: Budget) -> bool:
    ceilings = ((amounts.amount(resource), budget.ceiling(resource)) for resource in Resource)
    return all(ceiling is None or (amount is not None and amount <= ceiling) for amount, ceiling in ceilings)


@given(budgets, budgets, steps)
def test_spent_and_reserved_are_never_over_a_ceiling_and_sums_are_conserved(
    total: Budget, per_island: Budget, script: list[tuple[str, Spend, Account, int]]
) -> None:
    ledger = Ledger(total, per_island=per_island)
    live: list[tuple[Reservation, Account]] = []
    booked: list[tuple[Account, Spend]] = []
    for action, amounts, account, pick in script:
        if action == "reserve":
            try:
                live.append((ledger.reserve(amounts, account), account))
            except BudgetExhausted:
                continue
        elif live:
            reservation, owner = live.pop(pick % len(live))
            if action == "settle":
                actual = capped(amounts, reservation.amounts)
                reservation.settle(actual)
                booked.append((owner, actual))
            elif action == "lose":
                reservation.lose()
                booked.append((owner, reservation.amounts))
            else:
                reservation.release()
        snapshot = ledger.snapshot()
        assert snapshot.spent == sum((spend for _, spend in booked), Spend())
        assert snapshot.reserved == sum((reservation.amounts for reservation, _ in live), Spend())
        assert is_within(snapshot.spent + snapshot.reserved, total)
        assert sum(snapshot.by_role.values(), Spend()) == snapshot.spent
        for island in (0, 1, 2):
            mine = sum((spend for account, spend in booked if account.island == island), Spend())
            assert snapshot.by_island.get(island, Spend()) == mine
            held = sum((reservation.amounts for reservation, owner in live if owner.island == island), Spend())
            assert is_within(mine + held, per_island)


@given(st.lists(st.tuples(spends, accounts, st.booleans())), st.randoms(use_true_random=False))
def test_replaying_the_same_settlements_in_any_order_gives_the_same_snapshot(
    charges: list[tuple[Spend, Account, bool]], shuffler: random.Random
) -> None:
    first, second = Ledger(Budget()), Ledger(Budget())
    for amounts, account, lost in charges:
        with first.reserve(amounts, account) as reservation:
            if lost:
                reservation.lose()
            else:
                reservation.settle(amounts)
    shuffler.shuffle(charges)
    for amounts, account, lost in charges:
        second.charge(amounts, account, lost=lost)
    assert first.snapshot() == second.snapshot()


@given(budgets, spends, accounts)
def test_what_is_left_can_be_reserved_and_not_a_commit_more(total: Budget, spent: Spend, account: Account) -> None:
    ledger = Ledger(total)
    ledger.charge(spent, account)
    left = ledger.left(account.island)
    if left.commits is not None:
        ledger.reserve(Spend(commits=left.commits), account).release()
        with pytest.raises(BudgetExhausted):
            ledger.reserve(Spend(commits=left.commits + 1), account)
    if left.usd is not None:
        ledger.reserve(Spend(usage=Usage(usd=left.usd)), account).release()
        with pytest.raises(BudgetExhausted):
            ledger.reserve(Spend(usage=Usage(usd=left.usd + Decimal("0.0001"))), account)


def test_many_threads_cannot_spend_more_than_the_budget() -> None:
    ledger = Ledger(Budget(requests=100, usd=Decimal("1.00")), per_island=Budget(requests=40))
    granted = [0, 0, 0, 0]
    lock = threading.Lock()
    over: list[Any] = []

    def spend(island: int) -> None:
        account = Account(role="agent", model="m", island=island)
        while True:
            try:
                with ledger.reserve(Spend(requests=1, usage=Usage(usd=Decimal("0.03"))), account) as reservation:
                    time.sleep(0)
                    reservation.settle(Spend(requests=1, usage=Usage(usd=Decimal("0.02"))))
            except BudgetExhausted:
                return
            with lock:
                granted[island] += 1
            snapshot = ledger.snapshot()
            if not is_within(snapshot.spent + snapshot.reserved, Budget(requests=100, usd=Decimal("1.00"))):
                over.append(snapshot)

    with WorkerGroup("islands", limit=8, token=CancelToken()) as group:
        for n in range(8):
            group.spawn(str(n), lambda n=n: spend(n % 4))
    assert not over
    assert sum(granted) == ledger.snapshot().spent.requests
    assert 38 <= sum(granted) <= 49  # 50 x 0.02 would fit, but up to 8 reservations of 0.03 hold the last ones off
    assert max(granted) <= 40


@given(st.lists(st.tuples(spends, accounts), max_size=5))
def test_a_snapshot_is_data_that_a_record_can_hold(charges: list[tuple[Spend, Account]]) -> None:
    ledger = Ledger(Budget())
    for amounts, account in charges:
        ledger.charge(amounts, account)
    assert from_record(LedgerSnapshot, to_record(ledger.snapshot())) == ledger.snapshot()


def test_the_message_of_an_exhausted_budget_names_what_how_much_and_the_way_out() -> None:
    ledger = Ledger(Budget(), per_island=Budget(commits=3))
    ledger.charge(Spend(commits=2), AGENT)
    ledger.reserve(Spend(commits=1), AGENT)
    with pytest.raises(
        BudgetExhausted, match=r"island 0 has used or reserved 3 of 3 commits and needs 1 more; .*higher limit"
    ):
        ledger.reserve(Spend(commits=1), AGENT)


def test_a_ledger_that_is_no_runs_says_whose_it_is_and_what_to_do() -> None:
    ledger = Ledger(Budget(requests=5), spender="this question", way_out="ask again with a higher limit on")
    with pytest.raises(
        BudgetExhausted,
        match=r"this question has used or reserved 0 of 5 requests and needs 6 more; ask again with a higher limit on "
        r"requests",
    ):
        ledger.reserve(Spend(requests=6), AGENT)


def test_an_exhausted_resource_does_not_stop_what_does_not_need_it() -> None:
    ledger = Ledger(Budget(commits=0, analyses=5))
    ledger.reserve(Spend(analyses=1), AGENT).settle(Spend(analyses=1))
    assert ledger.left().analyses == 4
    assert ledger.left().commits == 0
    assert ledger.left().usd is None


def test_an_unknown_price_is_refused_where_dollars_are_limited() -> None:
    ledger = Ledger(Budget(usd=Decimal(1)))
    unknown = Spend(requests=1, usage=Usage(usd=None))
    with pytest.raises(InputError, match="price of this model is unknown"):
        ledger.reserve(unknown, AGENT)
    with pytest.raises(InputError, match="price of this model is unknown"):
        ledger.charge(unknown, AGENT)
    assert ledger.snapshot() == Ledger(Budget()).snapshot()


def test_an_unknown_price_makes_the_sum_unknown_and_not_zero() -> None:
    ledger = Ledger(Budget(requests=5))
    ledger.reserve(Spend(usage=Usage(usd=None)), AGENT).settle(Spend(usage=Usage(output_tokens=7, usd=None)))
    ledger.charge(Spend(usage=Usage(usd=Decimal(1))), AGENT)
    snapshot = ledger.snapshot()
    assert snapshot.spent.usage == Usage(output_tokens=7, usd=None)
    assert snapshot.by_model["offline"].usage.usd is None


def test_a_price_that_is_unknown_only_afterwards_is_charged_as_reserved() -> None:
    ledger = Ledger(Budget(usd=Decimal(1)))
    reservation = ledger.reserve(Spend(usage=Usage(usd=Decimal("0.4"))), AGENT)
    reservation.settle(Spend(usage=Usage(output_tokens=3, usd=None)))
    assert ledger.snapshot().spent.usage == Usage(output_tokens=3, usd=Decimal("0.4"))


def test_a_block_left_without_settling_counts_as_lost_in_full() -> None:
    ledger = Ledger(Budget())
    amounts = Spend(requests=1, usage=Usage(usd=Decimal("0.5")))

    def call() -> None:
        with ledger.reserve(amounts, AGENT):
            raise OSError("connection reset")

    with pytest.raises(OSError, match="connection reset"):
        call()
    snapshot = ledger.snapshot()
    assert snapshot.spent == snapshot.lost == amounts
    assert snapshot.lost_count == 1
    assert snapshot.reserved == Spend()


def test_a_reservation_is_closed_once() -> None:
    ledger = Ledger(Budget())
    with ledger.reserve(Spend(commits=1), AGENT) as reservation:
        reservation.release()
        for again in (reservation.release, reservation.lose, lambda: reservation.settle(Spend())):
            with pytest.raises(RuntimeError, match="settled, released or lost before"):
                again()
    assert ledger.snapshot() == Ledger(Budget()).snapshot()


def test_what_was_spent_above_the_reservation_is_recorded_and_stops_the_next_one() -> None:
    ledger = Ledger(Budget(tokens=10))
    ledger.reserve(Spend(usage=Usage(output_tokens=5)), AGENT).settle(Spend(usage=Usage(output_tokens=12)))
    assert ledger.snapshot().spent.usage.output_tokens == 12
    assert ledger.left().tokens == 0
    with pytest.raises(BudgetExhausted, match="12 of 10 tokens"):
        ledger.reserve(Spend(usage=Usage(output_tokens=1)), AGENT)


@pytest.mark.parametrize("usd", ["-1", "NaN", "Infinity"])
def test_a_budget_that_makes_no_sense_is_refused(usd: str) -> None:
    with pytest.raises(InputError, match="makes no sense"):
        Budget(usd=Decimal(usd))
