"""Which searches of the dynamic job shop are measured, and what they are held to."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.results.plan import DemoPair, PlannedRun

TASK = "dynamic_job_shop"
SEED = 1
COMMITS = 8
"""Per island, of the pair; the task's own number is measured by `--full`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopTargets:
    """What the method is held to, as mean tardiness over that of the reference rule 2 PT + WINQ + NPT."""

    hidden_ratio: float = 0.90
    fresh_ratio: float = 0.90
    without_analysis_ratio: float = 0.05
    """How much worse the run without analyses is at least, on both sets."""


def shop_pair(commits: int | None) -> DemoPair:
    """The search with and without analyses, otherwise with default settings.

    Args:
        commits: In place of eight; None: eight.
    """
    arguments = (TASK, "--public-seed", "--seed", str(SEED), "--commits", str(commits or COMMITS))
    return DemoPair(
        seed=SEED,
        with_analysis=PlannedRun(arguments=arguments),
        without_analysis=PlannedRun(arguments=(*arguments, "--no-analysis")),
    )


def full_shop_run() -> PlannedRun:
    """The task's own number of commits."""
    return PlannedRun(arguments=(TASK, "--public-seed", "--seed", str(SEED)))
