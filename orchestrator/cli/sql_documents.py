"""The JSON documents of `evolvarium sql`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from orchestrator.cli.documents import Document, LedgerLine, UsageDocument


class HiddenColumn(Document):
    """A column that generated SQL cannot see."""

    table: str
    column: str
    rule: str
    """Which data rule of the policy keeps it back, or what it went with."""


class WithheldWords(Document):
    """Words of a question that name what the policy keeps back."""

    words: str
    """As they are written."""
    columns: list[HiddenColumn]


class SqlAnswerDocument(Document):
    """`sql ask`."""

    question: str
    database: str
    digest: str
    """Of the volume that was asked, without what the policy hides."""
    answered: bool
    """Whether the answer ran to its end; a result without rows is one."""
    sql: str
    """As the model wrote it; empty: no candidate held a query."""
    status: str | None
    """How running it ended (`ok`, `error`, `refused`, `timeout`, `memory`, `killed`); null: there was no query."""
    message: str
    columns: list[str]
    rows: list[list[int | float | str | None]]
    """The first rows; long cells are cut, blobs are SQLite literals, numbers that are not finite are words."""
    row_count: int
    """Rows of the whole result, as far as the policy keeps them."""
    truncated: bool
    """There were more rows than the policy keeps."""
    ending: Literal["stable", "rounds", "budget"]
    """Why the search ended: the best candidates agreed and the critic was confident of them, all rounds were made, the
    budget was spent."""
    rounds: int
    candidates: int
    """Of all rounds together."""
    supporting: int
    """How many of the best candidates give the same result as the answer."""
    of_best: int
    confidence: float | None
    """What the critic gives the answer, 0 to 10; -1: it did not run to its end; null: nobody judged it, since the
    critic's replies could not be read or the budget was spent before, and `doubts` says so."""
    threshold: float
    """From which confidence on the critic counts as confident."""
    confident: bool
    """Whether nothing speaks against the answer: the critic is confident, nothing is `withheld`, and no word that asks
    for something is `unplaced`. It may be wrong all the same."""
    doubts: list[str]
    """What the critic found wrong with the answer, or why it says nothing of it."""
    model: str
    critic_model: str
    seed: int
    policy: str
    hidden: int
    """Columns that the policy keeps back."""
    withheld: list[WithheldWords]
    """What the question names of them, by its words; no model is told of it, so the answer shows something else."""
    unplaced: list[str] | None
    """Words of the question that the model passed over, as they are written; null: the model does not say."""
    sqlite: str
    requests: int
    replies: dict[str, int] = Field(default={})
    """What came of the requests for queries: `text`, `refusal`, `length` (cut off before it was whole), `thought` (and
    nothing else), `empty`, `unknown-tools` (calls of tools, of which none was offered), and `too-long`, which is no
    reply."""
    too_long: str | None = None
    """What the model's server said of the last conversation that was too long for it; null: none was."""
    usage: UsageDocument
    explanation: dict[str, Any] | None
    """With --explain: rounds with their candidates, executions, critiques, utilities and clusters; null: not asked."""


class SqlCheckDocument(Document):
    """`sql check`."""

    database: str
    policy: str
    allowed: bool
    refused_by: Literal["gate", "policy", "sqlite"] | None
    """`gate`: it is not one read-only query; the database was not asked. `sqlite`: SQLite cannot run it, for instance
    because a name does not exist. null: it is allowed."""
    reason: str
    """Empty where it is allowed."""
    ordered: bool
    """Whether the order of its rows is part of what it says."""
    reads: dict[str, list[str]]
    """Table to the columns that it may read, of those that the policy leaves; may say too much, never too little."""
    hidden: list[HiddenColumn]
    """Everything that the policy keeps back of this database."""
    max_rows: int | None
    """Of a result; null: the database was not asked. Likewise below."""
    max_bytes: int | None
    query_seconds: float | None


class ShareDocument(Document):
    """So many questions of so many."""

    right: int
    of: int
    share: float | None
    """From 0 to 1; null: of nothing."""


MetricShares = dict[str, ShareDocument]


class SqlRoundTokens(Document):
    """One row of the paper's Table 11; the critic stands with the round whose candidates it judges."""

    round: int | None
    """From 0 on; null: the sum of all."""
    infill: int
    """Input of the generator, the first round's prompt counted once per question."""
    infill_equivalent: int
    """The same with that prompt counted once per candidate (maj@K-equivalent)."""
    decode: int
    """Output of the generator."""
    critic_infill: int
    critic_decode: int
    total: int
    total_equivalent: int


