"""Files at paths that people give: read and written without waiting, without end and without surprise.

A path may name a pipe, a device or a symbolic link. Reading a pipe waits for ever, reading `/dev/zero` never ends, and
a link in a folder that somebody else filled leads to files of ours. All faults are `OSError`s, whose `strerror`
completes the sentence "cannot read PATH: ...", so that each caller raises its own kind of error.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # opening waits for nobody at the other end
_NO_PATH = "no file can have this name"
"""It holds a null byte, or a character that no file system's encoding has."""


def kind_at(path: Path) -> int:
    """What lies at a path, links followed, as `stat.S_IFMT` gives it; 0: nothing.

    Raises:
        OSError: It cannot be told: a name is too long, links lead in a circle, a folder may not be entered.
    """
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except ValueError as error:
        raise _fault(errno.EINVAL, _NO_PATH, path) from error


def is_folder(path: Path) -> bool:
    """Whether a folder lies there, links followed.

    Raises:
        OSError: As `kind_at`.
    """
    return stat.S_ISDIR(kind_at(path))


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a regular file, for files of ours that others could have put something else in the place of.

    Args:
        path: Of the file, and no link.
        flags: Of `os.open`; what keeps it from waiting and from following a link is added.
        mode: Of a file that is made.

    Raises:
        OSError: It cannot be opened, or is a link, pipe, device or folder.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | _FLAGS, mode)
    try:
        _require_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_file(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Content of a regular file.

    Args:
        path: Of the file.
        limit: Most bytes to accept.
        follow: Whether `path` itself may be a symbolic link to a regular file.

    Raises:
        OSError: It cannot be opened, is not a regular file, is a link that is not wanted, or is larger.
    """
    return _read(os.fspath(path), limit, follow=follow, folder=None)


def read_tree(path: Path, *, max_files: int, max_bytes: int) -> dict[str, bytes]:
    """Content of every file below a folder, by relative POSIX path; `__pycache__` is left out.

    Args:
        path: The folder itself, not a link to one.
        max_files: Most files to accept.
        max_bytes: Most bytes to accept, of all files together.

    Raises:
        OSError: Something in it is a symbolic link or neither a regular file nor a folder, or it is too large.
    """
    if path.is_symlink():
        raise _fault(errno.ELOOP, "it is a symbolic link to a folder; give the folder itself", path)
    files: dict[str, bytes] = {}
    room = max_bytes
    for root, folders, names, descriptor in os.fwalk(path, onerror=_stop):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted((*folders, *names)):
            place = os.path.relpath(Path(root, name), path)
            kind = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                continue
            if not stat.S_ISREG(kind):
                what = "a symbolic link" if stat.S_ISLNK(kind) else "neither a file nor a folder"
                raise _fault(errno.EINVAL, f"{place!r} in it is {what}; put the file itself there", path)
            if len(files) == max_files:
                raise _fault(errno.EFBIG, f"it holds more than {max_files} files", path)
            files[place] = _read(name, room, follow=False, folder=descriptor)
            room -= len(files[place])
    return files


def check_target(path: Path, *, overwrite: bool) -> None:
    """See now whether `write_file` may write there; what can only fail while writing still can.

    Raises:
        OSError: A link or something that is no regular file is there, or a file that may not be overwritten.
    """
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    except ValueError as error:
        raise _fault(errno.EINVAL, _NO_PATH, path) from error
    if stat.S_ISLNK(kind) or not stat.S_ISREG(kind):
        what = "a symbolic link" if stat.S_ISLNK(kind) else "not a regular file"
        raise _fault(errno.EINVAL, f"it is {what}", path)
    if not overwrite:
        raise _fault(errno.EEXIST, "it exists", path)


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a regular file and make its folder; never through a link at `path`, never into a pipe or device.

    Args:
        path: Of the file.
        content: All of it.
        overwrite: Whether a regular file that is there may be replaced.

    Raises:
        OSError: It cannot be written, or something is there that may not be replaced.
    """
    check_target(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    create = os.O_CREAT | (0 if overwrite else os.O_EXCL)
    descriptor = os.open(path, os.O_WRONLY | create | os.O_NOFOLLOW | _FLAGS, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        _require_regular(descriptor, path)
        file.truncate(0)  # not at opening: a device or pipe must not be touched at all
        file.write(content)


def _read(name: str, limit: int, *, follow: bool, folder: int | None) -> bytes:
    flags = os.O_RDONLY | _FLAGS | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except ValueError as error:
        raise _fault(errno.EINVAL, _NO_PATH, name) from error
    with os.fdopen(descriptor, "rb") as file:
        _require_regular(file.fileno(), name)
        content = file.read(limit + 1)
    if len(content) > limit:
        raise _fault(errno.EFBIG, f"it has over {limit} bytes", name)
    return content


def _require_regular(descriptor: int, path: str | Path) -> None:
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(kind):
        raise _fault(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(kind):
        raise _fault(errno.EINVAL, "it is not a regular file", path)


def _fault(number: int, reason: str, path: str | Path) -> OSError:
    return OSError(number, reason, os.fspath(path))


def _stop(error: OSError) -> None:
    raise error
