"""The JSON documents of `compare`."""

from __future__ import annotations

from typing import Literal

from orchestrator.cli.documents import Document, Usd


class GroupedRun(Document):
    """One run of a group."""

    run: str
    seed: int
    best: str
    """Id of its best candidate."""
    quality: dict[str, float]
    """Of its best, by split; a split is missing where it was not measured or the program failed there."""
    evaluations: int
    """Paid ones, without the initial program's."""
    tokens: int
    usd: Usd | None
    """null: unknown, not free."""
    cpu_seconds: float | None
    """Of the containers of its programs and analyses, until its last commit; null: the runtime did not account for
    it."""


class LeftOutRun(Document):
    """A run that was named and does not count."""

    run: str
    reason: str


class RunGroup(Document):
    """One group."""

    runs: list[GroupedRun]
    left_out: list[LeftOutRun]


class SampleDocument(Document):
    """The qualities of a group on one split."""

    n: int
    mean: float
    sd: float | None
    """With the divisor n - 1; null: a single value has none."""
    median: float
    min: float
    max: float


class SplitComparison(Document):
    """Both groups on one split; the signs say which is better, also where lower is better."""

    split: str
    seen: bool
    """Whether it guided the search, which makes its figures too good."""
    initial: float | None
    """Quality of the initial program; null: not measured, or not the same in all runs."""
    a: SampleDocument | None
    """null: no run of the group has a value."""
    b: SampleDocument | None
    missing: list[str]
    """Runs without a value, which do not count."""
    points: float | None
    """By how much the mean of A is better than that of B; negative: worse. Null: a group has no value."""
    low: float | None
    """Ends of its percentile bootstrap interval; null: a group has fewer than two values."""
    high: float | None
    u: float | None
    """Mann-Whitney U: in how many of the pairs of runs A's is better, ties count half."""
    pairs: int | None
    p: float | None
    """Two-sided."""
    p_method: Literal["exact", "normal approximation"] | None
    """Exact where no two values are equal, up to 10,000 pairs; the approximation is corrected for ties and
    continuity."""


class BandDocument(Document):
    """Best so far of a group on the split that guides the search; each row holds until the next one."""

    group: Literal["a", "b"]
    spent: Literal["evaluations", "tokens", "usd", "cpu_seconds"]
    band: Literal["min-max", "interquartile"]
    rows: list[tuple[float, float, float, float]]
    """(spent, median, lower end, upper end) over the runs; a run that has ended keeps its last value."""


class ConditionDocument(Document):
    """What is not the same in all runs."""

    name: str
    a: list[str]
    """The different values in the group."""
    b: list[str]


class ComparisonDocument(Document):
    """`compare`."""

    task: str
    quality: str
    """The metric of all figures."""
    label: str
    """What people call it."""
    unit: str
    lower_is_better: bool
    a: RunGroup
    b: RunGroup
    conditions: list[ConditionDocument]
    splits: list[SplitComparison]
    """The one that guides the search first."""
    bands: list[BandDocument]
    seed: int
    """Of the bootstrap."""
    resamples: int
    level: float
    """Share of the resampled differences within the intervals."""
    warnings: list[str]
    files: list[str]
    """What was written."""
