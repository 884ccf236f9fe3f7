"""The measured searches of the dynamic job shop as tables, and as their section of `docs/results.md`."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.cli.terminal import Rows
from tests.bench.results.page import Check, at_most, check_rows, two_digits
from tests.bench.results.plan import DemoPair, PlannedRun
from tests.bench.results.records import SEARCHED_SPLIT, Record
from tests.bench.results.shop_plan import ShopTargets

HEADING = "Dynamic job shop"
QUALITY = "tardiness_ratio"
SPLITS = (SEARCHED_SPLIT, "fresh")
_INTRODUCTION = """\
AgenticEvolve on the task `dynamic_job_shop`: five scenarios with ten seeds each. Every figure is the geometric mean of
the scenarios' mean tardiness, each divided by that of a reference rule on the same seeds; lower is better. **The
reference is 2 PT + WINQ + NPT (Rajendran and Holthaus 1999). The paper divides by another rule, which is not available
to us, so these figures cannot be compared with the paper's**; rankings are not affected. Shortest processing time, the
initial program, stands beside them. *Hidden* guides the search, *fresh* is fifty simulations that no search has seen;
both come from the published seed, and the model is `offline`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShop:
    """The pair of searches, and the full run if there is one."""

    planned: DemoPair
    with_analysis: Record
    without_analysis: Record
    full: tuple[PlannedRun, Record] | None = None

    @property
    def runs(self) -> list[tuple[str, PlannedRun, Record]]:
        """Name, command and record of each."""
        runs = [
            ("with analyses", self.planned.with_analysis, self.with_analysis),
            ("without analyses", self.planned.without_analysis, self.without_analysis),
        ]
        return runs if self.full is None else [*runs, ("full run", *self.full)]

    def difference(self, split: str) -> float | None:
        """How much worse the run without analyses is; None: one of them has no score."""
        ours, theirs = self.with_analysis.best(split, QUALITY), self.without_analysis.best(split, QUALITY)
        return None if ours is None or theirs is None else theirs - ours


def shop_rows(measured: MeasuredShop) -> Rows:
    """Shortest processing time and the best of every search on both sets."""
    columns = ["search", *SPLITS, "evaluations", "analyses", "minutes"]
    spt = [two_digits(measured.with_analysis.initial(split, QUALITY)) for split in SPLITS]
    rows: list[list[object]] = [["shortest processing time", *spt, None, None, None]]
    for name, _, record in measured.runs:
        figures = [two_digits(record.best(split, QUALITY)) for split in SPLITS]
        document = record.document
        rows.append([name, *figures, document.evaluations, document.analyses, f"{record.minutes:.1f}"])
    return Rows(title="Searches", columns=columns, rows=rows)


def shop_checks(measured: MeasuredShop, targets: ShopTargets) -> list[Check]:
    """Every target."""
    found = []
    for split, most in zip(SPLITS, (targets.hidden_ratio, targets.fresh_ratio), strict=True):
        found.append(at_most(f"with analyses, {split}", [measured.with_analysis.best(split, QUALITY)], most, "of it"))
    for split in SPLITS:
        worse = measured.difference(split)
        least = targets.without_analysis_ratio
        found.append(
            Check(
                what=f"without analysis worse by, {split}",
                target=f"at least {least:g}",
                figure=worse,
                is_reached=worse is not None and worse >= least,
            )
        )
    if measured.full is not None:
        for split, most in zip(SPLITS, (targets.hidden_ratio, targets.fresh_ratio), strict=True):
            figure = measured.full[1].best(split, QUALITY)
            found.append(at_most(f"full run, {split}", [figure], most, "of it"))
    return found


def shop_section(measured: MeasuredShop, targets: ShopTargets, machine: str) -> str:
    """The text below its heading.

    Args:
        measured: Of the searches.
        targets: What the figures are held to.
        machine: Where they were measured, without any name.
    """
    versions = ", ".join(sorted({record.version for _, _, record in measured.runs}))
    commands = "\n".join(plan.command for _, plan, _ in measured.runs)
    return "\n".join(
        [
            _INTRODUCTION,
            check_rows(shop_checks(measured, targets)).markdown(),
            shop_rows(measured).markdown(),
            f"## How\n\nMeasured on {machine}, at {versions}. Minutes are wall time of the whole command.\n",
            f"```\n{commands}\n```\n",
        ]
    )
