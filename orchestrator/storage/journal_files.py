"""The files of a journal: whether they are there, and what is said where one is missing or damaged."""

from __future__ import annotations

import stat
from pathlib import Path

from orchestrator.errors import RunStateError
from orchestrator.runtime.user_files import kind_at

_BESIDE = ("-wal", "-shm", "-journal", "")
"""Endings of the files that SQLite reads with a database, and its own."""


def is_there(path: Path) -> bool:
    """Whether the file is there; SQLite would wait for ever at a pipe in the place of it or of a file beside it.

    Raises:
        RunStateError: Something else is in such a place, or it cannot be told.
    """
    for suffix in _BESIDE:
        part = path.with_name(path.name + suffix)
        try:
            kind = kind_at(part)
        except OSError as error:
            msg = f"cannot read {part}: {error.strerror}; check its permissions and those of its folder"
            raise RunStateError(msg) from error
        if kind and not stat.S_ISREG(kind):
            raise RunStateError(damaged(path, f"{part.name} is not a regular file"))
    return kind_at(path) != 0


def damaged(path: Path, cause: str) -> str:
    """Of a journal that cannot be relied on."""
    return f"{path} is damaged ({cause}); restore it from a copy, or remove the run and start it again"


def missing(path: Path) -> str:
    """Of a journal that is not there."""
    return f"{path} does not exist; `evolvarium runs list` shows the runs there are"
