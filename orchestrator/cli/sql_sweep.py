"""`evolvarium sql sweep`, and what `resume` and `show` do with such a run."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE
from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.runs import run_store
from orchestrator.bootstrap.sql.choices import QUERY_SECONDS, SqlBudget
from orchestrator.bootstrap.sql.running import Ended, Watch
from orchestrator.bootstrap.sql.sweep import SweepBegun, begin_sweep, resume_sweep
from orchestrator.bootstrap.sql.sweep_choices import SweepChoices
from orchestrator.bootstrap.sql.sweep_file import SweepFile, load_sweep
from orchestrator.bootstrap.sql.sweep_results import read_sweep
from orchestrator.cli.files import require_folder, require_target, write_text
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Force, Home, Json, PolicyName, RuntimeName, path_given
from orchestrator.cli.sql_endings import exit_as, explaining
from orchestrator.cli.sql_options import (
    BudgetTokens,
    BudgetUsd,
    CriticModel,
    GeneratorModel,
    QuerySeconds,
    QuestionsAtOnce,
)
from orchestrator.cli.sql_progress import SWEEP, followed
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument
from orchestrator.cli.sql_sweep_summaries import sweep_document
from orchestrator.cli.sql_sweep_tables import sweep_csv, sweep_end_parts, sweep_parts
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal, inert
from orchestrator.errors import InputError
from orchestrator.ports import Journal

_FILES = ("sweep.csv", "sweep.md", "pareto.png", "pareto.svg")


@with_model_options
def sweep(  # noqa: PLR0913 - one parameter per option
    file: Annotated[
        Path, typer.Argument(parser=path_given, metavar="FILE", help="YAML; docs/sweeps/small.yaml is an example.")
    ],
    *,
    access: GivenAccess,
    data: Annotated[
        Path | None,
        typer.Option(
            parser=path_given,
            metavar="DIR",
            help="Folder that the roots of the data sets lie below; default: the one that FILE lies in.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many questions of each data set, whatever FILE says.", show_default=False),
    ] = None,
    model: GeneratorModel = OFFLINE,
    critic_model: CriticModel = None,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    query_seconds: QuerySeconds = QUERY_SECONDS,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    workers: QuestionsAtOnce = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            parser=path_given,
            metavar="DIR",
            help="Write the table (CSV, Markdown) and the Pareto plot (PNG, SVG) into it.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Measure how sensitive EvoSQL is to its settings: every variant that FILE names, on the same questions.

    Variants share gold queries, first rounds and executions. The run is kept: `evolvarium resume` continues it after
    any interruption and writes what -o asked for, `evolvarium show RUN` prints all tables. A budget is divided equally
    among all evolutions of all questions. Exit codes as of `sql bench`.
    """
    places = find_places(home, None)
    found = load_sweep(file)
    if data is None:
        _require_roots(file, found)
    if output is not None:
        require_targets(output, force=force)
    choices = SweepChoices(
        data=str((data or file.parent).resolve()),
        limit=limit,
        model=model,
        critic_model=critic_model,
        policy=policy,
        runtime=runtime,
        query_seconds=query_seconds,
        budget=SqlBudget(usd=None if budget_usd is None else Decimal(str(budget_usd)), tokens=budget_tokens),
        access=access.over(),
        workers=workers,
        output=None if output is None else str(output.resolve()),
        force=force,
    )
    _follow(places, as_json, lambda watch: begin_sweep(places, found, choices, watch))


def resume(places: Places, name: str, access: GivenAccess, *, as_json: bool) -> None:
    """Continue a sweep; ends like `sql sweep`, also with its files."""
    _follow(places, as_json, lambda watch: resume_sweep(places, name, watch, access))


def show_sweep(terminal: Terminal, run_id: str, journal: Journal, output: Path | None, *, force: bool) -> None:
    """Print the results of a sweep again, and write them.

    Raises:
        InputError: They cannot be written.
        RunStateError: The run is damaged.
    """
    if output is not None:
        require_targets(output, force=force)
    document = sweep_document(read_sweep(run_id, journal))
    if output is not None:
        document = _written(document, output, force=force)
        if not document.files:
            raise InputError(_nothing_to_write(document))
    terminal.result(document, *sweep_parts(document))


