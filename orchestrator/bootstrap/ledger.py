"""A ledger that remembers what it refused, for the people who chose the budget."""

from __future__ import annotations

from orchestrator.domain.budgets import Account, Spend
from orchestrator.errors import BudgetExhausted
from orchestrator.runtime.ledger import Ledger, Reservation


class RememberingLedger(Ledger):
    """Keeps the first refusal; it names what was used, the ceiling, and what the step needed."""

    refusal: str | None = None

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        """As `Ledger.reserve`."""
        try:
            return super().reserve(amounts, account)
        except BudgetExhausted as error:
            self.refusal = self.refusal or str(error)
            raise
