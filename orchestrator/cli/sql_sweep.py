"""`evolvarium sql sweep`, and what `resume` and `show` do with such a run."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.models import OFFLINE
from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.runs import run_store
from orchestrator.bootstrap.sql.choices import QUERY_SECONDS, SqlBudget
from orchestrator.bootstrap.sql.sweep import SweepBegun, SweepEnded, SweepWatch, begin_sweep, resume_sweep
from orchestrator.bootstrap.sql.sweep_choices import SweepChoices
from orchestrator.bootstrap.sql.sweep_file import load_sweep
from orchestrator.bootstrap.sql.sweep_results import read_sweep
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.options import Force, Home, Json, PolicyName, RuntimeName, path_given
from orchestrator.cli.sql_endings import exit_as, explained
from orchestrator.cli.sql_options import (
    BudgetTokens,
    BudgetUsd,
    CriticModel,
    GeneratorModel,
    QuerySeconds,
    QuestionsAtOnce,
)
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument
from orchestrator.cli.sql_sweep_progress import SweepLines
from orchestrator.cli.sql_sweep_summaries import sweep_document
from orchestrator.cli.sql_sweep_tables import sweep_csv, sweep_parts
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal, inert
from orchestrator.errors import EvolvariumError, InputError
from orchestrator.ports import Journal

_FILES = ("sweep.csv", "sweep.md", "pareto.png", "pareto.svg")


def sweep(  # noqa: PLR0913 - one parameter per option
    file: Annotated[
        Path, typer.Argument(parser=path_given, metavar="FILE", help="YAML; docs/sweeps/small.yaml is an example.")
    ],
    *,
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
    any interruption, `evolvarium show RUN -o DIR` prints and writes its results again. A budget is divided equally
    among all evolutions of all questions. Exit codes as of `sql bench`.
    """
    places = find_places(home, None)
    found = load_sweep(file)
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
        workers=workers,
    )
    _follow(places, as_json, lambda watch: begin_sweep(places, found, choices, watch), output, force=force)


def resume(places: Places, name: str, *, as_json: bool) -> None:
    """Continue a sweep; ends like `sql sweep`."""
    _follow(places, as_json, lambda watch: resume_sweep(places, name, watch), None, force=False)


def show_sweep(terminal: Terminal, run_id: str, journal: Journal, output: Path | None, *, force: bool) -> None:
    """Print the results of a sweep again, and write them.

    Raises:
        InputError: They cannot be written.
        RunStateError: The run is damaged.
    """
    if output is not None:
        require_targets(output, force=force)
    document, parts = _result(run_id, journal, None, output, force=force)
    if output is not None and not document.files:
        raise InputError(_nothing_to_write(document))
    terminal.result(document, *parts)


def require_targets(folder: Path, *, force: bool) -> None:
    """See, before any work is done, whether the files of a sweep may be written.

    Raises:
        InputError: As `files.require_target`.
    """
    for name in _FILES:
        require_target(folder / name, force=force)


def _follow(
    places: Places,
    as_json: bool,
    work: Callable[[SweepWatch], SweepEnded],
    output: Path | None,
    *,
    force: bool,
) -> None:
    terminal = Terminal(as_json=as_json)
    started: list[str] = []
    try:
        with stoppable() as token:
            lines = SweepLines(terminal)

            def on_start(begun: SweepBegun) -> None:
                started.append(begun.run_id)
                lines.start(begun)

            watch = SweepWatch(
                token=token,
                note=terminal.note,
                on_start=on_start,
                on_trials=lines.trials,
                on_outcome=lines.outcome,
            )
            ended = work(watch)
    except EvolvariumError as error:
        told = explained(error, started)
        if told is error:
            raise
        raise told from error
    with run_store(places).open(ended.run_id, read_only=True) as journal:
        document, parts = _result(ended.run_id, journal, ended.containers_left, output, force=force)
    terminal.final(document, *parts)
    if output is not None and not document.files:
        terminal.note(_nothing_to_write(document))
    disagreeing = [name for dataset in document.datasets for name in dataset.gold_disagreeing]
    exit_as(terminal, gold_disagreeing=disagreeing, state=document.state)


def _result(
    run_id: str, journal: Journal, containers_left: int | None, output: Path | None, *, force: bool
) -> tuple[SqlSweepDocument, list[Rows | str]]:
    document = sweep_document(read_sweep(run_id, journal), containers_left)
    parts = sweep_parts(document)
    if output is not None and document.panels:
        _write(document, parts, output, force=force)
        document = document.model_copy(update={"files": [str(output / name) for name in _FILES]})
        parts.append(f"written to {output}")
    return document, parts


def _write(document: SqlSweepDocument, parts: list[Rows | str], folder: Path, *, force: bool) -> None:
    from orchestrator.cli import figures, sql_sweep_figures  # noqa: PLC0415 - matplotlib takes a second to load

    tables = [part.markdown() for part in parts if isinstance(part, Rows)]
    write_text(folder / "sweep.csv", sweep_csv(document), force=force)
    write_text(folder / "sweep.md", inert("\n".join(tables)), force=force)
    figures.write(sql_sweep_figures.pareto_figure(document), folder / "pareto", force=force)


def _nothing_to_write(document: SqlSweepDocument) -> str:
    """Why there is no table and no plot."""
    if document.state == "unfinished":
        return f"run {document.run} has no results to write yet; continue it with `evolvarium resume {document.run}`"
    return f"run {document.run} has no results to write: none of its questions can be evaluated"
