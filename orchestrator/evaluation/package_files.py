"""The files of a task package, read without following a link, so that nothing from outside becomes part of it."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.domain.candidates import check_path
from orchestrator.errors import InputError
from orchestrator.runtime.user_files import read_file

MAX_TEXT_BYTES = 256 << 10
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 256


class Problems(Exception):
    """What is wrong with a part of a package, one sentence each."""

    def __init__(self, *texts: str) -> None:
        """Keep the sentences."""
        super().__init__(*texts)
        self.texts = list(texts)


def read_text(folder: Path, path: str) -> str:
    """A text of the package.

    Raises:
        Problems: It is missing, a link, too large or not UTF-8.
    """
    file = _inside(folder, path)
    if not file.is_file():
        msg = f"{path}: does not exist; create it"
        raise Problems(msg)
    try:
        return _bytes(file, path, MAX_TEXT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path}: is not UTF-8 at byte {error.start}; save it as UTF-8"
        raise Problems(msg) from error


def read_files(folder: Path, path: str) -> dict[str, bytes]:
    """Every file below a folder of the package, by path relative to that folder; `__pycache__` is left out.

    Raises:
        Problems: It is missing or empty, holds too much, or holds a link, pipe, device or unsuitable name.
    """
    root = _inside(folder, path)
    if not root.is_dir():
        msg = f"{path}/: is not a folder; create it, or name another in task.yaml"
        raise Problems(msg)
    files: dict[str, bytes] = {}
    for entry in sorted(root.rglob("*")):
        relative = entry.relative_to(root).as_posix()
        if "__pycache__" in relative:
            continue
        _inside(folder, f"{path}/{relative}")
        if entry.is_file():
            files[_checked_path(path, relative)] = _bytes(entry, f"{path}/{relative}", MAX_FILE_BYTES)
        elif not entry.is_dir():
            msg = f"{path}/{relative}: is a pipe, socket or device; a package holds files and folders, so remove it"
            raise Problems(msg)
    if not files or len(files) > MAX_FILES:
        msg = f"{path}/: holds {len(files)} files; 1 to {MAX_FILES} are possible"
        raise Problems(msg)
    return files


def _checked_path(folder: str, path: str) -> str:
    try:
        return check_path(path)
    except InputError as error:
        msg = f"{folder}/: {error}"
        raise Problems(msg) from error


def _inside(folder: Path, path: str) -> Path:
    """The place of a relative path, without a symbolic link on the way."""
    place = folder
    for part in path.split("/"):
        place = place / part
        if place.is_symlink():
            msg = f"{path}: {part!r} is a symbolic link to {os.readlink(place)!r}; put the file itself there"  # noqa: PTH115
            raise Problems(msg)
    return place


def _bytes(file: Path, path: str, limit: int) -> bytes:
    try:
        return read_file(file, limit, follow=False)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise Problems(msg) from error