def _require_roots(file: Path, found: SweepFile) -> None:
    """See that the data sets lie beside a file, where nothing says that they lie elsewhere.

    Raises:
        InputError: One does not.
    """
    for dataset in found.datasets:
        path = (file.parent / dataset.root).resolve()
        if not path.exists():
            msg = (
                f"there is no {str(path)!r}: without --data, data sets are looked for beside {str(file)!r}; give "
                f"--data DIR, the folder that {dataset.root!r} lies in"
            )
            raise InputError(msg)


def require_targets(folder: Path, *, force: bool) -> None:
    """See, before any work is done, whether the files of a sweep may and can be written.

    Raises:
        InputError: As `files.require_target`, or the folder cannot be made or written.
    """
    require_folder(folder)
    for name in _FILES:
        require_target(folder / name, force=force)


def _follow(places: Places, as_json: bool, work: Callable[[Watch[SweepBegun]], Ended]) -> None:
    terminal = Terminal(as_json=as_json)
    goes_on: list[SweepBegun] = []
    with explaining(places) as started, followed(terminal, SWEEP) as progress, stoppable() as token:

        def on_start(begun: SweepBegun) -> None:
            started(begun.run_id)
            goes_on.append(begun)
            progress.start(begun)
            _can_write(progress.note, begun.run_id, begun.choices)  # said now rather than after hours

        watch = Watch(
            token=token,
            note=progress.note,
            on_start=on_start,
            on_total=progress.total,
            on_outcome=progress.outcome,
        )
        ended = work(watch)
    with run_store(places).open(ended.run_id, read_only=True) as journal:
        view = read_sweep(ended.run_id, journal)
    document, choices = sweep_document(view, ended.containers_left), view.header.choices
    note = terminal.note if goes_on else (lambda _: None)  # one that had ended already has most likely written them
    if choices.output is not None and _can_write(note, ended.run_id, choices):
        document = _written(document, Path(choices.output), force=choices.force)
    terminal.final(document, *sweep_end_parts(document))
    disagreeing = [name for dataset in document.datasets for name in dataset.gold_disagreeing]
    exit_as(terminal, gold_disagreeing=disagreeing, state=document.state)


def _can_write(note: Callable[[str], None], run_id: str, choices: SweepChoices) -> bool:
    """Whether a sweep, resumed perhaps, can write what it was asked to; where it cannot, it goes on all the same."""
    if choices.output is None:
        return True
    try:
        require_targets(Path(choices.output), force=choices.force)
    except InputError as error:
        note(f"nothing will be written: {error}; `evolvarium show {run_id} -o DIR` writes it at any time")
        return False
    return True


def _written(document: SqlSweepDocument, folder: Path, *, force: bool) -> SqlSweepDocument:
    """The document with the files that were written; none where there is nothing to write."""
    if not document.panels:
        return document
    from orchestrator.cli import figures, sql_sweep_figures  # noqa: PLC0415 - matplotlib takes a second to load

    tables = [part.markdown() for part in sweep_parts(document) if isinstance(part, Rows)]
    write_text(folder / "sweep.csv", sweep_csv(document), force=force)
    write_text(folder / "sweep.md", inert("\n".join(tables)), force=force)
    figures.write(sql_sweep_figures.pareto_figure(document), folder / "pareto", force=force)
    return document.model_copy(update={"files": [str(folder / name) for name in _FILES]})


def _nothing_to_write(document: SqlSweepDocument) -> str:
    """Why there is no table and no plot."""
    if document.state in ("unfinished", "paused"):
        return f"run {document.run} has no results to write yet; continue it with `evolvarium resume {document.run}`"
    return f"run {document.run} has no results to write: none of its questions can be evaluated"
