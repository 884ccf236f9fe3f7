"""`evolvarium report`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places
from orchestrator.bootstrap.report_records import ReportRecords, read_report_records
from orchestrator.bootstrap.runs import BATCH, find_run, kind_of, run_store
from orchestrator.cli.batches import report_batch
from orchestrator.cli.comparison import compared, comparison_rows, difference_rows, report_document, spending_rows
from orchestrator.cli.files import require_output_name, require_target, write_text
from orchestrator.cli.history import RunView, read_view
from orchestrator.cli.options import Choice, Force, Home, Json, Output
from orchestrator.cli.report_documents import ReportDocument
from orchestrator.cli.report_page import PageRun, report_page
from orchestrator.cli.terminal import Rows, Terminal, inert, json_line, one_line
from orchestrator.errors import InputError

_FILES = (
    "report.html", "report.md", "report.json", "best_so_far.png", "best_so_far.svg", "grid.png", "grid.svg",
)  # fmt: skip
"""The page first."""


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of ids, `latest` or `previous`.")],
    choice: Choice = None,
    output: Output = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Compare runs of one task, show what happened in them, or report on a batch of runs.

    Side by side: scores on every split, what they took, and how much better the first is; then what each has spent on
    models, by role, model and island. With -o and a folder, that receives a page to look at (report.html), the same
    tables in Markdown (report.md) with the best-so-far curves and the grids (PNG and SVG), and the document
    (report.json); with -o and a name that ends in .html, the page alone. The page is one file, makes no connections,
    and shows every program, change, experiment and answer. Of a batch, a folder receives its table, and all this of
    each member in a folder of its own. Needs no engine.
    """
    require_output_name(output, command="report", page=True)
    places = existing_places(home)
    store = run_store(places)
    ids = list(dict.fromkeys(find_run(store, name) for name in runs))
    terminal = Terminal(as_json=as_json)
    if len(ids) == 1:
        with store.open(ids[0], read_only=True) as journal:
            if kind_of(journal) == BATCH:

                def write(view: RunView, folder: Path) -> list[Path]:
                    with store.open(view.run_id, read_only=True) as member:
                        records = read_report_records(places, view.run_id, member, view.history)
                    return [Path(file) for file in _written([view], [records], folder, force=force)[0].files]

                _require_folder(output)
                report_batch(terminal, store, ids[0], journal, output, write, choice=choice, force=force)
                return
    with ExitStack() as stack:
        journals = {run_id: stack.enter_context(store.open(run_id, read_only=True)) for run_id in ids}
        views = [read_view(run_id, journal, choice=choice) for run_id, journal in journals.items()]
        _require_one_task(views)
        records = [
            read_report_records(places, view.run_id, journals[view.run_id], view.history)
            for view in views
            if output is not None
        ]
    document, tables = _written(views, records, output, force=force)
    notes = [f"written to {output}"] if output is not None else []
    terminal.result(document, *tables, *notes)


def _written(
    views: list[RunView], records: Sequence[ReportRecords], output: Path | None, *, force: bool
) -> tuple[ReportDocument, list[Rows]]:
    """The report as a document and as tables; with `output` also as files."""
    planned = [] if output is None else _planned(output, force=force)
    columns = [compared(view) for view in views]
    document = report_document(views, columns, [str(path) for path in planned])
    tables = [comparison_rows(views, columns), *difference_rows(document), *spending_rows(columns)]
    if output is not None:
        pages = [
            PageRun(view=view, document=column.run, records=one)
            for view, column, one in zip(views, columns, records, strict=True)
        ]
        write_text(planned[0], report_page(pages, tables), force=force)
        if len(planned) > 1:
            _write_beside(output, views, document, tables, force=force)
    return document, tables


def _require_folder(output: Path | None) -> None:
    if output is not None and output.suffix.lower() == ".html":
        msg = f"{str(output)!r} would be one page, and a batch has one for each member; name a folder"
        raise InputError(msg)


def _require_one_task(views: Sequence[RunView]) -> None:
    tasks = {view.history.header["task"]["name"] for view in views}
    if len(tasks) > 1:
        msg = f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}; report them one by one"
        raise InputError(msg)


def _write_beside(
    folder: Path, views: list[RunView], document: ReportDocument, tables: Sequence[Rows], *, force: bool
) -> None:
    """What stands beside the page in a folder."""
    write_text(folder / "report.md", _page(document.runs[0].run.task, tables), force=force)
    write_text(folder / "report.json", json_line(document) + "\n", force=force)
    _draw(views, folder, force=force)


def _page(task: str, tables: Sequence[Rows]) -> str:
    """The report as a Markdown page, with its pictures, which lie beside it."""
    pictures = [
        "## Best so far\n\n![The best quality so far against paid evaluations, a line per run](best_so_far.png)\n",
        "## Grids\n\n![The fitness of the elites in every island's grid](grid.png)\n",
    ]
    title = f"# Report on {one_line(task, 80)}\n"
    return inert("\n".join([title, *(table.markdown() for table in tables), *pictures]))


def _planned(output: Path, *, force: bool) -> list[Path]:
    """Where everything goes: one page, or a folder of files."""
    written = [output] if output.suffix.lower() == ".html" else [output / name for name in _FILES]
    for path in written:
        require_target(path, force=force)
    return written


def _draw(views: list[RunView], folder: Path, *, force: bool) -> None:
    from orchestrator.cli import figures  # noqa: PLC0415 - matplotlib takes a second that only this command needs

    quality = views[0].quality
    curves = {f"{view.run_id} {view.history.header['method']}": view.curve() for view in views}
    figures.write(figures.best_so_far(curves, quality.label, quality.unit), folder / "best_so_far", force=force)
    grids = {
        (f"island {island}" if len(views) == 1 else f"{view.run_id[:6]} island {island}"): grid
        for view in views
        for island, grid in view.history.grids().items()
    }
    features = views[0].history.header["task"]["features"]
    figures.write(figures.grids(grids, features), folder / "grid", force=force)
