"""An estimate as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, rounded, total_of


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

    @property
    def expected(self) -> Amounts:
        """Of all roles together."""
        return rounded(total_of(self.lines)[0])

    @property
    def at_most(self) -> Amounts:
        """Of all roles together, without any budget."""
        return rounded(total_of(self.lines)[1])

    @property
    def most_usd(self) -> Decimal | None:
        """What settings, context and budget allow; None: a price is unknown."""
        usd = self.at_most.usage.usd
        return usd if usd is None or self.budget_usd is None else min(usd, self.budget_usd)

    @property
    def most_tokens(self) -> int:
        """Of all kinds, likewise."""
        tokens = self.at_most.usage.tokens
        return tokens if self.budget_tokens is None else min(tokens, self.budget_tokens)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Names of the models whose price is unknown."""
        return tuple(dict.fromkeys(line.model.name for line in self.lines if line.model.price is None))
