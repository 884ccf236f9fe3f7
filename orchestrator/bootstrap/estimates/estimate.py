"""An estimate as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, rounded, total_of
from orchestrator.bootstrap.estimates.ceilings import Ceilings, under_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will take of its models."""

    method: str
    """The command that makes such a run, for instance `run`."""
    subject: str
    """The task, or the data sets."""
    lines: tuple[Line, ...]
    assumptions: Sequence[tuple[str, float, str]]
    """(name, value, meaning); empty where a recorded run says it."""
    facts: Sequence[str] = ()
    """What was counted, a sentence each."""
    budget_usd: Decimal | None = None
    budget_tokens: int | None = None
    like: str | None = None
    """Id of the recorded run whose averages are used."""
    notes: Sequence[str] = ()
    """What one must know to believe the figures, a sentence each."""

    @property
    def expected(self) -> Amounts:
        """Of all roles together."""
        return rounded(total_of(self.lines)[0])

    @property
    def at_most(self) -> Amounts:
        """Of all roles together, under the budget; each figure by itself."""
        return rounded(self._ceilings.amounts)

    def most_of(self, line: Line) -> Amounts:
        """Of one line, likewise."""
        return under_budget([line], self.budget_usd, self.budget_tokens).amounts

    @property
    def most_usd(self) -> Decimal | None:
        """What settings, context and budget allow; None: a price is unknown."""
        return self.at_most.usage.usd

    @property
    def most_tokens(self) -> int:
        """Of all kinds together, likewise."""
        return self._ceilings.tokens

    @property
    def _ceilings(self) -> Ceilings:
        return under_budget(self.lines, self.budget_usd, self.budget_tokens)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Names of the models whose price is unknown."""
        return tuple(dict.fromkeys(line.model.name for line in self.lines if line.model.price is None))
