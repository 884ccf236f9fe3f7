"""The JSON documents of `--json`; `docs/json.md` is checked against them.

Fields are only ever added; one that changes its meaning gets a new name. All text that comes from a model or a program
is untrusted.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Metrics = dict[str, float]
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class Document(BaseModel):
    """Common to all documents and their parts."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ErrorDetail(Document):
    """Why a command did not do what was asked."""

    type: str
    """A class of `orchestrator.errors`, or `UsageError`."""
    message: str
    exit_code: int
    notes: list[str] = Field(default=[])
    """More of it, for the operator: above all the traceback of a task's own evaluator."""


class ErrorDocument(Document):
    """On stdout instead of a result when a command fails with `--json`; the same text is on stderr."""

    error: ErrorDetail


class UsageDocument(Document):
    """Cost of all model calls of a run."""

    input_tokens: int
    """Input that was neither read from a provider's cache nor written into one."""
    cached_input_tokens: int
    """Input that was read from a cache."""
    cache_write_input_tokens: int = 0
    """Input that was written into a cache, where the provider bills that apart."""
    output_tokens: int
    """Including reasoning."""
    reasoning_tokens: int = 0
    """The part of the output that was reasoning, as far as the provider says."""
    usd: Usd | None
    """US dollars; null: unknown, not free."""


class LedgerLine(Document):
    """What was spent for one role, on one model, by one island."""

    role: str
    """What the model was asked for: `agent`, `generator`, `critic`, `evolver`, `answerer`, or `hybrid` (an analysis of
    a database where a package's tool failed)."""
    model: str | None
    """null: the run's records do not say."""
    island: int | None
    """null: the run has no islands."""
    requests: int
    """Answered ones."""
    usage: UsageDocument
    """Of them."""
    lost: int
    """Calls whose outcome nobody knows, since a process ended or the connection broke."""
    lost_usage: UsageDocument
    """Of them, at the most they can have cost; it counts against the budget."""
    in_flight: int = Field(default=0)
    """Calls of a run that is going on just now, whose outcome is not known yet."""
    in_flight_usage: UsageDocument = Field(
        default=UsageDocument(
            input_tokens=0, cached_input_tokens=0, cache_write_input_tokens=0, output_tokens=0, usd=Decimal(0)
        )
    )
    """Of them, at the most they can cost; it is set aside from the budget."""


class FailureDocument(Document):
    """Why a program has no score."""

    ending: str
    exception: str | None
    file: str | None
    line: int | None
    message: str | None


class ScoredCandidate(Document):
    """A candidate by id, with its metrics on the split that guides the search."""

    id: str
    metrics: Metrics


class InitialCandidate(Document):
    """The initial program; null: it has no score."""

    metrics: Metrics | None


class SplitVerdict(Document):
    """One candidate on one split that played no part in the search."""

    id: str
    split: str
    metrics: Metrics | None
    failure: FailureDocument | None
    secret: bool
    """False: generated from a published seed, or public data."""


class IslandStop(Document):
    """How one island ended."""

    island: int
    reason: str


class RunDocument(Document):
    """`run`, `resume` and `show RUN`: one run from beginning to end."""

    run: str
    task: str
    method: str
    model: str
    seed: int
    state: Literal["done", "unfinished", "paused", "budget-spent"]
    """`budget-spent`: money or tokens ran out before the commits did; `paused`: a model's provider served nobody, and
    `resume` goes on."""
    pause: str | None = None
    """Why it is paused; null: it is not."""
    best: ScoredCandidate | None
    """The final candidate, by `choice`; null: nothing has a score."""
    choice: str = Field(default="fitness")
    """How it was chosen: `fitness` (the highest), or by the task's error and size with `exact` (the smallest of nearly
    the least error) or `paper` (the highest score on their Pareto front)."""
    initial: InitialCandidate
    evaluations: int
    """Formal evaluations of commits that were paid for; the initial program and duplicates cost none."""
    analyses: int
    requests: int
    replies: dict[str, int]
    """What came of the requests: `tools`, `unknown-tools` (calls only of tools that do not exist), `text`, `refusal`,
    `length` (cut off before it was whole), `thought` (and nothing else), `empty`, and `too-long`, which is no reply."""
    too_long: str | None
    """What the model's server said of the last conversation that was too long for it; null: none was."""
    usage: UsageDocument
    """Of all requests; calls whose outcome nobody knows count at the most they can have cost."""
    ledger: list[LedgerLine] = Field(default=[])
    """The same by role, model and island."""
    endings: dict[str, int]
    """How the paid evaluations ended: `ok`, or the ending of the failure."""
    final: list[SplitVerdict]
    """The initial program and the final candidate on the splits of `--final-splits`."""
    stops: list[IslandStop]
    containers_left: int | None
    """Containers of this run that exist; null: not asked, for the command needs no engine."""


