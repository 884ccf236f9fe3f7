"""Files and folders that only their owner may read."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from orchestrator.errors import PrerequisiteError


def private_folder(path: Path) -> Path:
    """Make sure of a folder with mode 0700.

    Raises:
        PrerequisiteError: Something else is there, it belongs to somebody else, or others may enter it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(path, path.lstat(), stat.S_ISDIR)
    except OSError as error:
        msg = f"cannot use folder {str(path)!r}: {error.strerror}; check permissions and disk space"
        raise PrerequisiteError(msg) from error
    return path


def read_private(path: Path, limit: int) -> bytes | None:
    """Content of a private file, at most `limit` bytes; None: it does not exist.

    Raises:
        PrerequisiteError: It is a link or no file, belongs to somebody else, others may read it, or it is too large.
    """
    try:
        with open(path, "rb", opener=_open_to_check) as file:
            _require_private(path, os.fstat(file.fileno()), stat.S_ISREG)
            content = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"cannot read {str(path)!r}: {error.strerror}"
        raise PrerequisiteError(msg) from error
    if len(content) > limit:
        msg = f"{str(path)!r} is larger than {limit} bytes; remove it"
        raise PrerequisiteError(msg)
    return content


def write_private(path: Path, content: bytes) -> bool:
    """Write a file with mode 0600, whole or not at all; False: it exists already and stays as it is.

    Raises:
        PrerequisiteError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails when the name is taken, unlike a rename
        except FileExistsError:
            return False
        finally:
            draft.unlink()
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; check permissions and disk space"
        raise PrerequisiteError(msg) from error
    return True


def _open_to_check(path: str, flags: int) -> int:
    """Follow no link, and wait for nobody at the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _require_private(path: Path, found: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    if not is_kind(found.st_mode):
        kind = "folder" if is_kind is stat.S_ISDIR else "regular file"
        msg = f"{str(path)!r} is no {kind}; move it away"
        raise PrerequisiteError(msg)
    if found.st_uid != os.geteuid():
        msg = f"{str(path)!r} belongs to user {found.st_uid}, not to {os.geteuid()}; move it away, or run as its owner"
        raise PrerequisiteError(msg)
    if found.st_mode & 0o077:
        msg = f"{str(path)!r} has mode {stat.S_IMODE(found.st_mode):04o}, so others may read it; run `chmod go= {path}`"
        raise PrerequisiteError(msg)
