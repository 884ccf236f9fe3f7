"""The JSON documents of `report`."""

from __future__ import annotations

from orchestrator.cli.documents import Document, RunDocument


class ReadsDocument(Document):
    """How migration candidates were used, counted as in section S2-D of the AgenticEvolve paper."""

    offered: int
    offered_and_read: int
    commits_after_a_read: int
    improved_island_best: int
    improved_run_best: int
    identical_to_a_read: int


class ComparedRun(Document):
    """One column of `report`."""

    run: RunDocument
    analysis: bool
    """Whether its agents could run analyses."""
    curve: list[tuple[int, float]]
    """(paid evaluations, quality of the best so far), the initial program at 0."""
    cells: dict[str, int]
    """Filled cells of each island's grid."""
    cross_island_reads: ReadsDocument


class SplitDifference(Document):
    """How much better the first run is than another, on one split, in points of the quality."""

    run: str
    split: str
    points: float


class ReportDocument(Document):
    """`report`."""

    quality: str
    """The metric the curves and differences are in."""
    lower_is_better: bool
    runs: list[ComparedRun]
    differences: list[SplitDifference]
    files: list[str]
    """What was written."""
