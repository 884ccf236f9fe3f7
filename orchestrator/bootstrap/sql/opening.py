"""One database outside of any run, for a single command."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.bootstrap.bench import Bench, open_bench, stops_as_cancelled
from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.sql.choices import QUERY_SECONDS
from orchestrator.bootstrap.sql.databases import predicted_seconds
from orchestrator.domain.policies import Policy
from orchestrator.errors import InputError
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.runtime.workers import CancelToken


@dataclass(frozen=True, kw_only=True)
class OpenFor:
    """Who opens a database, and how the opening is followed and stopped."""

    places: Places
    policy: Policy
    token: CancelToken
    note: Callable[[str], None]
    """Told what takes a while."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A database, and what else of it can be run in containers."""

    database: SandboxDatabase
    bench: Bench
    run_id: str
    """Labels containers and audit records."""


@contextmanager
def open_database(path: Path, command: str, opener: OpenFor) -> Iterator[SandboxDatabase]:
    """A database alone; otherwise as `open_with_bench`."""
    with open_with_bench(path, command, opener) as opened:
        yield opened.database


@contextmanager
def open_with_bench(path: Path, command: str, opener: OpenFor) -> Iterator[Opened]:
    """A database in the predicted domain; its id, which data rules go by, is the file's name without suffix.

    Args:
        path: Of the SQLite file.
        command: Begins the id that labels containers and audit records.
        opener: Of the caller.

    Raises:
        InputError: It is no database, or nothing of it may be read.
        PolicyError: No data rule names it.
        PrerequisiteError: Engine or images are missing.
        SandboxError: The sandbox failed.
        Cancelled: An operator asked to stop, also while the caller's block goes on.
    """
    require_file(path)
    run_id = f"{command}-{secrets.token_hex(6)}"
    opening = open_bench(opener.places, opener.policy, opener.token, opener.note)
    with stops_as_cancelled(opener.token), opening as bench:
        store = DatabaseStore(bench.sandbox, home=writable_home(opener.places), image_digest=bench.images.digest)
        seconds = predicted_seconds(opener.policy, path.stem, QUERY_SECONDS)
        with store.open(path, path.stem, Domain.PREDICTED, run_id=run_id, query_seconds=seconds) as database:
            for suspicion in database.suspicions:
                opener.note(suspicion)
            yield Opened(database=database, bench=bench, run_id=run_id)


def require_file(path: Path) -> None:
    """See that a file is there, before anything is started.

    Raises:
        InputError: It is not, or it is something else.
    """
    if path.is_dir():
        msg = f"{str(path)!r} is a folder; give the SQLite file itself with --db"
        raise InputError(msg)
    if not path.exists():
        msg = f"there is no file {str(path)!r}; give the SQLite database with --db"
        raise InputError(msg)
    if not path.is_file():
        msg = f"{str(path)!r} is not a regular file; give the SQLite database with --db"
        raise InputError(msg)
