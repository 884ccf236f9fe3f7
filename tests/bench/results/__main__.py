"""`python -m tests.bench.results`: measures the methods against their targets and writes `docs/results.md`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.options import Home
from orchestrator.cli.streams import guard_streams
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import EvolvariumError
from orchestrator.sandbox.engine import Engine
from tests.bench.figures import Machine
from tests.bench.results import equations_page, page, robophd_page, shop_page, sql_page
from tests.bench.results.equations_page import MeasuredBatch, equation_checks, equation_rows, equations_section
from tests.bench.results.equations_plan import EquationTargets, planned_assessment, planned_batches
from tests.bench.results.laboratory import ROOT, Laboratory
from tests.bench.results.page import Check, MeasuredFull, MeasuredPair, check_rows, checks, demo_rows, full_rows
from tests.bench.results.pages import assembled
from tests.bench.results.plan import (
    OR_LIBRARY,
    SEEDS,
    PlannedRun,
    Targets,
    demo_arguments,
    demo_pairs,
    full_run,
)
from tests.bench.results.records import Record, Records
from tests.bench.results.robophd_page import MeasuredEvolution, robophd_checks, score_rows
from tests.bench.results.robophd_plan import RobophdTargets, planned_evolution, planned_final
from tests.bench.results.shop_page import MeasuredShop, shop_checks, shop_rows, shop_section
from tests.bench.results.shop_plan import ShopTargets, full_shop_run, shop_pair
from tests.bench.results.sql_page import MeasuredBench, accuracy_rows, sql_checks
from tests.bench.results.sql_plan import SqlTargets, missing_data, planned_benches
from tests.bench.workbench import POLICY, machine_of

PAGE = ROOT / "docs" / "results.md"
HEADINGS = (page.HEADING, shop_page.HEADING, equations_page.HEADING, sql_page.HEADING, robophd_page.HEADING)
"""Sections of the page, in order."""
DATA = Path(os.environ.get("EVOLVARIUM_DATA", ROOT.parent / "shared" / "data"))


class Part(StrEnum):
    """What can be measured by itself."""

    PACKING = "packing"
    SQL = "sql"
    ROBOPHD = "robophd"
    SHOP = "shop"
    EQUATIONS = "equations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One part of the page."""

    text: str
    checks: list[Check]


def results(
    *,
    only: Annotated[Part | None, typer.Option("--only", help="Measure one part; the others stay as they were.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Also the full run: the task's own number of commits.")] = False,
    seeds: Annotated[str, typer.Option(help="Of the demo-size runs, with commas.")] = ",".join(map(str, SEEDS)),
    commits: Annotated[
        int | None,
        typer.Option(min=1, help="Smaller runs, to try this out; the page is then only written to --page."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Fewer questions of each data set, to try this out; likewise."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(min=2, help="Another number of iterations of RoboPhD, to try this out; likewise."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure again what has been measured.")] = False,
    target_page: Annotated[Path | None, typer.Option("--page", help="Default docs/results.md.")] = None,
    home: Home = None,
) -> None:
    """Measure the methods with the command line and real containers; the exit code is 1 when a target is missed.

    Finished runs are kept in the home and not repeated, so an interrupted measurement goes on where it was.
    """
    terminal = Terminal()
    places = find_places(home, None)
    laboratory = Laboratory(home=writable_home(places), again=again, terminal=terminal)
    with Engine.connect() as engine:
        machine = _machine_line(machine_of(engine, find_policy(places, POLICY)))
    measured: dict[str, Measured | None] = dict.fromkeys(HEADINGS)
    if only in (None, Part.SQL):
        measured[sql_page.HEADING] = _sql(laboratory, machine, limit)
    if only in (None, Part.ROBOPHD):
        measured[robophd_page.HEADING] = _robophd(laboratory, machine, iterations)
    if only in (None, Part.PACKING):
        measured[page.HEADING] = _packing(laboratory, machine, list(map(int, seeds.split(","))), commits, full=full)
    if only in (None, Part.SHOP):
        measured[shop_page.HEADING] = _shop(laboratory, machine, commits, full=full)
    if only in (None, Part.EQUATIONS):
        measured[equations_page.HEADING] = _equations(laboratory, machine, commits)
    is_whole = commits is None and limit is None and iterations is None
    destination = target_page or (PAGE if is_whole else None)
    if destination is not None:
        existing = destination.read_text(encoding="utf-8") if destination.is_file() else ""
        sections = {heading: None if part is None else part.text for heading, part in measured.items()}
        destination.write_text(assembled(existing, sections), encoding="utf-8")
        terminal.note(f"written: {destination.name}")
    if not all(check.is_reached for part in measured.values() if part is not None for check in part.checks):
        raise typer.Exit(1)


