"""`python -m tests.bench.results`: measures the methods against their targets and writes `docs/results.md`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.documents import RunDocument
from orchestrator.cli.options import Home
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import EvolvariumError
from orchestrator.sandbox.engine import Engine
from tests.bench.figures import Machine
from tests.bench.results.page import (
    MeasuredFull,
    MeasuredPair,
    check_rows,
    checks,
    demo_rows,
    full_rows,
    page,
)
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
from tests.bench.workbench import POLICY, machine_of

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "results.md"
DATA = Path(os.environ.get("EVOLVARIUM_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """Makes runs, each once."""

    home: Path
    records: Records
    again: bool
    terminal: Terminal

    def measured(self, planned: PlannedRun) -> Record:
        """The record of a run, which is made now if there is none.

        Raises:
            EvolvariumError: The run failed; those before it are kept.
        """
        record = None if self.again else self.records.find(planned.arguments)
        if record is not None:
            self.terminal.note(f"kept: {planned.command}")
            return record
        self.terminal.note(f"running: {planned.command}")
        record = _run(planned, self.home)
        self.records.keep(record)
        return record


def results(
    full: Annotated[bool, typer.Option("--full", help="Also the full run: the task's own number of commits.")] = False,
    seeds: Annotated[str, typer.Option(help="Of the demo-size runs, with commas.")] = ",".join(map(str, SEEDS)),
    commits: Annotated[
        int | None,
        typer.Option(min=1, help="Smaller runs, to try this out; the page is then only written to --page."),
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
    laboratory = Laboratory(
        home=writable_home(places), records=Records(places.home / "results"), again=again, terminal=terminal
    )
    with Engine.connect() as engine:
        machine = machine_of(engine, find_policy(places, POLICY))
    arguments = demo_arguments((ROOT / "Makefile").read_text(encoding="utf-8"))
    planned_full = _planned_full(arguments, commits, laboratory.records, full=full)
    pairs: list[MeasuredPair] = []
    for pair in demo_pairs(arguments, map(int, seeds.split(",")), commits):
        with_analysis, without = laboratory.measured(pair.with_analysis), laboratory.measured(pair.without_analysis)
        pairs.append(MeasuredPair(planned=pair, with_analysis=with_analysis, without_analysis=without))
        terminal.note(demo_rows(pairs))
    measured = None
    if planned_full is not None:
        measured = MeasuredFull(planned=planned_full, record=laboratory.measured(planned_full))
        terminal.note(full_rows(measured))
    found = checks(pairs, measured, Targets())
    terminal.note(check_rows(found))
    destination = target_page or (PAGE if commits is None else None)
    if destination is not None:
        destination.write_text(page(pairs, measured, Targets(), _machine_line(machine)), encoding="utf-8")
        terminal.note(f"written: {destination.name}")
    if not all(check.is_reached for check in found):
        raise typer.Exit(1)


def _planned_full(arguments: Sequence[str], commits: int | None, records: Records, *, full: bool) -> PlannedRun | None:
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


def _run(planned: PlannedRun, home: Path) -> Record:
    """Make a run by the command itself; its progress goes to stderr.

    Raises:
        EvolvariumError: It failed; it has said why.
    """
    command = [str(Path(sys.executable).with_name("evolvarium")), "run", *planned.argv(), "--json", "--home", str(home)]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            printed, _ = process.communicate()
        except BaseException:  # an interrupt reaches the run, too, and it needs time to remove its containers
            process.wait()
            raise
    seconds = time.monotonic() - began
    if process.returncode:
        code = process.returncode
        msg = f"`{planned.command}` ended with exit code {code}; start again when it is mended, what is done is kept"
        raise EvolvariumError(msg)
    document = RunDocument.model_validate_json(printed.splitlines()[-1])
    return Record(arguments=planned.arguments, version=_version(), wall_seconds=seconds, document=document)


def _version() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"commit {done.stdout.strip()}"


def main() -> None:
    """Entry point."""
    try:
        typer.run(results)
    except EvolvariumError as error:
        Terminal().note(f"results: {error}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
