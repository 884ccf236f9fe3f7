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
    """As in a run's ledger; `hybrid` is the answerer, where it analyses a database because a package's tool failed."""
    model: str
    context_tokens: int
    """How long a conversation with it may grow; an ensemble's have to fit into each of its members."""
    context_source: Literal["entry", "table", "engine", "recorded", "assumed"]
    """Who says so: the model's entry, the table of capabilities, the `offline` engine itself, the run of `like`, or
    nobody, until a run asks the model's server."""
    price_source: str | None
    """Where its price is from, with its date; null: the price is unknown, or the model is free."""
    expected: EstimatedAmounts
    at_most: EstimatedAmounts
    """What settings, context and budget allow, each figure by itself; each member of an ensemble may have to answer
    everything."""


class EstimateTotal(Document):
    """All roles together."""

    expected: EstimatedAmounts
    at_most: EstimatedAmounts
    """What settings, context and budget allow, each figure by itself."""
    at_most_tokens: int
    """Of all kinds together, likewise."""
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
    notes: list[str]
    """With `like`: what differs from the recorded run and is in no figure, and what lies beyond it."""
    unpriced: list[str]
    """Models whose price is unknown."""
    prices_as_of: str
    """Date of the newest entry of the table of prices that is part of the program."""
