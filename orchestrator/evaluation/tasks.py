"""Task packages: find, load and check them.

A package is a folder with `task.yaml`, a description, an initial program, trusted evaluator code, and perhaps public
data. Nothing of it runs here; symbolic links are refused, so that no file from outside can become part of it.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.tasks import TaskView
from orchestrator.errors import InputError, TaskError
from orchestrator.evaluation.package_files import Problems, read_files, read_text
from orchestrator.evaluation.task_code import evaluator_problems, program_problems
from orchestrator.evaluation.task_document import TASK_FILE, examined
from orchestrator.evaluation.task_families import FAMILY_FILE, Package, is_family, members, read_package
from orchestrator.evaluation.task_names import listed, meant_names
from orchestrator.evaluation.task_spec import FilesSplit, GeneratedSplit, PublicSplit, TaskSpec
from orchestrator.runtime.strict_yaml import shown
from orchestrator.runtime.user_files import kind_at

T = TypeVar("T")
_PUBLIC = "public"
"""The folder that authors expect to be taken without being declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A package that was read and found well formed."""

    folder: Path
    spec: TaskSpec
    description: str
    initial: FileTree
    evaluator: Mapping[str, bytes]
    """Trusted code by relative path; never shown to a model."""
    public: Mapping[str, bytes]
    """Public data by relative path; empty when there are none, or before `with_public_data` made them."""

    @property
    def name(self) -> str:
        """Of the package: its folder's, or `family/member`."""
        return self.spec.name

    @property
    def metric_names(self) -> frozenset[str]:
        """What a scored verdict holds, no more and no less."""
        return frozenset(self.spec.metrics)

    @property
    def view(self) -> TaskView:
        """What a search method may know."""
        return TaskView(
            name=self.spec.name,
            description=self.description,
            initial=self.initial,
            entry=self.spec.program.entry,
            fitness=self.spec.fitness,
            features=tuple(feature.metric for feature in self.spec.features),
            has_public_data=bool(self.public) or isinstance(self.spec.public, PublicSplit),
        )

    def functions(self) -> dict[str, Any]:
        """The signatures as they go into `start` frames."""
        return {name: function.model_dump(mode="json") for name, function in self.spec.functions.items()}

    def split(self, name: str) -> GeneratedSplit | FilesSplit:
        """A declared split.

        Raises:
            InputError: The task has no such split.
        """
        if name not in self.spec.splits:
            msg = f"task {self.name!r} has no split {name!r}; it has {', '.join(self.spec.splits)}"
            raise InputError(msg)
        return self.spec.splits[name]


def find_tasks(roots: Sequence[Path]) -> dict[str, Path]:
    """Folders under the roots that hold a `task.yaml`, by folder name or as `family/member`; earlier roots win."""
    found: dict[str, Path] = {}
    for root in roots:
        if root.is_dir():
            for file in sorted(root.glob(f"*/{TASK_FILE}")):
                found.setdefault(file.parent.name, file.parent)
            for file in sorted(root.glob(f"*/{FAMILY_FILE}")):
                for name, folder in members(file.parent).items():
                    found.setdefault(name, folder)
    return found


def task_folder(name: str, roots: Sequence[Path]) -> Path:
    """The folder of a task, by its name under the roots or by its own path.

    Raises:
        InputError: There is none (the message names close ones), it is a family, or the name is that of a known task
            and of another folder here.
    """
    found = find_tasks(roots)
    here = Path(name)
    try:
        is_folder = stat.S_ISREG(kind_at(here / TASK_FILE))
    except OSError as error:
        msg = f"no task {shown(name)}: {error.strerror}; give a task's name, or the folder of one"
        raise InputError(msg) from error
    if name in found:
        if is_folder and here.resolve() != found[name].resolve():
            msg = (
                f"{name!r} is the task {str(found[name])!r} and also a folder here; write ./{name} for the folder, or "
                f"{found[name]} for the other"
            )
            raise InputError(msg)
        return found[name]
    if is_folder:
        return here
    family = family_folder(name, roots)
    if family is not None:
        names = ", ".join(members(family)) or "none so far"
        msg = f"{name!r} is a family of tasks; name one of its members: {names}"
        raise InputError(msg)
    meant = meant_names(name, list(found), Path())
    suggested = f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ":"
    msg = f"no task {name!r}{suggested} it is neither a known task ({listed(found)}) nor a folder with a {TASK_FILE}"
    raise InputError(msg)


