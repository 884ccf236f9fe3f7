"""`evolvarium report`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.cli.comparison import compared, comparison_rows, difference_rows, report_document, spending_rows
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.history import RunView, read_view
from orchestrator.cli.options import Force, Home, Json, Output
from orchestrator.cli.terminal import Rows, Terminal, inert, json_line, one_line
from orchestrator.errors import InputError

_FILES = (
    "report.md", "report.json", "best_so_far.png", "best_so_far.svg", "grid.png", "grid.svg",
)  # fmt: skip


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of ids, `latest` or `previous`.")],
    output: Output = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Compare runs of one task.

    Side by side: scores on every split, what they took, and how much better the first is; then what each has spent on
    models, by role, model and island. With -o, a folder receives
    the page (report.md) with the best-so-far curves and the grids (PNG and SVG), and the document (report.json). Needs
    no engine.
    """
    store = run_store(existing_places(home))
    ids = list(dict.fromkeys(find_run(store, name) for name in runs))
    with ExitStack() as stack:
        views = [read_view(run_id, stack.enter_context(store.open(run_id, read_only=True))) for run_id in ids]
    tasks = {view.history.header["task"]["name"] for view in views}
    if len(tasks) > 1:
        msg = f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}; report them one by one"
        raise InputError(msg)
    written = [] if output is None else _planned(output, force=force)
    columns = [compared(view) for view in views]
    document = report_document(views, columns, [str(path) for path in written])
    tables = [comparison_rows(views, columns), *difference_rows(document), *spending_rows(columns)]
    if output is not None:
        write_text(output / "report.md", _page(document.runs[0].run.task, tables), force=force)
        write_text(output / "report.json", json_line(document) + "\n", force=force)
        _draw(views, output, force=force)
    notes = [f"written to {output}"] if output is not None else []
    Terminal(as_json=as_json).result(document, *tables, *notes)


def _page(task: str, tables: Sequence[Rows]) -> str:
    """The report as a Markdown page, with its pictures, which lie beside it."""
    pictures = [
        "## Best so far\n\n![The best quality so far against paid evaluations, a line per run](best_so_far.png)\n",
        "## Grids\n\n![The fitness of the elites in every island's grid](grid.png)\n",
    ]
    title = f"# Report on {one_line(task, 80)}\n"
    return inert("\n".join([title, *(table.markdown() for table in tables), *pictures]))


def _planned(folder: Path, *, force: bool) -> list[Path]:
    written = [folder / name for name in _FILES]
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
