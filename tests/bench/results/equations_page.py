"""The measured searches for equations as tables, and as their section of `docs/results.md`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from orchestrator.cli.batch_documents import AssessedRun
from orchestrator.cli.terminal import Rows
from tests.bench.results.equations_plan import EquationTargets
from tests.bench.results.page import Check, check_rows
from tests.bench.results.plan import PlannedRun
from tests.bench.results.records import AssessmentRecord, BatchRecord

HEADING = "Symbolic regression"
RECOVERED = ("exact", "negligible-extra-terms")
_INTRODUCTION = """\
AgenticEvolve on the twelve problems of `symbolic_regression`, which are regenerated, not the benchmark's own files. The
final equation of each is chosen on the training set by the rule `exact`, its constants are fitted there, and SymPy
compares its structure with the law's, in a sandbox. An equation is *recovered* if it is exact or has negligible extra
terms beside the law. MatSci11's true law is not identifiable; it is judged by the form with four powers that made its
data, and counted apart. The model is `offline`: terms from the allowed operators, sparse regression, scans of
frequencies and numeric fits in its analyses. Its operators are general, but they were developed with these twelve laws
in view, so the number of recovered ones is no forecast for others.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBatch:
    """All equations once, and what is said of them."""

    planned: PlannedRun
    record: BatchRecord
    planned_assessment: PlannedRun
    assessment: AssessmentRecord

    @property
    def recovered(self) -> list[str]:
        """The tasks whose law was recovered, in order; MatSci11 is among them only if it is judged by its own law."""
        return [run.task for run in self.assessment.document.runs if structure(run) in RECOVERED]


def structure(run: AssessedRun) -> str:
    """What is said of an equation; a limit that its assessment met, if it met one."""
    found = (run.assessment or {}).get("structure")
    return str(found) if found is not None else (run.not_assessed or "no score")


def equation_rows(ours: MeasuredBatch, without: MeasuredBatch) -> Rows:
    """A line for each equation."""
    columns = ["equation", "structure", "nodes", "training", "in domain", "out of domain", "evaluations",
               "without analysis", "its training"]  # fmt: skip
    evaluations = {member.task: member.evaluations for member in ours.record.document.members}
    others = {run.task: run for run in without.assessment.document.runs}
    rows: list[list[object]] = []
    for run in ours.assessment.document.runs:
        other = others.get(run.task)
        nodes = (run.assessment or {}).get("nodes")
        errors = [_error(run, split) for split in ("train", "in_domain", "out_of_domain")]
        rest = (None, None) if other is None else (structure(other), _error(other, "train"))
        rows.append([run.task.rpartition("/")[2], structure(run), nodes, *errors, evaluations.get(run.task), *rest])
    return Rows(title="Equations", columns=columns, rows=rows)


def equation_checks(ours: MeasuredBatch, without: MeasuredBatch, targets: EquationTargets) -> list[Check]:
    """Every target."""
    of = len(ours.assessment.document.runs)
    fewer = len(ours.recovered) - len(without.recovered)
    return [
        Check(
            what="recovered laws",
            target=f"at least {targets.recovered} of {of}",
            figure=len(ours.recovered),
            is_reached=len(ours.recovered) >= targets.recovered,
        ),
        Check(
            what="without analysis fewer by",
            target=f"at least {targets.fewer_without_analysis}",
            figure=fewer,
            is_reached=fewer >= targets.fewer_without_analysis,
        ),
    ]


def equations_section(ours: MeasuredBatch, without: MeasuredBatch, targets: EquationTargets, machine: str) -> str:
    """The text below its heading.

    Args:
        ours: With analyses.
        without: The same without.
        targets: What the figures are held to.
        machine: Where they were measured, without any name.
    """
    kinds = Counter(map(structure, ours.assessment.document.runs))
    versions = ", ".join(sorted({ours.record.version, without.record.version}))
    minutes = f"{ours.record.minutes:.1f} minutes with analyses and {without.record.minutes:.1f} without"
    commands = [plan.command for one in (ours, without) for plan in (one.planned, one.planned_assessment)]
    return "\n".join(
        [
            _INTRODUCTION,
            check_rows(equation_checks(ours, without, targets)).markdown(),
            equation_rows(ours, without).markdown(),
            "In all: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()) + ".\n",
            f"## How\n\nMeasured on {machine}, at {versions}; {minutes}, wall time.\n",
            "```\n" + "\n".join(commands) + "\n```\n",
        ]
    )


def _error(run: AssessedRun, split: str) -> str | None:
    values = {one.split: one.value for one in run.splits}
    value = values.get(split)
    return None if value is None else f"{value:.1e}"
