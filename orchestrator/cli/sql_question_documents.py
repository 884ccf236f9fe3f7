"""The JSON documents of a bench's questions: many in a list, or one with all that is recorded of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.cli.documents import Document, UsageDocument
from orchestrator.cli.sql_documents import MetricShares

Standing = Literal["evaluable", "no_gold", "denied", "gold_error", "gold_timeout", "gold_truncated", "pending"]


class SqlQuestionEntry(Document):
    """One question among others."""

    id: str
    database: str
    standing: Standing
    """`evaluable`, or why it has left the denominator; `pending`: its gold query has not been run yet."""
    reason: str
    """Why it cannot be evaluated; empty otherwise."""
    answered: bool
    right: dict[str, list[str]]
    """Method to the metrics in which its answer is right; one that the budget did not reach is missing."""
    flags: list[str]


class SqlQuestionsDocument(Document):
    """`show RUN --questions` of a bench."""

    run: str
    which: Literal["failed", "right", "left-out", "all"]
    method: str
    """Whose answers decide what is `failed` and what `right`: the first method that was measured."""
    metric: str
    """In which."""
    questions: list[SqlQuestionEntry]
    """In the order of the list; `failed` are those that were answered and are not right."""


class SqlQueryDocument(Document):
    """A query and what running it gave."""

    sql: str
    status: str | None
    """How running it ended (`ok`, `error`, `refused`, `timeout`, `memory`, `killed`); null: it was not run, or it has
    no result that is kept."""
    message: str
    columns: list[str]
    rows: list[list[int | float | str | None]]
    """The first rows, as models see them."""
    row_count: int
    truncated: bool
    """There were more rows than the policy keeps."""


class SqlAnswer(Document):
    """What one method answered."""

    method: str
    query: SqlQueryDocument
    right: list[str]
    """Metrics in which it is right."""
    difference: list[str] = Field(default=[])
    """How its result differs from that of the gold query, the coarsest finding first and without a value of either; the
    order of rows counts, as in `strict`. Empty: not at all."""
    flags: list[str]
    """Reservations of its comparison with gold."""
    ending: str | None
    """Why its rounds ended; null: it makes none."""
    after_rounds: list[list[str]]
    """Metrics in which its answer was right after each round, T1 first."""
    unreadable: int
    """Candidates whose score had to be made up because the critic's answer could not be read."""


class SqlAsked(Document):
    """The requests of one kind."""

    method: str | None
    """null: the first round's candidates, which all methods share."""
    phase: Literal["elicit", "aggregate", "critic", "choose"]
    round: int
    """From 0 on."""
    requests: int
    input_tokens: int
    """Input that was neither read from a provider's cache nor written into one."""
    cached_input_tokens: int
    cache_write_input_tokens: int = 0
    output_tokens: int


class SqlQuestionDocument(Document):
    """`show RUN ID` of a bench: one question."""

    run: str
    id: str
    database: str
    text: str | None
    """null: the run was made by a version that did not keep it. Likewise `evidence` and `difficulty`."""
    evidence: str | None
    difficulty: str | None
    standing: Standing
    reason: str
    nondeterministic: bool
    """Its gold query gives something else when tables are read in another order."""
    answered: bool
    answers: list[SqlAnswer]
    """Of the methods that the budget reached; empty for a run of a version that did not keep them."""
    not_reached: list[str]
    """Methods that the budget did not reach; their answers count as wrong."""
    candidates: MetricShares
    """How many candidates of the first round are right."""
    asked: list[SqlAsked]
    """Without the requests of a round that the budget cut off."""
    requests: int
    """Of all methods together; the same of what follows."""
    lost: int
    usage: UsageDocument
    queries: list[SqlQueryDocument]
    """Every different query that was run for this question."""
    gold: SqlQueryDocument | None
    """With --gold: the gold query, read from the data set, and its recorded result; null: not asked for, or none."""
