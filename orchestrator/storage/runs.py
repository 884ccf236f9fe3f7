"""Run folders under `<home>/runs/<run id>`: made exclusively, listed, opened, and removed when nobody lives in them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import EvolvariumError, PrerequisiteError, RunStateError
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.locks import FileLock, holder

_RUN_ID = re.compile(r"[0-9a-f]{12}")
_REMOVED_PREFIX = ".removed-"
_JOURNAL = "journal.sqlite"
_LOCK = "journal.sqlite.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One run folder, from outside."""

    id: str
    path: Path
    created_at: str | None
    """ISO 8601, UTC; None: the journal cannot be read, and `problem` says why."""
    size_bytes: int
    owner_pid: int | None
    """Process that owns it, 0 if it cannot be told; None: nobody does."""
    problem: str | None = None


class RunStore:
    """All runs of a home folder. Thread-safe, and safe across processes: it holds no state of its own."""

    def __init__(self, home: Path) -> None:
        """Nothing is made before the first `create`.

        Args:
            home: Where runs, audit chain and settings of the installation live.
        """
        self._runs = home / "runs"

    def create(self) -> tuple[str, SqliteJournal]:
        """A new run: its random id (12 hex digits), and its empty journal, owned by this process.

        Raises:
            PrerequisiteError: The folder cannot be made or written.
        """
        run_id = secrets.token_hex(6)
        folder = self._runs / run_id
        try:
            self._runs.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            _sync(self._runs)
        except OSError as error:
            msg = f"cannot make run folder {folder}: {error.strerror}; choose another home or free disk space"
            raise PrerequisiteError(msg) from error
        try:
            return run_id, SqliteJournal(folder / _JOURNAL)
        except EvolvariumError:
            shutil.rmtree(folder, ignore_errors=True)  # nothing was recorded in it, and nobody knows its id
            raise

    def open(self, run_id: str, *, read_only: bool = False) -> SqliteJournal:
        """The journal of an existing run.

        Raises:
            RunStateError: No such run, it is damaged, or a live process owns it (unless `read_only`).
        """
        return SqliteJournal(self.folder(run_id) / _JOURNAL, read_only=read_only, create=False)

    def folder(self, run_id: str) -> Path:
        """Folder of an existing run, for what is derived from its journal.

        Raises:
            RunStateError: No such run.
        """
        folder = self._runs / run_id
        if not _RUN_ID.fullmatch(run_id) or folder.is_symlink() or not folder.is_dir():
            msg = f"there is no run {run_id!r} under {self._runs}; `evolvarium runs list` shows those there are"
            raise RunStateError(msg)
        return folder

    def list(self) -> tuple[RunInfo, ...]:
        """Every run, oldest first, those that cannot be read last.

        Raises:
            PrerequisiteError: The folder of all runs cannot be read.
        """
        try:
            with os.scandir(self._runs) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return ()
        except OSError as error:
            msg = f"cannot list {self._runs}: {error.strerror}; check its permissions, or move it away"
            raise PrerequisiteError(msg) from error
        infos = [self._info(self._runs / name) for name in names if _RUN_ID.fullmatch(name)]
        return tuple(sorted(infos, key=lambda info: (info.created_at is None, info.created_at or "", info.id)))

    def owner_pid(self, run_id: str) -> int | None:
        """The process that works on a run now; None: none does.

        Raises:
            RunStateError: There is no such run.
        """
        return holder(self.folder(run_id) / _LOCK)

    def remove(self, run_id: str) -> None:
        """Delete a run and all it recorded. A removal cut off by a crash is completed by the next one.

        Raises:
            RunStateError: No such run, or a live process owns it.
            PrerequisiteError: It cannot be deleted.
        """
        folder = self.folder(run_id)
        try:
            lock = FileLock(folder / _LOCK)
        except BlockingIOError as error:
            pid = holder(folder / _LOCK) or "unknown"
            msg = f"run {run_id} is in use by process {pid}; stop it with `kill {pid}` before removing the run"
            raise RunStateError(msg) from error
        except OSError as error:
            raise PrerequisiteError(_undeletable(folder, error)) from error
        try:
            doomed = folder.rename(self._runs / (_REMOVED_PREFIX + run_id))  # from here on no reader meets half a run
            shutil.rmtree(doomed)
        except OSError as error:
            raise PrerequisiteError(_undeletable(folder, error)) from error
        finally:
            lock.close()
        for left_over in self._runs.glob(_REMOVED_PREFIX + "*"):
            shutil.rmtree(left_over, ignore_errors=True)  # another remover may be at it as well

    def _info(self, folder: Path) -> RunInfo:
        created_at = problem = None
        try:
            with SqliteJournal(folder / _JOURNAL, read_only=True) as journal:
                created_at = journal.created_at
        except EvolvariumError as error:
            problem = str(error)
        return RunInfo(
            id=folder.name,
            path=folder,
            created_at=created_at,
            size_bytes=_size(folder),
            owner_pid=holder(folder / _LOCK),
            problem=problem,
        )


def _sync(folder: Path) -> None:
    """Make a new entry of the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    """Bytes of the files in a folder; those that vanish meanwhile, as SQLite's do, are not counted."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size


def _undeletable(folder: Path, error: OSError) -> str:
    return f"cannot remove {folder}: {error.strerror}; check its permissions"
