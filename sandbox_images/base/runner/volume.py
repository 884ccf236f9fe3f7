"""Writes files into a volume, without following anything that lies there, and says what is really on the disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from channel import write_all
from frames import ProtocolError

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_MAX_DEPTH = 8
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_READABLE_FILE = 0o444
_READABLE_DIRECTORY = 0o555


def segments_of(path: object) -> list[str]:
    """The parts of a safe relative path.

    Raises:
        ProtocolError: The path is not text, empty, absolute or too deep, or holds anything but letters, digits, `_`,
            `.` and `-`.
    """
    segments = path.split("/") if isinstance(path, str) else []
    if not 1 <= len(segments) <= _MAX_DEPTH or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        msg = f"file path {path!r} is not allowed"
        raise ProtocolError(msg)
    return segments


class Volume:
    """A directory that is filled once, file by file, each file piece by piece."""

    def __init__(self, root: Path) -> None:
        """Open the directory, which exists."""
        self._root = os.open(root, _DIRECTORY)
        self._file: int | None = None
        self._path = ""
        self._missing = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
        os.close(self._root)

    def write(self, path: object, offset: object, size: object, piece: bytes) -> None:
        """Add a piece; the first one creates the file, the last one makes it durable and read-only.

        Raises:
            ProtocolError: The path is not allowed, or the piece is not the next one.
            OSError: The disk is full, or something is there already.
        """
        segments = segments_of(path)
        if not (type(offset) is type(size) is int and 0 <= offset <= offset + len(piece) <= size):
            msg = f"a piece of {len(piece)} bytes at {offset!r} does not fit {path!r} of {size!r} bytes"
            raise ProtocolError(msg)
        if self._file is None and offset == 0:
            self._file, self._path, self._missing = self._create(segments), str(path), size
        if self._file is None or path != self._path or size - offset != self._missing:
            msg = f"the piece of {path!r} at {offset} is not the next one"
            raise ProtocolError(msg)
        write_all(self._file, piece)
        self._missing -= len(piece)
        if not self._missing:
            os.fchmod(self._file, _READABLE_FILE)
            os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def finish(self) -> str:
        """Close the volume to writing, make it durable and return the digest of what it holds.

        Raises:
            ProtocolError: A file is incomplete, or something lies in the volume that no frame brought.
        """
        if self._file is not None:
            msg = f"{self._path!r} still misses {self._missing} bytes"
            raise ProtocolError(msg)
        manifest = dict(self._read_back(self._root, ""))
        canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
        return "sha256:" + hashlib.sha256(canonical).hexdigest()

    def _create(self, segments: list[str]) -> int:
        directory = os.dup(self._root)
        try:
            for segment in segments[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(segment, 0o755, dir_fd=directory)
                inner = os.open(segment, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
            return os.open(segments[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
        finally:
            os.close(directory)

    def _read_back(self, directory: int, prefix: str) -> Iterator[tuple[str, str]]:
        """(path, SHA-256 in hex) of every file below `directory`."""
        for name in sorted(os.listdir(directory)):
            try:
                inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
            except OSError as error:
                msg = f"cannot open {prefix + name!r} in the volume: {error.strerror}"
                raise ProtocolError(msg) from error
            try:
                yield from self._digests(inner, prefix + name)
            finally:
                os.close(inner)
        with contextlib.suppress(PermissionError):  # the root of a volume may belong to someone else
            os.fchmod(directory, _READABLE_DIRECTORY)
        os.fsync(directory)

    def _digests(self, descriptor: int, path: str) -> Iterator[tuple[str, str]]:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            yield from self._read_back(descriptor, f"{path}/")
        elif stat.S_ISREG(mode):
            with os.fdopen(os.dup(descriptor), "rb") as file:
                yield path, hashlib.file_digest(file, "sha256").hexdigest()
        else:
            msg = f"{path!r} in the volume is neither a file nor a directory"
            raise ProtocolError(msg)
