"""`evolvarium evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.judging import SplitChoice, judge
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.documents import FailureDocument, VerdictDocument
from orchestrator.cli.files import read_program, require_target, write_text
from orchestrator.cli.heartbeat import Heartbeat, repeated
from orchestrator.cli.junit import junit_error, junit_report
from orchestrator.cli.options import (
    Data,
    Home,
    Json,
    OrLibrary,
    PolicyName,
    PublicSeed,
    RuntimeName,
    TaskName,
    TaskRoot,
    data_given,
    finite,
    path_given,
)
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal
from orchestrator.cli.verdicts import failure_document, failure_text, metrics_of, outcome_document, secrecy
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import Cancelled, EvolvariumError, InputError
from orchestrator.evaluation.messages import LOAD_CHECK
from orchestrator.evaluation.tasks import Task, load_task


def evaluate(  # noqa: PLR0913 - one parameter per option
    task: TaskName,
    program: Annotated[
        Path, typer.Argument(parser=path_given, metavar="PROGRAM", help="A file, or a folder of files.")
    ],
    *,
    split: Annotated[
        str | None, typer.Option(help="On which data; default the split that guides searches.", show_default=False)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 if the task's quality figure is worse than this.", show_default=False, callback=finite
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(parser=path_given, help="Also write the verdict as a JUnit report.", show_default=False),
    ] = None,
    public_seed: PublicSeed = False,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    data: Data = None,
    or_library: OrLibrary = None,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Evaluate one program formally.

    Where stdout is no terminal, or with --json, the verdict goes there as one JSON object (see docs/json.md). Exit code
    0: it has a score and meets the threshold; 1: it failed or is below.
    """
    places = find_places(home, task_root)
    package = load_task(places.task(task))
    tree = read_program(program, package.spec.program.entry)
    if junit is not None:
        require_target(junit, force=True)  # the report of an earlier evaluation is replaced
    in_force = find_policy(places, policy, runtime)
    files = data_given(data, or_library)
    choice = SplitChoice(
        split=split or package.spec.search_split,
        public_seed=public_seed,
        data=None if files is None else str(files),
    )
    terminal = Terminal(as_json=as_json)
    terminal.note(*_missing_files(package, str(program), tree))
    alive = Heartbeat(terminal.note)

    def beat() -> None:
        alive.beat(lambda: f"still evaluating {program} on {choice.split!r}")

    try:
        with stoppable() as token, repeated("heartbeat", beat):
            verdict = judge(places, package, tree, choice, in_force, token=token, note=terminal.note)
    except Cancelled as error:
        msg = "the evaluation was stopped; nothing was scored"
        raise Cancelled(msg) from error
    except EvolvariumError as error:
        if junit is not None and not isinstance(error, InputError):
            write_text(junit, junit_error(package.name, str(program), choice.split, error), force=True)
        raise
    document = _document(package, str(program), tree, verdict, threshold)
    if junit is not None:
        write_text(junit, junit_report(document, package.spec.quality.metric), force=True)
    terminal.final(document, _sentence(document, package.spec.quality.metric))
    if not document.passed:
        raise typer.Exit(1)


def _missing_files(task: Task, program: str, tree: FileTree) -> list[str]:
    """What to say of a program without files that the task's own one has; nothing where it has them all."""
    missing = sorted(set(task.initial) - set(tree))
    if not missing:
        return []
    text = (
        f"note: programs of task {task.name!r} have the files {', '.join(task.initial)}, and {program!r} is without "
        f"{', '.join(missing)}; if it imports them, give the folder that holds them all"
    )
    return [text]


def _document(task: Task, program: str, tree: FileTree, verdict: Verdict, threshold: float | None) -> VerdictDocument:
    quality = task.spec.quality
    value = None if verdict.metrics is None else verdict.metrics[quality.metric]
    meets = threshold is None or value is None
    if value is not None and threshold is not None:
        meets = value <= threshold if quality.direction == "minimize" else value >= threshold
    return VerdictDocument(
        task=task.name,
        program=program,
        digest=tree.digest,
        split=verdict.split,
        metrics=metrics_of(verdict),
        failure=_for_operators(failure_document(verdict.failure), task, program),
        secret=verdict.secret,
        outcome=outcome_document(verdict.outcome),
        fingerprint=dict(verdict.fingerprint),
        threshold=threshold,
        passed=value is not None and meets,
    )


def _for_operators(failure: FailureDocument | None, task: Task, program: str) -> FailureDocument | None:
    """A failure with what no model is told: the file as it was given, and what the task wants of it."""
    if failure is None:
        return None
    entry, functions = task.spec.program.entry, list(task.spec.functions)
    wanted = {
        LOAD_CHECK["entry-missing"]: entry,
        LOAD_CHECK["function-missing"]: functions[0] if len(functions) == 1 else f"one of {', '.join(functions)}",
    }
    name = wanted.get(failure.message or "")
    message = failure.message if name is None else f"{failure.message}: {name}"
    is_file = failure.file == entry and not Path(program).is_dir()  # a single file is evaluated under the entry's name
    return failure.model_copy(update={"message": message, "file": program if is_file else failure.file})


def _sentence(document: VerdictDocument, metric: str) -> str:
    if document.metrics is None:
        why = failure_text(document.failure, document.outcome.detail)
        return f"{document.program} has no score on {document.split!r}: {why}"
    where = f"{document.split!r}, {secrecy(secret=document.secret)}"
    value = f"{document.program}: {metric} {document.metrics[metric]:.6g} on {where}"
    return value if document.passed else f"{value}, worse than the threshold {document.threshold:g}"
