"""`evolvarium runs` and `evolvarium show`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places
from orchestrator.bootstrap.runs import SQL_BENCH, SQL_SWEEP, find_run, kind_of, run_store
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.cli.documents import RemovedRunsDocument, RunsDocument
from orchestrator.cli.files import write_tree
from orchestrator.cli.history import find_candidate, read_view
from orchestrator.cli.options import Force, Home, Json, Output, RunName
from orchestrator.cli.sql_summaries import bench_document
from orchestrator.cli.sql_sweep import show_sweep
from orchestrator.cli.sql_tables import bench_parts
from orchestrator.cli.summaries import (
    candidate_document,
    candidate_rows,
    file_texts,
    run_document,
    run_entry,
    run_parts,
    runs_rows,
)
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import Cancelled, InputError
from orchestrator.ports import Journal

runs_app = typer.Typer(help="List and remove runs.", no_args_is_help=True, rich_markup_mode=None)


@runs_app.command("list")
def list_runs(home: Home = None, as_json: Json = False) -> None:
    """List all runs, oldest first."""
    store = run_store(existing_places(home))
    document = RunsDocument(runs=[run_entry(store, info) for info in store.list()])
    Terminal(as_json=as_json).result(document, runs_rows(document))


@runs_app.command("remove")
def remove_runs(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of ids, `latest` or `previous`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needed where stdin is no terminal.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remove runs and all they recorded; the audit chain keeps its records of them.

    `latest` and `previous` are the newest run and the one before it, whoever started them.
    """
    store = run_store(existing_places(home))
    found = list(dict.fromkeys(find_run(store, name) for name in runs))
    if not yes:
        _confirm(found)
    for run_id in found:
        store.remove(run_id)
    Terminal(as_json=as_json).result(RemovedRunsDocument(removed=found), f"removed {', '.join(found)}")


def _confirm(run_ids: Sequence[str]) -> None:
    what = f"runs {', '.join(run_ids)}" if len(run_ids) > 1 else f"run {run_ids[0]}"
    if not sys.stdin.isatty():
        msg = f"{what} would be removed for good; confirm it with --yes"
        raise InputError(msg)
    if not typer.confirm(f"Remove {what} for good?", err=True):
        msg = "nothing was removed"
        raise Cancelled(msg)


def show(
    run: RunName,
    candidate: Annotated[
        str | None, typer.Argument(metavar="ID", help="A candidate's id, `best` or `initial`.", show_default=False)
    ] = None,
    output: Output = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show a run, or one of its candidates; of a Text-to-SQL bench or sweep, its tables.

    With -o the candidate's program is written to a file, byte for byte; a candidate of several files to a folder.
    Without ID, -o writes the best; of a sweep, it writes table and plot into a folder.
    """
    asked = candidate
    if output is not None and candidate is None:
        candidate = "best"
    store = run_store(existing_places(home))
    run_id = find_run(store, run)
    terminal = Terminal(as_json=as_json)
    with store.open(run_id, read_only=True) as journal:
        if kind_of(journal) == SQL_BENCH:
            _show_bench(terminal, run_id, journal, {"ID": asked, "-o": output})
            return
        if kind_of(journal) == SQL_SWEEP:
            _refuse(run_id, "sweep", {"ID": asked})
            show_sweep(terminal, run_id, journal, output, force=force)
            return
        view = read_view(run_id, journal)
        if candidate is None:
            document = run_document(view)
            terminal.result(document, *run_parts(view, document))
            return
        entry = find_candidate(view, candidate)
        written = None if output is None else write_tree(entry.candidate.payload, output, force=force)
        shown = candidate_document(view, entry, written_to=None if written is None else str(written))
        if not as_json:
            terminal.note(candidate_rows(view, entry))
        terminal.result(shown, *([f"written to {written}"] if written is not None else file_texts(entry)))


def _show_bench(terminal: Terminal, run_id: str, journal: Journal, given: Mapping[str, object]) -> None:
    _refuse(run_id, "bench", given)
    document = bench_document(read_bench(run_id, journal))
    terminal.result(document, *bench_parts(document))


def _refuse(run_id: str, kind: str, given: Mapping[str, object]) -> None:
    """Refuse what only runs with candidates have."""
    excess = [name for name, value in given.items() if value is not None]
    if excess:
        msg = f"run {run_id} is a Text-to-SQL {kind}, which is shown as a whole; leave out {', '.join(excess)}"
        raise InputError(msg)
