"""`python -m tests.bench`: every number that the sandbox is held to, measured in one run."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.options import Home
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.streams import guard_streams
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import EvolvariumError
from orchestrator.evaluation.tasks import load_task
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.engine import Engine
from tests.bench.analysing import containers_per_minute, first_instruction
from tests.bench.evaluating import JOB_SHOP, evaluation_ratio, job_shop_ratio
from tests.bench.figures import BenchDocument, Figure
from tests.bench.killing import containers_after_a_kill
from tests.bench.misusing import deadline_overrun, memory_growth
from tests.bench.querying import query_in_a_batch
from tests.bench.workbench import POLICY, machine_of, open_workbench


def bench(
    pairs: Annotated[int, typer.Option(min=1, help="Sealed and plain evaluations, taken in turn.")] = 15,
    samples: Annotated[int, typer.Option(min=1, help="Analyses whose first instruction is timed.")] = 20,
    seconds: Annotated[float, typer.Option(min=1, help="How long containers are made and removed.")] = 30.0,
    home: Home = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure what the sandbox costs; the exit code is 1 when a target is missed."""
    terminal = Terminal(as_json=as_json)
    places = find_places(home, None)
    with Engine.connect() as engine:
        machine = machine_of(engine, find_policy(places, POLICY))
    figures = []
    with stoppable() as token, tempfile.TemporaryDirectory(prefix="evolvarium-bench-") as folder:
        for figure in _figures(places, Path(folder), token, terminal.note, pairs, samples, seconds):
            terminal.note(f"{figure.what}: {figure.value:.3g} {figure.unit}, {figure.status.value}")
            figures.append(figure)
    document = BenchDocument(machine=machine, figures=figures)
    terminal.result(document, document.rows())
    if document.has_miss:
        raise typer.Exit(1)


def _figures(
    places: Places,
    folder: Path,
    token: CancelToken,
    note: Callable[[str], None],
    pairs: int,
    samples: int,
    seconds: float,
) -> Iterator[Figure]:
    run_id = f"bench-{secrets.token_hex(6)}"
    with open_workbench(places, folder, run_id, token, note) as bench:
        yield memory_growth(bench)  # first, while nothing else has grown this process
        yield first_instruction(bench, samples)
        yield from evaluation_ratio(bench, folder, pairs)
        shop = folder / JOB_SHOP
        shop.mkdir()
        yield job_shop_ratio(replace(bench, task=load_task(places.task(JOB_SHOP))), shop, pairs)
        yield query_in_a_batch(bench, folder, pairs)
        yield containers_per_minute(bench, seconds, len(os.sched_getaffinity(0)))
        yield deadline_overrun(bench)
        state = folder / "killed"
        state.mkdir()
        yield containers_after_a_kill(bench.engine, places.home, state)


def main() -> None:
    """Entry point."""
    guard_streams()
    try:
        typer.run(bench)
    except EvolvariumError as error:
        Terminal().note(f"bench: {error}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
