"""Which searches for equations are measured, and what they are held to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.bench.results.plan import PlannedRun

FAMILY = "symbolic_regression"
SEED = 1
COMMITS = 4
"""Per island and equation."""
_BATCH = "RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationTargets:
    """What the method is held to, of twelve equations."""

    recovered: int = 8
    """Exact, or with negligible extra terms."""
    fewer_without_analysis: int = 4
    """So many fewer the search without analyses recovers at least."""


def planned_batches(commits: int | None) -> tuple[PlannedRun, PlannedRun]:
    """All equations with and without analyses, otherwise with default settings.

    Args:
        commits: In place of four; None: four.
    """
    arguments = (FAMILY, "--all", "--seed", str(SEED), "--commits", str(commits or COMMITS))
    return PlannedRun(arguments=arguments), PlannedRun(arguments=(*arguments, "--no-analysis"))


def planned_assessment(batch_id: str, planned: PlannedRun) -> PlannedRun:
    """What is said of the final equations of a batch.

    Args:
        batch_id: Of the batch.
        planned: Its command, whose record the assessment stands beside.
    """
    name = f"{_BATCH}-without" if "--no-analysis" in planned.arguments else _BATCH
    return PlannedRun(verb=("task", "assess"), arguments=(name,), files=((name, Path(batch_id)),))