class SqlActivity(Document):
    """One column of the paper's Table 12."""

    round: int
    active: int
    """Questions that made this round."""
    outputs: int
    """Candidates of it."""
    stopped_share: float
    """Which part of all questions did not."""


class SqlEarlyStop(Document):
    """What early stopping saved."""

    rounds: list[SqlActivity]
    aggregates_made: int
    """Candidates of the rounds after the first."""
    aggregates_without_stopping: int
    aggregates_saved: int
    saved_share: float | None
    """null: there are no later rounds."""


class SqlTokens(Document):
    """The tokens of one method."""

    rounds: list[SqlRoundTokens]
    total: SqlRoundTokens
    """Without the critic's judgement of the last round, which decides nothing but the final choice, as in the paper."""
    total_with_last_judgement: SqlRoundTokens


class SqlDifference(Document):
    """How much more often one method is right than another, paired by question."""

    first: str
    other: str
    metric: str
    difference: float
    """Of the shares, from -1 to 1."""
    low: float
    """Ends of the 95 % interval of a paired bootstrap with 10,000 resamples."""
    high: float


class SqlBenchDatabase(Document):
    """One database of a bench."""

    name: str
    source: str
    """Digest of the file, its write-ahead log included, before the run."""
    volume: str
    """Digest of what was mounted, without what the policy hides."""
    tables: int
    hidden: int
    """Columns that the policy keeps back."""
    questions: int
    unchanged: bool | None
    """Both digests were the same after the run; null: it has not ended."""


class SqlLeftOut(Document):
    """A question that has left the denominator."""

    id: str
    database: str
    standing: Literal["no_gold", "denied", "gold_error", "gold_timeout", "gold_truncated"]
    reason: str


class SqlBenchDocument(Document):
    """`sql bench`, and `resume` and `show` of its runs."""

    run: str
    state: Literal["done", "unfinished", "paused", "budget-spent"]
    pause: str | None = None
    """Why it is paused: a model's provider serves nobody; null: it is not."""
    dataset: str
    digest: str
    """Of all its files but the databases, which have their own."""
    questions: int
    evaluable: int
    """The denominator of all shares; before the end as many of them as are answered count."""
    answered: int
    standings: dict[str, int]
    """How many questions stand how: `evaluable`, or why not."""
    left_out: list[SqlLeftOut]
    gold_as_prediction: MetricShares
    """Gold run and judged like a prediction; anything but everything means that the figures cannot be trusted."""
    gold_disagreeing: list[str]
    """Ids of the questions where it is not right."""
    not_reached: dict[str, int] = Field(default={})
    """Method to answered questions that the budget did not reach under it; they count as wrong in every share."""
    methods: dict[str, MetricShares]
    """Method (`evosql`, `self_evolution`, `majority`, `best_of_k`) to metric (`bird`, `multiset`, `spider`, `strict`,
    `relaxed`) to how often its answer is right."""
    avg_at_k: dict[str, float | None]
    """Metric to the mean share of right candidates in the first round."""
    pass_hat_k: MetricShares
    """Questions whose candidates of the first round are all right."""
    pass_at_k: MetricShares
    """Questions of which at least one is."""
    pass_of_all_rounds: dict[str, MetricShares]
    """The same over all candidates of all rounds, by method."""
    rounds: dict[str, list[MetricShares]]
    """Method to how often its answer was right after each round, T1 first."""
    repaired: dict[str, dict[str, int]]
    """Method to metric to questions without a right candidate in the first round that are right in the end."""
    differences: list[SqlDifference]
    tokens: dict[str, SqlTokens]
    early_stop: dict[str, SqlEarlyStop]
    endings: dict[str, dict[str, int]]
    """Method to how its questions ended."""
    unreadable: dict[str, int]
    """Method to candidates whose score had to be made up because the critic's answer could not be read."""
    flags: dict[str, int]
    """Questions of which an answer counts as right with a reservation, by kind."""
    nondeterministic: int
    """Questions whose gold query gives something else when tables are read in another order."""
    requests: int
    lost: int
    """Calls in flight when a process ended, charged at their worst case."""
    usage: UsageDocument
    """Of the questions that are answered, lost calls among it."""
    ledger: list[LedgerLine] = Field(default=[])
    """What was spent on models by role and model; of all requests, also of questions that are not answered yet."""
    databases: list[SqlBenchDatabase]
    settings: dict[str, Any]
    models: dict[str, str]
    policy: dict[str, str]
    images: dict[str, str]
    sqlite: str
    prompts: dict[str, Any]
    versions: dict[str, str]
    containers_left: int | None = Field(default=None)
    """Containers of this run that exist; null: not asked (`show` needs no engine), or no engine answers."""
