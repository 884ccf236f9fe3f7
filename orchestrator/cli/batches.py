"""What `run --all`, `resume`, `show` and `report` do with a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from orchestrator.bootstrap.batch_records import BatchHeader, read_header
from orchestrator.bootstrap.batches import BatchEnded, BatchWatch, begin_batch, resume_batch
from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import run_store
from orchestrator.bootstrap.search import Watch
from orchestrator.cli.batch_documents import BatchReportDocument
from orchestrator.cli.batch_summaries import batch_document, batch_notes, batch_rows, member_views
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.history import RunView
from orchestrator.cli.progress import followed
from orchestrator.cli.search_endings import explained_search
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal, inert, json_line, one_line
from orchestrator.errors import BudgetExhausted, EvolvariumError, InputError
from orchestrator.evaluation.tasks import family_folder
from orchestrator.ports import Journal
from orchestrator.search.final_choice import Rule
from orchestrator.storage.runs import RunStore

_PAGE, _DOCUMENT = "report.md", "report.json"


def require_a_task(places: Places, name: str) -> None:
    """See that a name is a task's where no --all was given.

    Raises:
        InputError: It is none; of a family, the message says that --all runs every member.
    """
    try:
        places.task(name)
    except InputError as error:
        if family_folder(name, places.task_roots) is None:
            raise
        msg = f"{error}; or run all with --all"
        raise InputError(msg) from error


def run_all(
    places: Places, choices: Choices, settings: Mapping[str, Any], *, as_json: bool, run_id_file: Path | None
) -> None:
    """Run every member of a family, and end with a table of all of them."""
    _follow(places, as_json, lambda watch: begin_batch(places, choices, settings, watch), run_id_file)


def resume(
    places: Places, name: str, access: GivenAccess, *, as_json: bool, accept_policy_change: bool = False
) -> None:
    """Go on with a batch; ends like `run --all`."""
    _follow(
        places,
        as_json,
        lambda watch: resume_batch(places, name, watch, accept_policy_change=accept_policy_change, given=access),
    )


def show_batch(terminal: Terminal, store: RunStore, run_id: str, journal: Journal, choice: Rule | None) -> None:
    """Print a batch again.

    Raises:
        RunStateError: It is damaged.
        InputError: A task declares nothing that the rule could choose by.
    """
    document = batch_document(store, run_id, journal, choice=choice)
    terminal.result(document, *batch_rows(document), *batch_notes(document))


def report_batch(
    terminal: Terminal,
    store: RunStore,
    run_id: str,
    journal: Journal,
    output: Path | None,
    write: Callable[[RunView, Path], list[Path]],
    *,
    choice: Rule | None,
    force: bool,
) -> None:
    """Print a batch, and write its table and a report of each member.

    Args:
        terminal: For the result.
        store: Holds the runs.
        run_id: Of the batch.
        journal: Of the batch.
        output: Folder to write to; None: nothing is written.
        write: Writes the report of a run to a folder; gives its files.
        choice: The rule of the final choice; None: each task's.
        force: Overwrite what is there.

    Raises:
        InputError: Something cannot be written, or a task declares nothing that the rule could choose by.
        RunStateError: It is damaged.
    """
    batch = batch_document(store, run_id, journal, choice=choice)
    tables = batch_rows(batch)
    if output is None:
        terminal.result(BatchReportDocument(batch=batch, files=[]), *tables, *batch_notes(batch))
        return
    page, whole = output / _PAGE, output / _DOCUMENT
    for path in (page, whole):
        require_target(path, force=force)
    written = [page, whole]
    views = member_views(store, read_header(run_id, journal), journal, choice)
    for view in [view for _, view in views if isinstance(view, RunView)]:
        name = view.history.header["task"]["name"].rpartition("/")[2]
        written += write(view, output / name)
    document = BatchReportDocument(batch=batch, files=[str(path) for path in written])
    write_text(page, _text(batch.family, tables), force=force)
    write_text(whole, json_line(document) + "\n", force=force)
    terminal.result(document, *tables, *batch_notes(batch), f"written to {output}")


def _text(family: str, tables: list[Rows]) -> str:
    return inert("\n".join([f"# Report on {one_line(family, 80)}\n", *(table.markdown() for table in tables)]))


def _follow(
    places: Places, as_json: bool, work: Callable[[BatchWatch], BatchEnded], run_id_file: Path | None = None
) -> None:
    """Work through the members, show progress, print the final object, and exit as they ended."""
    terminal = Terminal(as_json=as_json)
    started: list[str] = []
    try:
        with followed(terminal, places) as progress, stoppable() as token:

            def on_start(run_id: str, header: BatchHeader) -> None:
                started.append(run_id)
                if run_id_file is not None:
                    write_text(run_id_file, f"{run_id}\n", force=True)  # that of an earlier run is replaced
                progress.note(f"batch {run_id}: {len(header.members)} members of {header.family}, one after the other")

            search = Watch(
                token=token,
                on_start=progress.start,
                on_event=progress.event,
                note=progress.note,
                on_work=progress.work,
            )
            ended = work(BatchWatch(search=search, on_start=on_start))
    except EvolvariumError as error:
        explained = explained_search(error, started, places)
        if explained is error:
            raise
        raise explained from error
    store = run_store(places)
    with store.open(ended.run_id, read_only=True) as journal:
        document = batch_document(store, ended.run_id, journal, containers_left=ended.containers_left)
    terminal.final(document, *batch_rows(document), *batch_notes(document))
    if document.state == "budget-spent":
        terminal.note(
            "the budget was spent before all commits were made: what is left of it is divided equally among the "
            "members yet to come, and each one's part among its islands"
        )
        raise typer.Exit(BudgetExhausted.exit_code)
