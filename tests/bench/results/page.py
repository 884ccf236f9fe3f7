"""The measured runs of bin packing as tables, and as their section of `docs/results.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.cli.terminal import Rows
from tests.bench.results.plan import DemoPair, PlannedRun, Targets
from tests.bench.results.records import SEARCHED_SPLIT, Record

HEADING = "Bin packing"
_INTRODUCTION = """\
AgenticEvolve on the task `online_bin_packing`. Every figure is the excess of bins over the L2 lower bound in percent,
lower is better, measured by the sealed evaluator. *Hidden* is the set of 100 sequences that guides the search, *fresh*
another 100 that no search has seen. Both come from the published seed (`--public-seed`), so that anybody gets the same
ones; the model is `offline`, which costs nothing and whose runs are repeatable from their seed.
"""
_OR1 = "*OR1* is the 20 instances u120 of the OR-Library, which no search has seen either.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPair:
    """`make demo` with one seed."""

    planned: DemoPair
    with_analysis: Record
    without_analysis: Record

    def points(self, split: str) -> float | None:
        """How much worse the run without analyses is, in percentage points; None: one of them has no score."""
        ours, theirs = self.with_analysis.best(split), self.without_analysis.best(split)
        return None if ours is None or theirs is None else theirs - ours

    @property
    def minutes(self) -> float:
        """Of both runs together."""
        return self.with_analysis.minutes + self.without_analysis.minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFull:
    """The full run."""

    planned: PlannedRun
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One target and what came of it."""

    what: str
    target: str
    figure: float | None
    is_reached: bool


def demo_rows(pairs: Sequence[MeasuredPair]) -> Rows:
    """Every seed with and without analyses."""
    columns = [
        "seed", "Best Fit hidden", "hidden", "hidden, no analysis", "points", "fresh", "fresh, no analysis", "points",
        "evaluations", "minutes",
    ]  # fmt: skip
    rows = []
    for pair in pairs:
        scores = [pair.with_analysis.initial(SEARCHED_SPLIT)]
        for split in (SEARCHED_SPLIT, "fresh"):
            scores += [pair.with_analysis.best(split), pair.without_analysis.best(split), pair.points(split)]
        evaluations = f"{pair.with_analysis.document.evaluations} + {pair.without_analysis.document.evaluations}"
        rows.append([pair.planned.seed, *map(two_digits, scores), evaluations, f"{pair.minutes:.1f}"])
    return Rows(title="Demo size, with and without analysis", columns=columns, rows=rows)


def full_rows(full: MeasuredFull) -> Rows:
    """Best Fit and the best of the full run on every split."""
    record = full.record
    splits = (SEARCHED_SPLIT, "fresh", "or1")
    best = record.document.best
    rows: list[list[object]] = [
        ["Best Fit", *(two_digits(record.initial(split)) for split in splits), None, None],
        [
            "none" if best is None else best.id,
            *(two_digits(record.best(split)) for split in splits),
            record.document.evaluations,
            f"{record.minutes:.1f}",
        ],
    ]
    columns = ["candidate", "hidden", "fresh", "OR1", "evaluations", "minutes"]
    return Rows(title="Full run", columns=columns, rows=rows)


def checks(pairs: Sequence[MeasuredPair], full: MeasuredFull | None, targets: Targets) -> list[Check]:
    """Every target, against the worst of the seeds."""
    found: list[Check] = []
    if pairs:
        worst = "the worst seed"
        for split, most in (
            (SEARCHED_SPLIT, targets.demo_hidden_percent),
            ("fresh", targets.demo_fresh_percent),
        ):
            figures = [pair.with_analysis.best(split) for pair in pairs]
            found.append(at_most(f"demo, {split}, {worst}", figures, most, "%"))
        points = [pair.points(SEARCHED_SPLIT) for pair in pairs]
        found.append(_at_least(f"demo, without analysis worse by, {worst}", points, targets.demo_points))
        minutes = [pair.minutes for pair in pairs]
        found.append(at_most("demo, both runs, the slowest seed", minutes, targets.demo_minutes, "min"))
    if full is not None:
        record = full.record
        found.append(at_most("full run, hidden", [record.best(SEARCHED_SPLIT)], targets.full_hidden_percent, "%"))
        found.append(at_most("full run, OR1", [record.best("or1")], targets.full_or1_percent, "%"))
        found.append(at_most("full run", [record.minutes], targets.full_minutes, "min"))
    return found


def check_rows(found: Sequence[Check]) -> Rows:
    """Targets as a table."""
    rows = [
        [c.what, c.target, c.figure if isinstance(c.figure, int) else two_digits(c.figure), c.is_reached] for c in found
    ]
    return Rows(title="Targets", columns=["what", "target", "figure", "reached"], rows=rows)


def section(pairs: Sequence[MeasuredPair], full: MeasuredFull | None, targets: Targets, machine: str) -> str:
    """The text below its heading.

    Args:
        pairs: At least one.
        full: None: it was not measured.
        targets: What the figures are held to.
        machine: Where they were measured, without any name.
    """
    records = [record for pair in pairs for record in (pair.with_analysis, pair.without_analysis)]
    commands = [plan.command for pair in pairs for plan in (pair.planned.with_analysis, pair.planned.without_analysis)]
    parts = [_INTRODUCTION, check_rows(checks(pairs, full, targets)).markdown()]
    parts.append(
        demo_rows(pairs).markdown() + "\n*Points* says by how many percentage points the run without is worse.\n"
    )
    if full is not None:
        records.append(full.record)
        commands.append(full.planned.command)
        parts.append(full_rows(full).markdown() + "\n" + _OR1)
    else:
        parts.append("The full run was not measured this time: `python -m tests.bench.results --full` does.\n")
    versions = ", ".join(sorted({record.version for record in records}))
    parts.append(f"## How\n\nMeasured on {machine}, at {versions}. Minutes are wall time of the whole command.\n")
    parts.append("```\n" + "\n".join(commands) + "\n```\n")
    return "\n".join(parts)


def two_digits(value: float | None) -> str | None:
    """A figure as it is shown; None stays None."""
    return None if value is None else f"{value:.2f}"


def at_most(what: str, figures: Sequence[float | None], most: float, unit: str) -> Check:
    """Whether the largest figure is within a limit; a missing one is not."""
    worst = None if None in figures else max(figure for figure in figures if figure is not None)
    is_reached = worst is not None and worst <= most
    return Check(what=what, target=f"at most {most:g} {unit}", figure=worst, is_reached=is_reached)


def _at_least(what: str, figures: Sequence[float | None], least: float) -> Check:
    worst = None if None in figures else min(figure for figure in figures if figure is not None)
    is_reached = worst is not None and worst >= least
    return Check(what=what, target=f"at least {least:g} points", figure=worst, is_reached=is_reached)
