"""A database file as it lies on the user's disk: read once and whole, never written to, never opened with SQLite.

SQLite is not safe against a file that somebody prepared; so the file is opened in a container alone. What is read here
are bytes: the database, and where it has one, its write-ahead log or its rollback journal, without which the last
changes would be missing or half done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.runtime.user_files import read_file

NAME = "database.sqlite"
"""What the database is called wherever it comes to."""
_MAGIC = b"SQLite format 3\0"
_COMPANIONS = ("-wal", "-journal")
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFile:
    """The bytes of a database."""

    path: Path
    files: Mapping[str, bytes] = field(repr=False)
    """`database.sqlite`, and with `-wal` or `-journal` what belongs to it; not empty, except for the latter two."""
    digest: str
    """`sha256:` and 64 hex digits over all of them."""


def read_database(path: Path, limit: int) -> DatabaseFile:
    """Read a database.

    Args:
        path: Of the file; may be a symbolic link to one, but what lies beside it may not.
        limit: Most bytes to accept, of all its files together.

    Raises:
        InputError: It cannot be read, is no SQLite database, is too large, or is being written to all the time.
    """
    for _ in range(_ATTEMPTS):
        before = _state(path)
        files = _read(path, limit)
        if _state(path) == before:
            return DatabaseFile(path=path, files=files, digest=_digest(files))
    msg = f"database {str(path)!r} changes while it is read; close what writes to it, or give a copy"
    raise InputError(msg)


def _read(path: Path, limit: int) -> dict[str, bytes]:
    try:
        content = read_file(path, limit)
        if not content.startswith(_MAGIC):
            what = "is no SQLite database" if content else "is empty, and no SQLite database"
            msg = f"{str(path)!r} {what}; give the original file"
            raise InputError(msg)
        files = {NAME: content}
        real = path.resolve()  # SQLite looks beside the file itself, and not beside a link to it
        for suffix in _COMPANIONS:
            beside = real.with_name(real.name + suffix)
            if beside.exists() or beside.is_symlink():
                # SQLite never makes a link of it, and one could bring in another database's last changes.
                files[NAME + suffix] = read_file(beside, limit - sum(map(len, files.values())), follow=False)
    except (OSError, RuntimeError) as error:  # of a loop of links, `resolve` tells with the latter
        reason = error.strerror if isinstance(error, OSError) else "it is a loop of symbolic links"
        msg = f"cannot read database {str(path)!r}: {reason}"
        raise InputError(msg) from error
    return files


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """What changes when somebody writes to the file or its companions; None for one that is not there."""
    states: list[tuple[int, int, int] | None] = []
    try:
        real = path.resolve()
        for suffix in ("", *_COMPANIONS):
            try:
                found = real.with_name(real.name + suffix).stat()
            except FileNotFoundError:
                states.append(None)
            else:
                states.append((found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, RuntimeError):
        return []  # reading it says what is wrong
    return states


def _digest(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(name.encode() + hashlib.sha256(files[name]).digest())
    return "sha256:" + whole.hexdigest()
