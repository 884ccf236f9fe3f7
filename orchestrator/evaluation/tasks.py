"""Task packages: find, load and check them.

A package is a folder with `task.yaml`, a description, an initial program, trusted evaluator code, and perhaps public
data. Nothing of it runs here; symbolic links are refused, so that no file from outside can become part of it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.domain.candidates import FileTree, check_path
from orchestrator.domain.tasks import TaskView
from orchestrator.errors import InputError, TaskError
from orchestrator.evaluation.task_spec import FilesSplit, GeneratedSplit, TaskSpec
from orchestrator.runtime.strict_yaml import load_yaml, shown
from orchestrator.runtime.user_files import read_file

TASK_FILE = "task.yaml"
MAX_TEXT_BYTES = 256 << 10
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 256
EVALUATOR_ENTRY = "evaluate.py"
TAKEN_MODULES = frozenset({
    "channel", "columns", "evaluation", "evaluator_api", "frames", "prctl", "session", "volume",
})  # fmt: skip
"""The evaluator's runner finds its own modules of these names first."""


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
    """Public data by relative path; empty when there are none."""

    @property
    def name(self) -> str:
        """Of the package and its folder."""
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
            has_public_data=bool(self.public),
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
    """Folders under the roots that hold a `task.yaml`, by folder name; earlier roots win."""
    found: dict[str, Path] = {}
    for root in roots:
        if root.is_dir():
            for file in sorted(root.glob(f"*/{TASK_FILE}")):
                found.setdefault(file.parent.name, file.parent)
    return found


def task_folder(name: str, roots: Sequence[Path]) -> Path:
    """The folder of a task, by its name under the roots or by its own path.

    Raises:
        InputError: There is none.
    """
    found = find_tasks(roots)
    if name in found:
        return found[name]
    if (Path(name) / TASK_FILE).is_file():
        return Path(name)
    known = ", ".join(found) or "none"
    msg = f"no task {name!r}: it is neither a known task ({known}) nor a folder with a {TASK_FILE}"
    raise InputError(msg)


def load_task(folder: Path) -> Task:
    """Read a package.

    Raises:
        TaskError: It is not well formed; the message lists every problem found.
    """
    task, problems = _read(folder)
    if task is None or problems:
        msg = f"task package {str(folder)!r} is not well formed:\n" + "\n".join(f"- {text}" for text in problems)
        raise TaskError(msg)
    return task


def check_task(folder: Path) -> list[str]:
    """Problems of a package, each with file, field, value and way out; empty when it is well formed."""
    return _read(folder)[1]


def _read(folder: Path) -> tuple[Task | None, list[str]]:
    try:
        spec = _spec(folder)
        description = _description(folder, spec.description)
        task = Task(
            folder=folder,
            spec=spec,
            description=description,
            initial=_initial(folder, spec.program.folder),
            evaluator=_files(folder, spec.evaluator),
            public={} if spec.public is None else _files(folder, spec.public),
        )
    except _Problems as problems:
        return None, problems.texts
    return task, list(_inconsistencies(task))


class _Problems(Exception):
    def __init__(self, *texts: str) -> None:
        super().__init__(*texts)
        self.texts = list(texts)


def _spec(folder: Path) -> TaskSpec:
    try:
        document = load_yaml(_text(folder, TASK_FILE).encode(), TASK_FILE)
    except InputError as error:
        raise _Problems(str(error)) from error
    try:
        return TaskSpec.model_validate(document)
    except ValidationError as error:
        raise _Problems(*map(_complaint, error.errors())) from error


def _complaint(error: Any) -> str:  # noqa: ANN401 - pydantic's own error record
    field = ".".join(map(str, error["loc"])) or "the document"
    value = "" if error["type"] == "missing" or isinstance(error["input"], dict) else f" is {shown(error['input'])}"
    reason = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"]
    if error["type"] == "extra_forbidden":
        reason += "; the key is not known here, correct or remove it"
    return f"{TASK_FILE}: `{field}`{value}: {reason}"


