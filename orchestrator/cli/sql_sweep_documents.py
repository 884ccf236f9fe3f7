"""The JSON documents of `evolvarium sql sweep`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from orchestrator.cli.documents import Document, LedgerLine, UsageDocument
from orchestrator.cli.sql_documents import MetricShares, ShareDocument, SqlLeftOut


class SqlSweepDataset(Document):
    """One data set of a sweep."""

    name: str
    digest: str
    """Of all its files but the databases, which have their own."""
    questions: int
    evaluable: int
    """The denominator of all shares at the end; before, as many of them as a variant has answered count."""
    standings: dict[str, int]
    """How many questions stand how: `evaluable`, or why not."""
    left_out: list[SqlLeftOut] = Field(default=[])
    gold_as_prediction: MetricShares
    """Gold run and judged like a prediction; anything but everything means that the figures cannot be trusted."""
    gold_disagreeing: list[str]
    """Ids of the questions where it is not right."""
    databases: dict[str, str]
    """Name to the digest of what was mounted."""
    unchanged: bool | None
    """Every digest was the same after the run; null: it has not ended."""


class SqlSweepScore(Document):
    """What one variant came to on one data set."""

    dataset: str
    answered: int
    not_reached: int = Field(default=0)
    """Questions of these that the budget did not reach; they count as wrong in every share."""
    greedy: MetricShares
    """Metric to how often its answer is right."""
    pass_at_k: MetricShares
    """Metric to how often any of its K best candidates at the end is."""
    majority: MetricShares
    """Metric to how often the majority of its first round is, which needs no critic."""
    tokens: int
    """In and out, of generator and critic on all answered questions, each request counted in full."""
    endings: dict[str, int]


class SqlSweepVariant(Document):
    """One variant."""

    id: str
    label: str
    """In what it differs from the base; `base`: in nothing."""
    settings: dict[str, Any]
    """All of them."""
    scores: list[SqlSweepScore]
    """One for each data set."""


class SqlSweepBest(Document):
    """The variant that is right most often in strict accuracy, over all data sets; of equal ones the first."""

    variant: str
    """Its id."""
    label: str
    strict: ShareDocument
    base: ShareDocument | None
    """What the base comes to; null: it is no variant."""


class SqlSweepPoint(Document):
    """Variants that come to the same point of a panel."""

    x: float
    y: float
    variants: list[str]
    """Their ids."""
    on_front: bool
    """On the Pareto front: no other point is better in one coordinate and not worse in the other."""


class SqlSweepPanel(Document):
    """One of the four panels of the paper's Figure 4."""

    metric: Literal["strict", "relaxed"]
    measure: Literal["greedy", "pass_at_k"]
    x: str
    """The data set whose accuracy is drawn to the right, or `tokens per question`, of which fewer are better."""
    y: str
    """The data set whose accuracy is drawn upwards."""
    points: list[SqlSweepPoint]
    """From left to right; accuracies from 0 to 1."""


class SqlSweepDocument(Document):
    """`sql sweep`, and `resume` and `show` of its runs."""

    run: str
    state: Literal["done", "unfinished", "paused", "budget-spent"]
    pause: str | None = None
    """Why it is paused: a model's provider serves nobody; null: it is not."""
    datasets: list[SqlSweepDataset]
    base: dict[str, Any]
    """Settings that variants are compared with."""
    trials: int
    """Evolutions of each question; one of more rounds answers for those of fewer."""
    variants: list[SqlSweepVariant]
    best: SqlSweepBest | None = Field(default=None)
    """null: not every variant has answered the same questions."""
    panels: list[SqlSweepPanel]
    """Empty as long as not every variant has answered the same questions."""
    requests: int
    """Answered, each once however many variants it serves."""
    usage: UsageDocument
    """Of these requests."""
    ledger: list[LedgerLine] = Field(default=[])
    """The same by role and model."""
    models: dict[str, str]
    policy: dict[str, str]
    images: dict[str, str]
    prompts: dict[str, Any]
    versions: dict[str, str]
    files: list[str]
    """Written with -o."""
    containers_left: int | None = Field(default=None)
    """Containers of this run that exist; null: not asked (`show` needs no engine), or no engine answers."""
