"""Which evolution of Text-to-SQL packages is measured, and what it is held to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.bench.results.plan import PlannedRun

ITERATIONS = 6
SEED = 0
MODELS = ("offline", "offline/effort-0.5")
"""Of the cross-model table: the run's, and a weaker one."""
_LAYOUTS = ("spider", "bird")
_RUN = "RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobophdTargets:
    """What RoboPhD is held to."""

    half_widths: float = 1.0
    """By more than so many half-widths of its interval the champion is better than the naive package."""
    minutes: float = 30.0
    """Of the evolution."""


def planned_evolution(data: Path, iterations: int | None) -> PlannedRun:
    """An evolution on all data, with the default settings.

    Args:
        data: Holds the folders of the data sets.
        iterations: In place of six; None: six.
    """
    roots = {
        name: f"DIR/{name}" for name in _LAYOUTS
    }  # the command as one types it, whatever the folder is called here
    datasets = [part for name, root in roots.items() for part in (f"--{name}", root)]
    arguments = (*datasets, "--iterations", str(iterations or ITERATIONS), "--seed", str(SEED))
    files = tuple((root, data / name) for name, root in roots.items())
    return PlannedRun(verb=("sql", "evolve"), arguments=arguments, files=files)


def planned_final(run_id: str) -> PlannedRun:
    """Champion and naive package on the final databases, under every model.

    Args:
        run_id: Of the evolution.
    """
    models = [part for name in MODELS for part in ("--model", name)]
    return PlannedRun(verb=("final",), arguments=(_RUN, *models), files=((_RUN, Path(run_id)),))
