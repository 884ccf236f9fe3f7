"""What may be spent and what is spent, as values; None is no ceiling or an unknown price, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum

from orchestrator.domain.conversation import Usage
from orchestrator.errors import InputError


class Resource(StrEnum):
    """What budgets count."""

    COMMITS = "commits"
    ANALYSES = "analyses"
    REQUESTS = "requests"
    TOKENS = "tokens"
    USD = "usd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Ceilings; None: no ceiling.

    Raises:
        InputError: A ceiling is negative or not finite.
    """

    commits: int | None = None
    analyses: int | None = None
    requests: int | None = None
    tokens: int | None = None
    """Input, cached input and output together."""
    usd: Decimal | None = None

    def __post_init__(self) -> None:
        """Check the ceilings once."""
        for resource in Resource:
            ceiling = self.ceiling(resource)
            if ceiling is not None and not (ceiling.is_finite() and ceiling >= 0):
                msg = f"a budget of {ceiling} {resource.value} makes no sense; give a number from 0 up"
                raise InputError(msg)

    def ceiling(self, resource: Resource) -> Decimal | None:
        """Ceiling of one resource; None: no ceiling."""
        value: int | Decimal | None = getattr(self, resource.value)
        return None if value is None else Decimal(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Amounts, none of them negative."""

    commits: int = 0
    analyses: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Spend) -> Spend:
        """Sum; an unknown price makes the sum's price unknown."""
        return Spend(
            commits=self.commits + other.commits,
            analyses=self.analyses + other.analyses,
            requests=self.requests + other.requests,
            usage=self.usage + other.usage,
        )

    def amount(self, resource: Resource) -> Decimal | None:
        """Amount of one resource; None: an unknown price."""
        match resource:
            case Resource.USD:
                return self.usage.usd
            case Resource.TOKENS:
                return Decimal(self.usage.tokens)
            case _:
                value: int = getattr(self, resource.value)
                return Decimal(value)

    def priced_as(self, other: Spend) -> Spend:
        """The same amounts; if their price is unknown, at the price of `other`."""
        if self.usage.usd is not None:
            return self
        return replace(self, usage=replace(self.usage, usd=other.usage.usd))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who spends."""

    role: str
    """What for, for instance `agent` or `evaluation`."""
    model: str | None = None
    """Name of the language model; None: no model is involved."""
    island: int | None = None
    """None: the run as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSnapshot:
    """The ledger as data; equal histories give equal snapshots, in whatever order they were settled."""

    spent: Spend
    """Includes what was lost."""
    reserved: Spend
    lost: Spend
    lost_count: int
    by_role: Mapping[str, Spend] = field(default_factory=dict)
    by_model: Mapping[str, Spend] = field(default_factory=dict)
    by_island: Mapping[int, Spend] = field(default_factory=dict)
