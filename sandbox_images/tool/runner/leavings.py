"""What a tool left on the disk, read without following anything that lies there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from channel import complain

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO that nobody writes to opens at once
_CHUNK = 1 << 20


def read_output(folder: Path, path: str, most_bytes: int) -> tuple[str, bytes]:
    """(`ok`, `missing`, `not-a-file` or `too-large`, the content where it is ok).

    Args:
        folder: The tool's working folder.
        path: Relative to it; each part must be what it seems to be, no link.
        most_bytes: A longer file is too large.
    """
    try:
        descriptor = _open(folder, path.split("/"))
    except FileNotFoundError:
        return "missing", b""
    except OSError:  # a link, a socket, or nothing that may be read
        return "not-a-file", b""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return "not-a-file", b""
        if found.st_size > most_bytes:
            return "too-large", b""
        content = _read(descriptor, most_bytes + 1)
    finally:
        os.close(descriptor)
    return ("ok", content) if len(content) <= most_bytes else ("too-large", b"")


def is_full(folder: Path) -> bool:
    """A hint, read before anything is cleaned: no block or no inode is left."""
    try:
        disk = os.statvfs(folder.parent)
    except OSError as error:
        complain(f"cannot look at the disk: {error}")
        return False
    return disk.f_bavail == 0 or (disk.f_files > 0 and disk.f_ffree == 0)


def _open(folder: Path, parts: list[str]) -> int:
    """The file as a descriptor.

    Raises:
        OSError: It cannot be opened so; `FileNotFoundError` where nothing is there.
    """
    directory = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=directory)
            os.close(directory)
            directory = inner
        return os.open(parts[-1], _FILE, dir_fd=directory)
    finally:
        os.close(directory)


def _read(descriptor: int, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    while most_bytes and (part := os.read(descriptor, min(most_bytes, _CHUNK))):
        parts.append(part)
        most_bytes -= len(part)
    return b"".join(parts)
