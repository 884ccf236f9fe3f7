"""The truth of a run: one SQLite file that survives `kill -9`, with one live owner and any number of readers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, func, insert, inspect, select
from sqlalchemy.exc import DatabaseError, IntegrityError

from orchestrator.errors import PrerequisiteError, RunStateError
from orchestrator.storage.journal_files import damaged, is_there, missing
from orchestrator.storage.locks import FileLock, holder
from orchestrator.storage.schema import SCHEMA_VERSION, blobs, create_engine, meta, metadata, records

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_.:-]{0,199}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PAGE_ROWS = 64


class SqliteJournal:
    """Implements `ports.Journal`. Thread-safe; a context manager."""

    def __init__(self, path: Path, *, read_only: bool = False, create: bool = True) -> None:
        """Open a journal.

        Args:
            path: The SQLite file; its lock lies beside it.
            read_only: Read what is there, also while its owner is alive.
            create: Make the file if it is missing or still empty; its folder must exist.

        Raises:
            RunStateError: It is missing, damaged, of another schema version, or owned by a live process.
            PrerequisiteError: The disk is full, or the file or its folder cannot be written. So for every method below.
        """
        self._path = path
        self._read_only = read_only
        self._lock = threading.RLock()  # guards _connection, which one thread at a time may use
        if not is_there(path) and (read_only or not create):
            raise RunStateError(missing(path))
        self._owner = None if read_only else _own(path)
        self._engine = create_engine(path, read_only=read_only)
        self._connection: Connection | None = None
        try:
            self._open(create=create and not read_only)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._path

    @property
    def created_at(self) -> str:
        """When the journal was made; ISO 8601, UTC."""
        with self._transaction("read") as connection:
            value = connection.scalar(select(meta.c.value).where(meta.c.name == "created_at"))
        return str(value)

    @property
    def is_written_elsewhere(self) -> bool:
        """Whether another process, which is alive, owns the journal and goes on with it."""
        return self._owner is None and holder(_lock_of(self._path)) not in (None, os.getpid())

    def get(self, key: str) -> Mapping[str, Any] | None:
        """See `ports.Journal`.

        Raises:
            RunStateError: The file cannot be read, or the record is damaged.
        """
        with self._transaction("read") as connection:
            row = connection.execute(
                select(records.c.key, records.c.digest, records.c.record).where(records.c.key == key)
            ).first()
        return None if row is None else self._record(*row)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """See `ports.Journal`.

        Raises:
            RunStateError: The key has a record already, or the file cannot be written.
            ValueError: The key is malformed, or the record is not JSON.
        """
        check_key(key)
        text = canonical_json(key, record)
        row = {"key": key, "digest": _digest(text.encode()), "record": text}
        try:
            with self._transaction("write") as connection:
                connection.execute(insert(records), row)
        except IntegrityError as error:
            msg = f"{self._path}: step {key!r} has a record already; each is written once"
            raise RunStateError(msg) from error

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `ports.Journal`; holds what is there when the iteration begins.

        Raises:
            RunStateError: The file cannot be read, or a record is damaged.
        """
        with self._transaction("read") as connection:
            last = connection.scalar(select(func.max(records.c.position))) or 0
        position = 0
        page = (
            select(records.c.position, records.c.key, records.c.digest, records.c.record)
            .where(records.c.position <= last, func.substr(records.c.key, 1, len(prefix)) == prefix)
            .order_by(records.c.position)
            .limit(_PAGE_ROWS)
        )
        while True:  # by pages, so that a slow consumer holds no lock
            with self._transaction("read") as connection:
                rows = connection.execute(page.where(records.c.position > position)).all()
            for position, key, digest, text in rows:  # noqa: B007 - the last one is where the next page begins
                yield key, self._record(key, digest, text)
            if len(rows) < _PAGE_ROWS:
                return

    def put_blob(self, content: bytes) -> str:
        """See `ports.Journal`.

        Raises:
            RunStateError: The file cannot be written.
        """
        digest = _digest(content)
        with self._transaction("write") as connection:
            if connection.scalar(select(blobs.c.digest).where(blobs.c.digest == digest)) is None:
                connection.execute(insert(blobs), {"digest": digest, "content": content})
        return digest

    def get_blob(self, digest: str) -> bytes:
        """See `ports.Journal`.

        Raises:
            RunStateError: Nothing has this digest, its content is damaged, or the file cannot be read.
        """
        with self._transaction("read") as connection:
            content = connection.scalar(select(blobs.c.content).where(blobs.c.digest == digest))
        if content is None:
            hint = "" if _DIGEST.fullmatch(digest) else "; a digest is 'sha256:' and 64 hex digits"
            msg = f"{self._path} holds no content with digest {digest!r}{hint}"
            raise RunStateError(msg)
        if _digest(content) != digest:
            raise RunStateError(damaged(self._path, f"content {digest} differs from its digest"))
        return bytes(content)

    def close(self) -> None:
        """Close the file and let the next owner in; idempotent."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._engine.dispose()
            if self._owner is not None:
                self._owner.close()
                self._owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _open(self, *, create: bool) -> None:
        with _translated(self._path, "read"):
            self._connection = self._engine.connect()
        with self._transaction("create" if create else "read") as connection:
            if create and not inspect(connection).get_table_names():
                metadata.create_all(connection)
                made = {"schema_version": SCHEMA_VERSION, "created_at": datetime.now(UTC).isoformat()}
                connection.execute(insert(meta), [{"name": name, "value": value} for name, value in made.items()])
            if not inspect(connection).has_table("meta"):
                msg = f"{self._path} is not the journal of a run; `evolvarium runs list` shows those there are"
                raise RunStateError(msg)
            version = connection.scalar(select(meta.c.value).where(meta.c.name == "schema_version"))
            if version != SCHEMA_VERSION:
                msg = f"{self._path} has journal schema {version!r}, this version reads {SCHEMA_VERSION!r}; use its own"
                raise RunStateError(msg)
            if not self._read_only:
                finding = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
                if finding != "ok":
                    raise RunStateError(damaged(self._path, str(finding)))

    @contextmanager
    def _transaction(self, purpose: str) -> Iterator[Connection]:
        with self._lock:
            if self._connection is None:
                msg = f"{self._path} is closed; open the run again"
                raise RunStateError(msg)
            if purpose == "write" and self._read_only:
                msg = f"{self._path} was opened for reading; open the run as its owner to write"
                raise RunStateError(msg)
            with _translated(self._path, purpose), self._connection.begin():
                yield self._connection

    def _record(self, key: str, digest: str, text: str) -> Mapping[str, Any]:
        if not isinstance(text, str) or _digest(text.encode(errors="replace")) != digest:
            raise RunStateError(damaged(self._path, f"the record of {key!r} differs from its digest"))
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RunStateError(
                damaged(self._path, f"the record of {key!r} is not JSON that was written here")
            ) from error
        if not isinstance(record, dict):
            raise RunStateError(damaged(self._path, f"the record of {key!r} is no JSON object"))
        return record


def check_key(key: str) -> None:
    """Accept letters, digits and `/ _ . : -`, at most 200, beginning with a letter or digit.

    Raises:
        ValueError: Anything else.
    """
    if not _KEY.fullmatch(key):
        msg = f"journal key {key!r} is malformed; use at most 200 letters, digits and '/_.:-'"
        raise ValueError(msg)


def canonical_json(key: str, record: Mapping[str, Any]) -> str:
    """A record as ASCII JSON (so that lone surrogates in untrusted text survive), without NaN and infinities.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return json.dumps(dict(record), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"record of {key!r} is not JSON: {error}"
        raise ValueError(msg) from error


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _own(path: Path) -> FileLock:
    lock_path = _lock_of(path)
    try:
        lock = FileLock(lock_path)
    except BlockingIOError as error:
        pid = holder(lock_path) or "unknown"
        msg = f"{path} is in use by process {pid}; wait until it ends, or stop it with `kill {pid}`"
        raise RunStateError(msg) from error
    except OSError as error:
        msg = f"cannot lock {path}: {error.strerror}; check that its folder exists and is writable"
        raise PrerequisiteError(msg) from error
    if not lock.is_at_its_path:
        lock.close()
        raise RunStateError(missing(path))
    return lock


@contextmanager
def _translated(path: Path, purpose: str) -> Iterator[None]:
    """Turn the database's errors into ours; a violated uniqueness stays what it is."""
    try:
        yield
    except IntegrityError:
        raise
    except (UnicodeDecodeError, TypeError, OverflowError) as error:  # text that is no text, content of another type
        raise RunStateError(damaged(path, str(error))) from error
    except DatabaseError as error:
        cause = str(error.orig)
        if "full" in cause or "disk I/O" in cause:
            msg = f"cannot {purpose} {path}: {cause}; nothing recorded is lost: free disk space, then resume the run"
            raise PrerequisiteError(msg) from error
        if "readonly" in cause or "unable to open" in cause:
            msg = f"cannot {purpose} {path}: {cause}; check the permissions of the file and its folder"
            raise PrerequisiteError(msg) from error
        if "malformed" in cause or "not a database" in cause:
            msg = damaged(path, cause)
        else:
            msg = f"cannot {purpose} {path}: {cause}; check the file and its permissions"
        raise RunStateError(msg) from error


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()