class RunEntry(Document):
    """One line of `runs list`; what an unreadable run would have said is null."""

    run: str
    task: str | None = None
    method: str | None = None
    model: str | None = None
    seed: int | None = None
    state: Literal["done", "unfinished", "paused", "budget-spent", "unreadable"]
    pause: str | None = None
    """Why it is paused; null: it is not."""
    created_at: str | None
    """ISO 8601, UTC."""
    evaluations: int | None = None
    best: ScoredCandidate | None = None
    quality: float | None = None
    """The task's quality metric of the best."""
    questions: int | None = None
    """Of a Text-to-SQL bench, sweep or evolution, all data sets together; null: it is none of them."""
    methods: list[str] | None = None
    """What was measured on them; null: it is no bench and no sweep."""
    accuracy: float | None = None
    """The share of right answers in strict execution accuracy, from 0 to 1; of an evolution, in BIRD's execution
    accuracy on the selection databases; null: there is none yet, or it is nothing of the kind."""
    accuracy_of: str | None = None
    """Of which method, or of which variant of a sweep: the one that is right most often; of an evolution, its
    champion."""
    evaluable: int | None = None
    """Questions of a bench that can be evaluated, as far as is known; null, as of the next two: it is no bench."""
    answered: int | None = None
    """Those of them that are answered: `accuracy` is a share of these."""
    not_reached: int | None = None
    """Those of them that the budget did not reach under the method of `accuracy_of`; they count as wrong."""
    bytes: int
    owner_pid: int | None
    """The process that has it open, 0 if it cannot be told; null: none."""
    problem: str | None = None
    """Why it cannot be read."""


class RunsDocument(Document):
    """`runs list`."""

    runs: list[RunEntry]


class RemovedRunsDocument(Document):
    """`runs remove`."""

    removed: list[str]


class FileDocument(Document):
    """One file of a candidate."""

    path: str
    bytes: int
    text: str | None
    """null: not UTF-8, or written to a file instead."""


class CandidateDocument(Document):
    """`show RUN ID`."""

    run: str
    id: str
    digest: str
    island: int | None
    """null: the initial program."""
    description: str
    parents: list[str]
    """What it was made from: the known program that the files last equalled before they were changed, and then those
    that were read for it."""
    duplicate_of: str | None
    metrics: Metrics | None
    failure: FailureDocument | None
    files: list[FileDocument]
    written_to: str | None


class OutcomeDocument(Document):
    """How the candidate's container ended, measured from outside."""

    ending: str
    """`ok`, or what ended it; judged by what was seen from outside, not by the exit code."""
    exit_code: int | None
    """Of its first process; null: the engine reported none. We kill a container after its last frame, so 137 (128 and
    SIGKILL) is usual, also with the ending `ok`."""
    wall_seconds: float
    """From its first frame on."""
    cpu_seconds: float | None
    """Of all its processes together; null: the runtime does not account for it."""
    memory_peak_bytes: int | None
    """null: the runtime does not account for it."""
    detail: str
    """Which limit or event decided the ending, and its value; empty for `ok`."""


class VerdictDocument(Document):
    """`evaluate`."""

    task: str
    program: str
    digest: str
    split: str
    metrics: Metrics | None
    failure: FailureDocument | None
    secret: bool
    outcome: OutcomeDocument
    fingerprint: dict[str, str]
    threshold: float | None
    passed: bool
    """Scored, and not worse than the threshold where one is given."""