def _packing(
    laboratory: Laboratory, machine: str, seeds: Sequence[int], commits: int | None, *, full: bool
) -> Measured:
    arguments = demo_arguments((ROOT / "Makefile").read_text(encoding="utf-8"))
    planned_full = _planned_full(arguments, commits, laboratory.runs, full=full)
    pairs: list[MeasuredPair] = []
    for pair in demo_pairs(arguments, seeds, commits):
        with_analysis, without = laboratory.run(pair.with_analysis), laboratory.run(pair.without_analysis)
        pairs.append(MeasuredPair(planned=pair, with_analysis=with_analysis, without_analysis=without))
        laboratory.terminal.note(demo_rows(pairs))
    measured = None
    if planned_full is not None:
        measured = MeasuredFull(planned=planned_full, record=laboratory.run(planned_full))
        laboratory.terminal.note(full_rows(measured))
    found = checks(pairs, measured, Targets())
    laboratory.terminal.note(check_rows(found))
    return Measured(text=page.section(pairs, measured, Targets(), machine), checks=found)


def _shop(laboratory: Laboratory, machine: str, commits: int | None, *, full: bool) -> Measured:
    pair = shop_pair(commits)
    with_analysis, without = laboratory.run(pair.with_analysis), laboratory.run(pair.without_analysis)
    planned = full_shop_run()
    kept = laboratory.run(planned) if full else laboratory.runs.find(planned.arguments)
    shop = MeasuredShop(
        planned=pair,
        with_analysis=with_analysis,
        without_analysis=without,
        full=None if kept is None else (planned, kept),
    )
    laboratory.terminal.note(shop_rows(shop))
    found = shop_checks(shop, ShopTargets())
    laboratory.terminal.note(check_rows(found))
    return Measured(text=shop_section(shop, ShopTargets(), machine), checks=found)


def _equations(laboratory: Laboratory, machine: str, commits: int | None) -> Measured:
    batches = []
    for planned in planned_batches(commits):
        record = laboratory.batch(planned)
        said = planned_assessment(record.document.run, planned)
        assessment = laboratory.assessment(said, record.document.run)
        batches.append(MeasuredBatch(planned=planned, record=record, planned_assessment=said, assessment=assessment))
    ours, without = batches
    laboratory.terminal.note(equation_rows(ours, without))
    found = equation_checks(ours, without, EquationTargets())
    laboratory.terminal.note(check_rows(found))
    return Measured(text=equations_section(ours, without, EquationTargets(), machine), checks=found)


def _sql(laboratory: Laboratory, machine: str, limit: int | None) -> Measured | None:
    """None: the data are not there, which is said."""
    missing = missing_data(DATA)
    if missing is not None:
        laboratory.terminal.note(f"{sql_page.HEADING} is not measured: {missing}")
        return None
    benches: list[MeasuredBench] = []
    for planned in planned_benches(DATA, limit):
        benches.append(MeasuredBench(planned=planned, record=laboratory.bench(planned.run)))
        laboratory.terminal.note(accuracy_rows(benches))
    found = sql_checks(benches, SqlTargets())
    laboratory.terminal.note(check_rows(found))
    return Measured(text=sql_page.sql_section(benches, SqlTargets(), machine), checks=found)


def _robophd(laboratory: Laboratory, machine: str, iterations: int | None) -> Measured | None:
    """None: the data are not there, which is said."""
    missing = missing_data(DATA)
    if missing is not None:
        laboratory.terminal.note(f"{robophd_page.HEADING} is not measured: {missing}")
        return None
    planned = planned_evolution(DATA, iterations)
    record = laboratory.evolution(planned)
    final = planned_final(record.document.run)
    measured = MeasuredEvolution(
        planned=planned, record=record, planned_final=final, final=laboratory.final(final, record.document.run)
    )
    laboratory.terminal.note(score_rows(measured))
    found = robophd_checks(measured, RobophdTargets())
    laboratory.terminal.note(check_rows(found))
    return Measured(text=robophd_page.robophd_section(measured, RobophdTargets(), machine), checks=found)


def _planned_full(
    arguments: Sequence[str], commits: int | None, records: Records[Record], *, full: bool
) -> PlannedRun | None:
    """The full run, if it is asked for or was measured before; the page then keeps it."""
    if not full and not (DATA / OR_LIBRARY).is_file():
        return None
    planned = full_run(arguments, DATA, commits)
    return planned if full or records.find(planned.arguments) is not None else None


def _machine_line(machine: Machine) -> str:
    return (
        f"{machine.processors} processors with Docker Engine {machine.engine}, runtime {machine.runtime}, "
        f"Python {machine.python}"
    )


def main() -> None:
    """Entry point."""
    guard_streams()
    try:
        typer.run(results)
    except EvolvariumError as error:
        Terminal().note(f"results: {error}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
