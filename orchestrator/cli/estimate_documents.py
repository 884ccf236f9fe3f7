"""The JSON document of `evolvarium estimate`."""

from __future__ import annotations

from typing import Literal

from orchestrator.cli.documents import Document, UsageDocument, Usd


class EstimatedAmounts(Document):
    """Requests and what they take."""

    requests: int
    usage: UsageDocument


class EstimateLine(Document):
    """What one role takes of one model."""

    role: str
    model: str
    context_tokens: int
    """How long a conversation with it may grow."""
    price_source: str | None
    """Where its price is from, with its date; null: the price is unknown, or the model is free."""
    expected: EstimatedAmounts
    at_most: EstimatedAmounts
    """What settings and context allow, without any budget; each member of an ensemble may have to answer everything."""


class EstimateTotal(Document):
    """All roles together."""

    expected: EstimatedAmounts
    at_most: EstimatedAmounts
    """Without any budget."""
    at_most_tokens: int
    """Of all kinds, under the budget."""
    at_most_usd: Usd | None
    """Likewise; null: a price is unknown."""


class AssumptionDocument(Document):
    """One thing that is assumed."""

    name: str
    """For `--assume NAME=VALUE`."""
    value: float
    meaning: str


class EstimateDocument(Document):
    """`estimate run`, `estimate bench` and `estimate evolve`."""

    method: Literal["run", "sql bench", "sql evolve"]
    """The command that it is about."""
    subject: str
    """The task, or the data sets."""
    like: str | None
    """The recorded run whose averages are taken; null: none, the assumptions count."""
    lines: list[EstimateLine]
    total: EstimateTotal
    budget_usd: Usd | None
    """null: no ceiling; likewise below."""
    budget_tokens: int | None
    assumptions: list[AssumptionDocument]
    """Empty with `like`."""
    facts: list[str]
    """What was counted."""
    unpriced: list[str]
    """Models whose price is unknown."""
    prices_as_of: str
    """Date of the newest entry of the table of prices that is part of the program."""
