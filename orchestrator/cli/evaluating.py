"""`evolvarium evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.judging import SplitChoice, judge
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.documents import VerdictDocument
from orchestrator.cli.files import read_program, write_text
from orchestrator.cli.junit import junit_report
from orchestrator.cli.options import Home, Json, OrLibrary, PolicyName, PublicSeed, RuntimeName, TaskName, TaskRoot
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal
from orchestrator.cli.verdicts import failure_document, failure_text, metrics_of, outcome_document
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.tasks import Task, load_task


def evaluate(  # noqa: PLR0913 - one parameter per option
    task: TaskName,
    program: Annotated[Path, typer.Argument(help="The program: a file, or a folder of files.")],
    *,
    split: Annotated[
        str | None, typer.Option(help="On which data; default the split that guides searches.", show_default=False)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if the task's quality figure is worse than this.", show_default=False),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Also write the verdict as a JUnit report.", show_default=False)
    ] = None,
    public_seed: PublicSeed = False,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    or_library: OrLibrary = None,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Evaluate one program formally and print the verdict as one JSON object.

    Exit code 0: it has a score and meets the threshold; 1: it failed or is below.
    """
    places = find_places(home, task_root)
    package = load_task(places.task(task))
    tree = read_program(program, package.spec.program.entry)
    in_force = find_policy(places, policy, runtime)
    choice = SplitChoice(
        split=split or package.spec.search_split,
        public_seed=public_seed,
        data=None if or_library is None else str(or_library),
    )
    terminal = Terminal(as_json=True)
    with stoppable() as token:
        verdict = judge(places, package, tree, choice, in_force, token=token, note=terminal.note)
    document = _document(package, str(program), tree, verdict, threshold)
    if junit is not None:
        write_text(junit, junit_report(document, package.spec.quality.metric))
    if not as_json:
        terminal.note(_sentence(document, package.spec.quality.metric))
    terminal.result(document)
    if not document.passed:
        raise typer.Exit(1)


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
        failure=failure_document(verdict.failure),
        secret=verdict.secret,
        outcome=outcome_document(verdict.outcome),
        fingerprint=dict(verdict.fingerprint),
        threshold=threshold,
        passed=value is not None and meets,
    )


def _sentence(document: VerdictDocument, metric: str) -> str:
    if document.metrics is None:
        return f"{document.program} has no score on {document.split!r}: {failure_text(document.failure)}"
    value = f"{document.program}: {metric} {document.metrics[metric]:.6g} on {document.split!r}"
    return value if document.passed else f"{value}, worse than the threshold {document.threshold:g}"
