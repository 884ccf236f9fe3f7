"""`evolvarium task`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.installation_documents import NewTaskDocument, TaskDocument, TasksDocument
from orchestrator.cli.options import Json, TaskName, TaskRoot
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.errors import TaskError
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.task_families import members, package_name
from orchestrator.evaluation.tasks import check_task, family_folder, find_tasks, load_task, unused_parts

task_app = typer.Typer(help="List, check and make task packages.", no_args_is_help=True, rich_markup_mode=None)


@task_app.command("list")
def list_tasks(task_root: TaskRoot = None, as_json: Json = False) -> None:
    """List the task packages that can be named."""
    folders = find_tasks(find_places(None, task_root).task_roots)
    document = TasksDocument(tasks=[_task_document(name, folder) for name, folder in folders.items()])
    rows = [[task.name, task.title, ", ".join(task.splits), task.valid] for task in document.tasks]
    Terminal(as_json=as_json).result(
        document, Rows(title="Tasks", columns=["name", "title", "splits", "well formed"], rows=rows)
    )


@task_app.command("check")
def check(task: TaskName, task_root: TaskRoot = None, as_json: Json = False) -> None:
    """Check a task package, or every member of a family, without running any of it.

    Exit code 2 when one is not well formed. What is found is certainly wrong; what is not found may be wrong still.
    """
    places = find_places(None, task_root)
    family = None if task in find_tasks(places.task_roots) else family_folder(task, places.task_roots)
    folders = {} if family is None else members(family)
    documents = [_checked(places, folder) for folder in folders.values() or [places.task(task)]]
    document = documents[0] if not folders else TasksDocument(tasks=documents)
    Terminal(as_json=as_json).result(document, "\n".join(line for one in documents for line in _lines(one)))
    if not all(one.valid for one in documents):
        raise typer.Exit(TaskError.exit_code)


@task_app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")],
    into: Annotated[Path, typer.Option(help="Folder in which the package's folder is made.")] = Path(),
    two_modules: Annotated[
        bool,
        typer.Option("--two-modules", help="Its program is program.py with a model.py instead of program.py alone."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a small, complete task package to start from."""
    known = find_tasks(find_places(None, None).task_roots)
    missing = not into.exists()
    folder = new_task(into, name, known=known, two_modules=two_modules)
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    document = NewTaskDocument(name=name, path=str(folder), files=files)
    terminal = Terminal(as_json=as_json)
    if missing:
        terminal.note(f"the folder {str(into)!r} did not exist and was made, too")
    terminal.result(document, "\n".join([f"made {folder} with", *(f"- {file}" for file in files)]))


def _checked(places: Places, folder: Path) -> TaskDocument:
    document = _task_document(package_name(folder), folder)
    if not document.valid:
        return document
    package = load_task(folder)
    notes = [*unused_parts(package), *package.spec.over(find_policy(places, "default"))]
    return document.model_copy(update={"notes": notes})


def _lines(document: TaskDocument) -> list[str]:
    first = f"{document.path} is well formed" if document.valid else f"{document.path} is not well formed:"
    return [first, *(f"- {text}" for text in document.problems), *(f"- note: {text}" for text in document.notes)]


def _task_document(name: str, folder: Path) -> TaskDocument:
    problems = check_task(folder)
    spec = None if problems else load_task(folder).spec
    return TaskDocument(
        name=name,
        title=None if spec is None else spec.title,
        path=str(folder),
        splits=[] if spec is None else list(spec.splits),
        valid=not problems,
        problems=problems,
    )
