"""Exclusive file locks that the kernel drops when their owner dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.runtime.user_files import open_regular

_RETRY_SECONDS = 0.02
_PROBE_PATIENCE_SECONDS = 0.25  # `holder` of another process takes the lock for an instant; that is no owner


class FileLock:
    """Holds an exclusive lock from construction to `close`; the file names the holder's process id."""

    def __init__(self, path: Path, *, patience_seconds: float = _PROBE_PATIENCE_SECONDS) -> None:
        """Take the lock.

        Args:
            path: The lock file; made if missing, never removed by us: removing it would let two owners in.
            patience_seconds: How long to wait for another owner.

        Raises:
            BlockingIOError: Somebody else holds it.
            OSError: The file cannot be opened, or is none.
        """
        self._path = path
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(self._descriptor, patience_seconds)
            with suppress(OSError):  # only for messages; on a full disk a run must still be owned to be removed
                os.truncate(self._descriptor, 0)
                os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise

    @property
    def is_at_its_path(self) -> bool:
        """Whether the lock file is still the one at its path, and not moved or removed with its folder."""
        try:
            there = self._path.stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def close(self) -> None:
        """Let go; idempotent."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.truncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def holder(path: Path) -> int | None:
    """Process id of whoever holds the lock, 0 if it cannot be told; None: nobody does."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 20, 0)
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


@contextmanager
def locked(path: Path, *, patience_seconds: float) -> Iterator[None]:
    """Hold the lock for a block.

    Raises:
        BlockingIOError: Somebody else held it for all that time.
        OSError: The file cannot be opened.
    """
    lock = FileLock(path, patience_seconds=patience_seconds)
    try:
        yield
    finally:
        lock.close()


def _lock(descriptor: int, patience_seconds: float) -> None:
    give_up_at = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
