"""The standard streams of a command: what becomes of output that nobody reads or that cannot be written.

Exit code 1 says that the candidate failed, so no fault of a stream may end a command with it. What nobody reads (a
closed stream, `| head`) is dropped, and the command's own exit code counts. A result that cannot be written (a full
disk) is an error of its own; notes and progress that cannot be written are dropped.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from orchestrator.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDIN, _STDOUT, _STDERR = range(3)


def guard_streams() -> None:
    """Let the streams of this process behave as said above; called once, before anything is opened or printed."""
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: else the next file opened, perhaps a journal, would get its number and its output
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = _text(Guarded(_STDOUT, is_result=True), sys.stdout)
    sys.stderr = _text(Guarded(_STDERR, is_result=False), sys.stderr)


def print_page(page: str) -> int:
    """Print a page of the documentation, as the whole of a program; gives its exit code."""
    guard_streams()
    try:
        sys.stdout.write(page)
        sys.stdout.flush()
    except OutputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


class Guarded(io.RawIOBase):
    """The bytes of stdout or stderr."""

    def __init__(self, descriptor: int, *, is_result: bool) -> None:
        """Keep what is said.

        Args:
            descriptor: Of the stream; it stays open.
            is_result: Whether results are written here, or notes.
        """
        super().__init__()
        self._descriptor = descriptor
        self._is_result = is_result
        self._is_lost = False

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """Of the stream."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of it, or drop all of it.

        Raises:
            OutputError: It belongs to a result and cannot be written; what follows is dropped.
        """
        if not self._is_lost:
            try:
                return os.write(self._descriptor, data)
            except BrokenPipeError:
                self._is_lost = True
            except OSError as error:
                self._is_lost = self._is_result
                if self._is_result:
                    raise OutputError(_unwritten(error)) from error
        return memoryview(data).nbytes


def _text(raw: io.RawIOBase, like: TextIO | None) -> io.TextIOWrapper:
    """A text stream as Python made the one that it stands for; None: that one was closed."""
    encoding, errors = getattr(like, "encoding", None) or "utf-8", getattr(like, "errors", None) or "replace"
    if like is not None:
        with suppress(OSError):
            like.flush()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)


def _unwritten(error: OSError) -> str:
    return f"cannot write to stdout: {error.strerror}; what was done is done, but its result is lost: make room for it"
