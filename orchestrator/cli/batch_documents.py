"""The JSON documents of batches and of assessments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.cli.documents import Document, FailureDocument, ScoredCandidate, SplitVerdict, UsageDocument


class BatchMember(Document):
    """One task of a batch; what a task that has not begun would have said is null."""

    task: str
    run: str | None
    """null: it has not begun, or its run was removed."""
    state: Literal["done", "unfinished", "paused", "budget-spent", "waiting", "preparing", "missing", "unreadable"]
    """`waiting`: it has not begun; `preparing`: what its run needs is being made ready, so the run has no id yet;
    `missing`: its run was removed; `unreadable`: `problem` says why."""
    pause: str | None = None
    """Why it is paused; null: it is not."""
    problem: str | None = None
    quality: str | None = None
    """The metric that people read."""
    search_split: str | None = None
    """The split that guides the search, which the metrics of `best` are of."""
    choice: str | None = None
    """How the final candidate was chosen."""
    best: ScoredCandidate | None = None
    """The final candidate; null: nothing has a score."""
    final: list[SplitVerdict] = Field(default=[])
    """The initial program and the final candidate on the other splits."""
    evaluations: int | None = None
    analyses: int | None = None
    requests: int | None = None
    usage: UsageDocument | None = None


class BatchDocument(Document):
    """`run --all`, `resume` and `show` of a batch: one search on every member of a family of tasks."""

    run: str
    family: str
    model: str
    state: Literal["done", "unfinished", "paused", "budget-spent"]
    """`budget-spent`: every member has ended, and of at least one money or tokens ran out before the commits did;
    `paused`: a member is."""
    pause: str | None
    """Why it is paused; null: it is not."""
    members: list[BatchMember]
    evaluations: int
    """Of all members."""
    analyses: int
    requests: int
    usage: UsageDocument
    containers_left: int | None
    """Of the members that the command ran; null: not asked, for it needed no engine."""


class BatchReportDocument(Document):
    """`report` of a batch."""

    batch: BatchDocument
    files: list[str]
    """What was written; of each member in a folder of its own."""


class SplitQuality(Document):
    """The task's quality of the final candidate on one split."""

    split: str
    value: float | None
    """null: it has no score there."""
    failure: FailureDocument | None = None


class AssessedRun(Document):
    """The final candidate of one run, as the task's own code assesses it."""

    run: str
    task: str
    choice: str
    """The rule by which it was chosen; `id` where it was named."""
    commit: str | None
    """null: nothing has a score."""
    quality: str
    """The metric that people read."""
    splits: list[SplitQuality]
    """The split that guides the search, and then the others."""
    assessment: dict[str, str | int | float | bool | None] | None
    """What the task declares under `assessment`; null: it was not assessed."""
    not_assessed: str | None = None
    """Why it was not: `timeout` or another limit that the assessment met, or how the program failed."""


class AssessmentDocument(Document):
    """`task assess`."""

    batch: str | None
    """null: a run by itself was assessed."""
    meanings: dict[str, str]
    """What is assessed, with its meaning."""
    runs: list[AssessedRun]