def _description(folder: Path, path: str) -> str:
    text = _text(folder, path)
    if not text.strip():
        msg = f"{path}: is empty; write what a model must know to improve the program"
        raise _Problems(msg)
    return text


def _initial(folder: Path, path: str) -> FileTree:
    try:
        return FileTree(_files(folder, path))
    except InputError as error:
        msg = f"{path}/: {error}"
        raise _Problems(msg) from error


def _inconsistencies(task: Task) -> Iterator[str]:
    spec = task.spec
    if task.folder.resolve().name != spec.name:
        yield f"{TASK_FILE}: `name` is {spec.name!r}, but the folder is {task.folder.resolve().name!r}; make them equal"
    entry = f"{spec.program.folder}/{spec.program.entry}"
    if spec.program.entry not in task.initial:
        yield f"{TASK_FILE}: `program.entry` is {spec.program.entry!r}, but {entry} does not exist; add the file"
    else:
        yield from _missing_functions(entry, task.initial[spec.program.entry], set(spec.functions))
    needed = {"evaluate"}
    if any(isinstance(split, GeneratedSplit) for split in spec.splits.values()):
        needed.add("generate")
    code = f"{spec.evaluator}/{EVALUATOR_ENTRY}"
    if EVALUATOR_ENTRY not in task.evaluator:
        yield f"{code}: does not exist; add it, with the functions {', '.join(sorted(needed))}"
    else:
        yield from _missing_functions(code, task.evaluator[EVALUATOR_ENTRY], needed)
    yield from _taken_modules(task)


def _taken_modules(task: Task) -> Iterator[str]:
    for path in task.evaluator:
        if path.partition("/")[0].removesuffix(".py") in TAKEN_MODULES:
            yield f"{task.spec.evaluator}/{path}: has the name of a module of ours, which would be imported; rename it"


def _missing_functions(path: str, source: bytes, names: set[str]) -> Iterator[str]:
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        yield f"{path}: is not Python: {error}"
        return
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    for name in sorted(names - defined):
        yield f"{path}: defines no function {name!r} at its top level; add it"


def _files(folder: Path, path: str) -> dict[str, bytes]:
    """Every file below a folder of the package, by path relative to that folder."""
    root = _inside(folder, path)
    if not root.is_dir():
        msg = f"{path}/: is not a folder; create it, or name another in {TASK_FILE}"
        raise _Problems(msg)
    files: dict[str, bytes] = {}
    for entry in sorted(root.rglob("*")):
        relative = entry.relative_to(root).as_posix()
        if "__pycache__" in relative:
            continue
        _inside(folder, f"{path}/{relative}")
        if entry.is_file():
            files[_checked_path(path, relative)] = _bytes(entry, f"{path}/{relative}", MAX_FILE_BYTES)
    if not files or len(files) > MAX_FILES:
        msg = f"{path}/: holds {len(files)} files; 1 to {MAX_FILES} are possible"
        raise _Problems(msg)
    return files


def _checked_path(folder: str, path: str) -> str:
    try:
        return check_path(path)
    except InputError as error:
        msg = f"{folder}/: {error}"
        raise _Problems(msg) from error


def _text(folder: Path, path: str) -> str:
    file = _inside(folder, path)
    if not file.is_file():
        msg = f"{path}: does not exist; create it"
        raise _Problems(msg)
    try:
        return _bytes(file, path, MAX_TEXT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path}: is not UTF-8 at byte {error.start}; save it as UTF-8"
        raise _Problems(msg) from error


def _inside(folder: Path, path: str) -> Path:
    """The place of a relative path, without a symbolic link on the way."""
    place = folder
    for part in path.split("/"):
        place = place / part
        if place.is_symlink():
            msg = f"{path}: {part!r} is a symbolic link to {os.readlink(place)!r}; put the file itself there"  # noqa: PTH115
            raise _Problems(msg)
    return place


def _bytes(file: Path, path: str, limit: int) -> bytes:
    try:
        return read_file(file, limit, follow=False)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise _Problems(msg) from error
