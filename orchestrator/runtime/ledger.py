"""What may be spent, what is set aside and what was spent; a hard stop under concurrency.

Spending is reserved at its worst case before it begins and settled at its true size after it. A reservation that is
never settled (a call in flight at a crash) is charged in full and counted as lost, since nobody can know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from types import TracebackType
from typing import Self

from orchestrator.domain.budgets import Account, Budget, LedgerSnapshot, Resource, Spend
from orchestrator.errors import BudgetExhausted, InputError


class Reservation:
    """Spending set aside; leaving its block unsettled charges it in full and counts it as lost. Thread-safe."""

    def __init__(self, amounts: Spend, close: Callable[[Reservation, Spend, bool], None]) -> None:
        self.amounts = amounts
        self._close = close

    def settle(self, actual: Spend) -> None:
        """Replace the reservation by what was really spent.

        More than was reserved is recorded as it is (it is spent), and leaves so much less for others. A price that is
        unknown afterwards, although it was reserved, is charged as reserved.

        Raises:
            RuntimeError: It was settled, released or lost before.
        """
        self._close(self, actual.priced_as(self.amounts), False)

    def release(self) -> None:
        """Give everything back: nothing was spent.

        Raises:
            RuntimeError: It was settled, released or lost before.
        """
        self._close(self, Spend(), False)

    def lose(self) -> None:
        """Charge it in full: whether it was spent cannot be known.

        Raises:
            RuntimeError: It was settled, released or lost before.
        """
        self._close(self, self.amounts, True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count it as lost if nobody said what became of it."""
        try:
            self.lose()
        except _Closed:
            return


class _Closed(RuntimeError):
    pass


class Ledger:
    """Budgets of a run and of each island. Thread-safe.

    As long as nothing is settled above its reservation, spent and reserved together are never above a ceiling.
    """

    def __init__(
        self,
        total: Budget,
        *,
        per_island: Budget | None = None,
        spender: str = "the run",
        way_out: str = "start a run with a higher limit on",
    ) -> None:
        """Create an empty ledger.

        Args:
            total: Ceilings of the whole run.
            per_island: Ceilings of every single island.
            spender: What a refusal calls the whole run.
            way_out: What a refusal advises, with the resource behind it.
        """
        self._spender = spender
        self._way_out = way_out
        self._total = total
        self._per_island = per_island or Budget()
        self._lock = threading.Lock()  # guards all below: many workers reserve and settle at once
        self._open: dict[Reservation, Account] = {}
        self._charges: dict[Account, Spend] = {}
        self._lost = Spend()
        self._lost_count = 0

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        """Set spending aside, at its worst case.

        Raises:
            BudgetExhausted: A ceiling does not cover it; nothing was set aside.
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        with self._lock:
            self._check(amounts, self._total, None)
            if account.island is not None:
                self._check(amounts, self._per_island, account.island)
            reservation = Reservation(amounts, self._close)
            self._open[reservation] = account
        return reservation

    def charge(self, amounts: Spend, account: Account, *, lost: bool = False) -> None:
        """Record what an earlier process spent, as its journal tells; ceilings do not stop it, since it is spent.

        Raises:
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        with self._lock:
            for budget in (self._total, self._per_island):
                _amount(amounts, Resource.USD, budget)
            self._book(amounts, account, lost=lost)

    def left(self, island: int | None = None) -> Budget:
        """What a reservation made now could have at most; below 0 counts as 0, None means no ceiling.

        Args:
            island: Also under the ceilings of this island.
        """
        with self._lock:
            left = {resource: self._left(resource, island) for resource in Resource}
        whole = {r.value: None if (v := left[r]) is None else int(v) for r in Resource if r is not Resource.USD}
        return Budget(**whole, usd=left[Resource.USD])

    def snapshot(self) -> LedgerSnapshot:
        """All sums, at one moment."""
        with self._lock:
            charges = dict(self._charges)
            reserved = sum((reservation.amounts for reservation in self._open), Spend())
            lost, lost_count = self._lost, self._lost_count
        by_role: dict[str, Spend] = {}
        by_model: dict[str, Spend] = {}
        by_island: dict[int, Spend] = {}
        for account, spend in charges.items():
            by_role[account.role] = by_role.get(account.role, Spend()) + spend
            if account.model is not None:
                by_model[account.model] = by_model.get(account.model, Spend()) + spend
            if account.island is not None:
                by_island[account.island] = by_island.get(account.island, Spend()) + spend
        return LedgerSnapshot(
            spent=sum(charges.values(), Spend()),
            reserved=reserved,
            lost=lost,
            lost_count=lost_count,
            by_role=dict(sorted(by_role.items())),
            by_model=dict(sorted(by_model.items())),
            by_island=dict(sorted(by_island.items())),
        )

    def _check(self, amounts: Spend, budget: Budget, island: int | None) -> None:
        for resource in Resource:
            ceiling = budget.ceiling(resource)
            if ceiling is None:
                continue
            asked = _amount(amounts, resource, budget)
            used = self._used(resource, island)
            if asked > 0 and used + asked > ceiling:
                who = self._spender if island is None else f"island {island}"
                msg = (
                    f"budget spent: {who} has used or reserved {used} of {ceiling} {resource.value} and needs {asked} "
                    f"more; {self._way_out} {resource.value}"
                )
                raise BudgetExhausted(msg)

    def _used(self, resource: Resource, island: int | None) -> Decimal:
        """Spent and reserved; island None is the whole run. Unknown prices exist only where no ceiling asks."""
        spends = [spend for account, spend in self._charges.items() if island in {None, account.island}]
        spends += [r.amounts for r, account in self._open.items() if island in {None, account.island}]
        return sum((spend.amount(resource) or Decimal(0) for spend in spends), Decimal(0))

    def _left(self, resource: Resource, island: int | None) -> Decimal | None:
        left = []
        if (ceiling := self._total.ceiling(resource)) is not None:
            left.append(ceiling - self._used(resource, None))
        if island is not None and (ceiling := self._per_island.ceiling(resource)) is not None:
            left.append(ceiling - self._used(resource, island))
        return max(min(left), Decimal(0)) if left else None

    def _close(self, reservation: Reservation, actual: Spend, lost: bool) -> None:
        with self._lock:
            account = self._open.pop(reservation, None)
            if account is None:
                msg = "this reservation was settled, released or lost before; reserve anew for each step"
                raise _Closed(msg)
            self._book(actual, account, lost=lost)

    def _book(self, amounts: Spend, account: Account, *, lost: bool) -> None:
        if amounts != Spend():
            self._charges[account] = self._charges.get(account, Spend()) + amounts
        if lost:
            self._lost += amounts
            self._lost_count += 1


def _amount(amounts: Spend, resource: Resource, budget: Budget) -> Decimal:
    amount = amounts.amount(resource)
    if amount is None and budget.ceiling(resource) is not None:
        msg = "the price of this model is unknown, so a budget in usd cannot be kept; limit tokens instead"
        raise InputError(msg)
    return amount or Decimal(0)
