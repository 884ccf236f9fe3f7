"""`evolvarium runs` and `evolvarium show`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places
from orchestrator.bootstrap.runs import BATCH, EVOLUTION, SQL_BENCH, SQL_SWEEP, find_run, in_words, kind_of, run_store
from orchestrator.cli.batches import show_batch
from orchestrator.cli.documents import RemovedRunsDocument, RunsDocument
from orchestrator.cli.files import write_tree
from orchestrator.cli.history import RunView, find_candidate, read_view
from orchestrator.cli.options import Choice, Force, Home, Json, Output, RunName
from orchestrator.cli.run_entries import run_entry, runs_rows
from orchestrator.cli.sql_evolve import show_evolution
from orchestrator.cli.sql_question_summaries import Which
from orchestrator.cli.sql_showing import show_bench
from orchestrator.cli.sql_sweep import show_sweep
from orchestrator.cli.states import pauses
from orchestrator.cli.summaries import (
    candidate_document,
    candidate_rows,
    file_texts,
    run_document,
    run_parts,
)
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import Cancelled, InputError

runs_app = typer.Typer(help="List and remove runs.", no_args_is_help=True, rich_markup_mode=None)


@runs_app.command("list")
def list_runs(home: Home = None, as_json: Json = False) -> None:
    """List all runs, oldest first."""
    store = run_store(existing_places(home))
    document = RunsDocument(runs=[run_entry(store, info) for info in store.list()])
    Terminal(as_json=as_json).result(document, runs_rows(document), *pauses(document.runs))


@runs_app.command("remove")
def remove_runs(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of ids, `latest` or `previous`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needed where stdin is no terminal.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remove runs and all they recorded; the audit chain keeps its records of them, and of a batch the members stay.

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


def show(  # noqa: PLR0913 - one parameter per option
    run: RunName,
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A candidate's id, `best` or `initial`; of a Text-to-SQL bench, a question's id; of an evolution, a "
            "package's id or `best`.",
            show_default=False,
        ),
    ] = None,
    *,
    questions: Annotated[
        Which | None,
        typer.Option(help="Of a Text-to-SQL bench: list these questions, each in a line.", show_default=False),
    ] = None,
    gold: Annotated[
        bool,
        typer.Option("--gold", help="Of a bench's question: also its gold query, from the data set, and its rows."),
    ] = False,
    choice: Choice = None,
    output: Output = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show a run, or one of its candidates; of a Text-to-SQL bench or sweep, its tables, and a bench's questions.

    Of a batch of searches it shows a line for each member; of an evolution contests, packages and what was spent, or
    one package with its files.

    With -o the candidate's program is written to a file, byte for byte; a candidate of several files to a folder.
    Without ID, -o writes the best; of a sweep, it writes table and plot into a folder.
    """
    store = run_store(existing_places(home))
    run_id = find_run(store, run)
    terminal = Terminal(as_json=as_json)
    of_bench = {"--questions": questions, "--gold": gold or None}
    of_search = {} if choice is None else {"--choice": choice}
    with store.open(run_id, read_only=True) as journal:
        kind = kind_of(journal)
        if kind == SQL_BENCH:
            _refuse(run_id, kind, {"-o": output, **of_search})
            show_bench(terminal, run_id, journal, question=candidate, which=questions, with_gold=gold)
        elif kind == SQL_SWEEP:
            _refuse(run_id, kind, {"ID": candidate, **of_bench, **of_search})
            show_sweep(terminal, run_id, journal, output, force=force)
        elif kind == EVOLUTION:
            _refuse(run_id, kind, {**of_bench, **of_search})
            show_evolution(terminal, run_id, journal, package=candidate, output=output)
        elif kind == BATCH:
            _refuse(run_id, kind, {"ID": candidate, "-o": output, **of_bench})
            show_batch(terminal, store, run_id, journal, choice)
        else:
            _refuse(run_id, kind, of_bench)
            _show_search(terminal, read_view(run_id, journal, choice=choice), candidate, output, force=force)


def _show_search(terminal: Terminal, view: RunView, candidate: str | None, output: Path | None, *, force: bool) -> None:
    if candidate is None and output is None:
        document = run_document(view)
        terminal.result(document, *run_parts(view, document))
        return
    entry = find_candidate(view, candidate or "best")
    written = None if output is None else write_tree(entry.candidate.payload, output, force=force)
    shown = candidate_document(view, entry, written_to=None if written is None else str(written))
    if not terminal.as_json:
        terminal.note(candidate_rows(view, entry))
    terminal.result(shown, *([f"written to {written}"] if written is not None else file_texts(entry)))


def _refuse(run_id: str, kind: str, given: Mapping[str, object]) -> None:
    """Refuse what only runs of another kind have."""
    excess = [name for name, value in given.items() if value is not None]
    if excess:
        msg = f"run {run_id} is {in_words(kind)}, which has nothing of the kind; leave out {', '.join(excess)}"
        raise InputError(msg)