def family_folder(name: str, roots: Sequence[Path]) -> Path | None:
    """The folder of a family of tasks, by its name under the roots or by its own path; None: there is none."""
    named = [root / name for root in roots] if Path(name).name == name else []
    return next((folder for folder in (*named, Path(name)) if is_family(folder)), None)


def load_task(folder: Path) -> Task:
    """Read a package.

    Raises:
        TaskError: It is not well formed; the message lists every problem found.
    """
    task, problems = _read(folder)
    if task is None or problems:
        many = len(problems) > 1
        told = "; ".join(f"({number}) {text}" if many else text for number, text in enumerate(problems, 1))
        msg = f"task package {str(folder)!r} is not well formed: {told}"
        raise TaskError(msg)
    return task


def check_task(folder: Path) -> list[str]:
    """Problems of a package, each with file, field, value and way out; empty when it is well formed."""
    return _read(folder)[1]


def unused_parts(task: Task) -> list[str]:
    """What lies in a package as if it were used, a sentence each."""
    if task.spec.public is None and (task.folder / _PUBLIC).is_dir():
        text = (
            f"{_PUBLIC}/ is not used, since {TASK_FILE} has no key `public`; add `public: {_PUBLIC}` for analyses to "
            "see it, or remove the folder"
        )
        return [text]
    return []


def _read(folder: Path) -> tuple[Task | None, list[str]]:
    """The package, and every problem that can be told without running anything; None: a part of it is missing."""
    try:
        package = read_package(folder)
    except Problems as found:
        return None, found.texts
    fields, problems = examined(package.document)
    program, public = fields.get("program"), fields.get("public")
    description = _part(problems, fields.get("description"), lambda path: _description(package, path))
    initial = _part(problems, None if program is None else program.folder, lambda path: _initial(package, path))
    evaluator = _part(problems, fields.get("evaluator"), lambda path: _evaluator(package, path))
    from_folder = public if isinstance(public, str) else None
    data = _part(problems, from_folder, lambda path: read_files(package.place(path), path)) or {}
    problems += _misfits(package, fields, initial, evaluator)
    if problems or description is None or initial is None or evaluator is None:
        return None, problems
    spec = TaskSpec.model_validate(package.document)
    task = Task(folder=folder, spec=spec, description=description, initial=initial, evaluator=evaluator, public=data)
    return task, []


def _part(problems: list[str], path: str | None, read: Callable[[str], T]) -> T | None:
    """A part of the package; None: it is not declared, or its problems are now among the others."""
    if path is None:
        return None
    try:
        return read(path)
    except Problems as found:
        problems += found.texts
        return None


def _description(package: Package, path: str) -> str:
    text = package.filled(path, read_text(package.place(path), path))
    if not text.strip():
        msg = f"{path}: is empty; write what a model must know to improve the program"
        raise Problems(msg)
    return text


def _initial(package: Package, path: str) -> FileTree:
    files = package.filled_files(path, read_files(package.place(path), path))
    try:
        return FileTree(files)
    except InputError as error:
        msg = f"{path}/: {error}"
        raise Problems(msg) from error


def _evaluator(package: Package, path: str) -> dict[str, bytes]:
    files = read_files(package.place(path), path)
    for name in package.added:
        if name in files:
            msg = f"{path}/{name}: is made for every member of the family; rename the file"
            raise Problems(msg)
    return {**files, **package.added}


def _misfits(
    package: Package, fields: Mapping[str, Any], initial: FileTree | None, evaluator: Mapping[str, bytes] | None
) -> Iterator[str]:
    """What does not fit together between `task.yaml`, the folder's name and the code."""
    name = package.name
    if fields.get("name", name) != name:
        yield f"{TASK_FILE}: `name` is {fields['name']!r}, but the folder is {name!r}; make them equal"
    if initial is not None:
        program = fields["program"]
        if program.entry not in initial:
            place = f"{program.folder}/{program.entry}"
            yield f"{TASK_FILE}: `program.entry` is {program.entry!r}, but {place} does not exist; add the file"
        yield from program_problems(initial, program.folder, program.entry, fields)
    if evaluator is not None:
        yield from evaluator_problems(evaluator, fields["evaluator"], fields)
