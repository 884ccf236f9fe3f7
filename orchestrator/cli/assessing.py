"""`evolvarium task assess`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.bootstrap.assessing import Asked, Found, assess_runs, runs_to_assess
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.cli.assessing_progress import assessing
from orchestrator.cli.batch_documents import AssessedRun, AssessmentDocument, SplitQuality
from orchestrator.cli.options import Choice, Home, Json, RunName, TaskRoot
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.cli.verdicts import failure_document, failure_text
from orchestrator.domain.verdicts import Assessment
from orchestrator.errors import Cancelled, InputError

_SHORT = 40
"""Characters of what fits into a column of a table of many runs."""


def assess(
    run: RunName,
    *,
    commit: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A candidate's id, or `initial`; default: the best.", show_default=False),
    ] = None,
    choice: Choice = None,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Say what a task's own code makes of the best candidate of a run, beside its metrics.

    Of an equation: how it reads with its fitted constants, its nodes, its error on every split, and whether it has the
    structure of the law. Of a batch, of each of its members. Nothing is recorded; asked again, it says the same.
    """
    if commit is not None and choice is not None:
        msg = "--commit names the candidate that --choice would choose; give one of them"
        raise InputError(msg)
    places = find_places(home, task_root)
    run_id = find_run(run_store(places), run)
    terminal = Terminal(as_json=as_json)
    run_ids = runs_to_assess(places, run_id, terminal.note)
    try:
        with stoppable() as token, assessing(terminal, len(run_ids)) as lines:
            asked = Asked(commit=commit, choice=choice)
            found = list(assess_runs(places, run_ids, asked, token=token, note=lines.note, on_run=lines.begin))
    except Cancelled as error:
        msg = "the assessment was stopped; nothing of it is kept"
        raise Cancelled(msg) from error
    document = AssessmentDocument(
        batch=run_id if run_ids != [run_id] else None,
        meanings={name: text for one in found for name, text in one.meanings.items()},
        runs=[_assessed(one) for one in found],
    )
    terminal.result(document, *assessment_rows(document))


def assessment_rows(document: AssessmentDocument) -> list[Rows]:
    """A table for each run; of a batch, also one of all runs with whatever is short, and how often each text occurs."""
    tables = [_of_run(run) for run in document.runs]
    if document.batch is None:
        return tables
    short = [name for name in document.meanings if _fits(document.runs, name)]
    splits = list(dict.fromkeys(split.split for run in document.runs for split in run.splits))
    columns = ["task", "commit", *splits, *short, "not assessed"]
    rows: list[list[object]] = [
        [
            *(run.task, run.commit),
            *({one.split: one.value for one in run.splits}.get(split) for split in splits),
            *((run.assessment or {}).get(name) for name in short),
            run.not_assessed,
        ]
        for run in document.runs
    ]
    if not any(run.not_assessed for run in document.runs):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return [*tables, Rows(title=f"Batch {document.batch}", columns=columns, rows=rows), *_tallies(document, short)]


def _fits(runs: Sequence[AssessedRun], name: str) -> bool:
    return all(len(str((run.assessment or {}).get(name))) <= _SHORT for run in runs)


def _tallies(document: AssessmentDocument, short: Sequence[str]) -> list[Rows]:
    tables = []
    for name in short:
        found: dict[str, list[str]] = {}
        for run in document.runs:
            value = (run.assessment or {}).get(name)
            if isinstance(value, str):
                found.setdefault(value, []).append(run.task)
        rows = [[value, len(tasks), ", ".join(tasks)] for value, tasks in sorted(found.items())]
        if 0 < len(rows) < len(document.runs):  # else every run has a text of its own, as the table says already
            tables.append(Rows(title=name, columns=[name, "runs", "tasks"], rows=rows, cell_characters=1000))
    return tables


def _of_run(run: AssessedRun) -> Rows:
    rows: list[list[object]] = [["candidate", run.commit], ["chosen by", run.choice]]
    for one in run.splits:
        rows.append(
            [f"{run.quality}, {one.split}", one.value if one.failure is None else failure_text(one.failure, "")]
        )
    rows += [[name, value] for name, value in (run.assessment or {}).items()]
    if run.not_assessed is not None:
        rows.append(["not assessed", run.not_assessed])
    return Rows(title=f"Run {run.run}: {run.task}", columns=["what", "value"], rows=rows, cell_characters=2000)


def _assessed(found: Found) -> AssessedRun:
    values = None if found.assessment is None else found.assessment.values
    return AssessedRun(
        run=found.run_id,
        task=found.task,
        choice=found.choice,
        commit=found.commit,
        quality=found.quality,
        splits=[
            SplitQuality(
                split=verdict.split,
                value=None if verdict.metrics is None else verdict.metrics[found.quality],
                failure=failure_document(verdict.failure),
            )
            for verdict in found.verdicts
        ],
        assessment=None if values is None else dict(values),
        not_assessed=_why_not(found.assessment),
    )


def _why_not(assessment: Assessment | None) -> str | None:
    if assessment is None:
        return "no candidate has a score"
    if assessment.cut_off is not None:
        return assessment.cut_off
    return None if assessment.failure is None else failure_text(failure_document(assessment.failure), "")
