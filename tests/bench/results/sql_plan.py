"""Which benches of Text-to-SQL are measured, and what they are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.results.plan import PlannedRun

QUESTIONS: Mapping[str, int] = {"spider": 556, "bird": 129}
"""Layout to the number of questions in its folder of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTargets:
    """What EvoSQL is held to."""

    gold_percent: float = 100.0
    """Of the evaluable questions whose gold query is right when it is judged like a prediction."""
    points_over_majority: float = 0.0
    """In strict and in BIRD accuracy, on each data set."""
    repaired: int = 10
    """Questions of all data sets without a right candidate in the first round that are right in the end (strict)."""
    minutes: float = 60.0
    """Of all benches together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBench:
    """`sql bench` on one data set."""

    name: str
    questions: int
    """That it must have."""
    run: PlannedRun


def missing_data(data: Path) -> str | None:
    """What keeps the benches from being made, and the way out; None: nothing."""
    missing = [name for name in QUESTIONS if not (data / name / "dev.json").is_file()]
    if not missing:
        return None
    return f"there is no {str(data / missing[0] / 'dev.json')!r}; set EVOLVARIUM_DATA to the folder of {missing[0]!r}"


def planned_benches(data: Path, limit: int | None) -> list[PlannedBench]:
    """All methods on all questions of every data set, with the default settings.

    Args:
        data: Holds the folders of the data sets.
        limit: At most so many questions of each; None: all.
    """
    benches = []
    for name, count in QUESTIONS.items():
        root = f"DIR/{name}"  # the command as one types it, whatever the folder is called here
        arguments = ("--dataset", name, "--root", root, *(() if limit is None else ("--limit", str(limit))))
        run = PlannedRun(verb=("sql", "bench"), arguments=arguments, files=((root, data / name),))
        benches.append(PlannedBench(name=name, questions=min(count, limit or count), run=run))
    return benches
