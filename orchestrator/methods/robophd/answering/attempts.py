"""An answer, and the attempts that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.domain.conversation import Usage
from orchestrator.domain.sql import QueryStatus


class Phase(StrEnum):
    """What a request asked for."""

    QUERY = "query"
    VERIFY = "verify"
    REPAIR = "repair"


class Verdict(StrEnum):
    """What a reply came to."""

    QUERY = "query"
    """It held a query."""
    CORRECT = "correct"
    """It was the word that approves of the result, and nothing else."""
    UNREADABLE = "unreadable"
    """Neither; what stood before it stands."""


class Ending(StrEnum):
    """How the answering of a question ended."""

    ANSWERED = "answered"
    """A query stands, whatever running it gave."""
    NO_QUERY = "no-query"
    """No reply held a query."""
    OVER_BUDGET = "over-budget"
    """Analysis, instructions, question and evidence are over the token budget: nothing was asked."""
    BUDGET = "budget"
    """A query stands; to verify or repair it further, the model's context had no room left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request, and what came of its reply."""

    phase: Phase
    temperature: float
    verdict: Verdict
    sql: str
    """As the model wrote it; empty: the reply held no query."""
    status: QueryStatus | None
    """Of its run; None: there was no query."""
    rows: int | None
    """Likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a package came to on one question. It says nothing of whether that is right."""

    question: str
    """Id."""
    ending: Ending
    sql: str = ""
    """The query that stands; empty: there is none."""
    result: str | None = None
    """Digest of the blob with what it gave (`domain.sql_results`); None: there is no query."""
    status: QueryStatus | None = None
    """Likewise."""
    rows: int | None = None
    """Likewise; as many as the caps on results keep."""
    attempts: tuple[Attempt, ...] = ()
    """In their order."""
    unreadable: int = 0
    """Replies that held neither a query nor, where one was asked for, a verdict."""
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    """Of all requests together, as the ledger was charged; lost calls are not in it."""
