"""A new task package: a small task that works, to be turned into another one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from orchestrator.errors import InputError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_FILES = {
    "README.md": "README.md.txt",
    "task.yaml": "task.yaml.txt",
    "description.md": "description.md.txt",
    "evaluator/evaluate.py": "evaluate.py.txt",
}
"""Place in the package to name of the template."""
_ONE_MODULE = {"initial/program.py": "program.py.txt"}
_TWO_MODULES = {"initial/program.py": "program_with_model.py.txt", "initial/model.py": "model.py.txt"}
_WORDS_OF_TWO = """
It may be changed together with `model.py`, which it imports; every program consists of these two files.
"""


def new_task(parent: Path, name: str, *, known: Mapping[str, Path] = {}, two_modules: bool = False) -> Path:
    """Write the package `parent/name` and return its folder.

    Args:
        parent: Made if it is missing.
        name: Of the task.
        known: Folders of the tasks that can be named without a path; another one of such a name would be mistaken.
        two_modules: Its program is `program.py` with a `model.py` instead of `program.py` alone.

    Raises:
        InputError: The name is not possible or that of a known task, something is there, or it cannot be written.
    """
    if not _NAME.fullmatch(name):
        msg = f"task name {name!r} is not possible; use up to 48 lower-case letters, digits and '_', a letter first"
        raise InputError(msg)
    folder = parent / name
    if name in known and folder.resolve() != known[name].resolve():
        msg = f"task name {name!r} is taken by {str(known[name])!r}, which the bare name means; choose another"
        raise InputError(msg)
    words = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "folder": shlex.quote(folder.as_posix()),
        "modules": _WORDS_OF_TWO if two_modules else "",
    }
    templates = resources.files("orchestrator.evaluation") / "skeleton"
    try:
        folder.mkdir(parents=True)
        for place, template in (_FILES | (_TWO_MODULES if two_modules else _ONE_MODULE)).items():
            file = folder / place
            file.parent.mkdir(exist_ok=True)
            text = (templates / template).read_text(encoding="utf-8")
            file.write_text(Template(text).substitute(words), encoding="utf-8")
    except FileExistsError as error:
        msg = f"{str(folder)!r} exists already; choose another name or place"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"cannot write {str(folder)!r}: {error.strerror}"
        raise InputError(msg) from error
    return folder
