"""The audit log: a hash chain of container runs whose every entry, and so its head at any moment, is signed.

One line of canonical JSON per entry: `index`, `previous` (hash of the entry before), `key` (fingerprint of the signing
key, so that a hash kept elsewhere pins the key as well), `record`, `torn` (what a crash left of an entry that was never
acknowledged, or null), `hash` (SHA-256 over these) and `signature` (Ed25519 over the hash). Entry, hash and signature
are one write, so no crash separates them; it can only leave a torn last line.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.records import to_record
from orchestrator.errors import AuditError
from orchestrator.runtime.user_files import read_file
from orchestrator.storage.audit_report import GENESIS, MAX_LINE_BYTES, AuditReport, ChainWalk, canonical, entry_hash
from orchestrator.storage.locks import locked
from orchestrator.storage.signing import (
    fingerprint,
    load_private_key,
    load_public_key,
    make_private_key,
    public_pem,
    sign,
    write_durably,
)

_LOCK_SECONDS = 30.0
_TAIL_BYTES = 1 << 16
_PUBLIC_KEY_BYTES = 4096


class AuditChain:
    """Implements `ports.AuditLog` in `<home>/audit`. Thread-safe, and safe across processes."""

    def __init__(self, home: Path) -> None:
        """Nothing is made before the first `append` or `require_writable`.

        Args:
            home: Where runs, audit chain and settings of the installation live.
        """
        self._folder = home / "audit"
        self._chain = self._folder / "chain.jsonl"
        self._private = self._folder / "key.pem"
        self._public = self._folder / "public.pem"
        self._threads = threading.Lock()  # guards _key and _tail; the file lock keeps other processes out
        self._key: Ed25519PrivateKey | None = None
        self._tail: tuple[int, int, str] | None = None  # file size, number of entries and last hash as we left them

    def append(self, record: AuditRecord) -> None:
        """See `ports.AuditLog`.

        Raises:
            AuditError: The log cannot be written, its key is missing or readable by others, or its end is damaged.
        """
        with self._alone():
            key = self._key or self._load_key()
            descriptor = self._open_chain()
            try:
                size, count, previous, torn = self._end(descriptor)
                line = _entry_line(key, count, previous, to_record(record), torn)
                self._write(descriptor, size, line)
                self._tail = (size + len(line), count + 1, json.loads(line)["hash"])
            finally:
                os.close(descriptor)

    def require_writable(self) -> None:
        """See that an entry could be appended now, before a container runs that would go unrecorded.

        Raises:
            AuditError: As `append`, which can still fail, for instance when the disk fills up.
        """
        with self._alone():
            self._key = self._key or self._load_key()
            descriptor = self._open_chain()
            try:
                self._end(descriptor)
            finally:
                os.close(descriptor)

    def export_head(self) -> dict[str, Any]:
        """What to keep outside of this machine: `records`, `head`, `signature` and `public_key` (PEM).

        Raises:
            AuditError: There is no entry yet, or the chain cannot be read.
        """
        if not os.path.lexists(self._folder):  # looking must not make it
            msg = f"there is no audit chain in {self._folder}; it begins with the first container that runs"
            raise AuditError(msg)
        last = None
        with self._alone():
            for line in self._lines():
                last = line
            try:
                entry = json.loads(last or b"")
                head = {"records": entry["index"] + 1, "head": entry["hash"], "signature": entry["signature"]}
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                msg = f"{self._chain} has no readable last entry to export; see `evolvarium audit verify`"
                raise AuditError(msg) from error
            return {**head, "public_key": self._read_public().decode(errors="replace")}

    def verify(self, expected_head: str | None = None) -> AuditReport:
        """Walk the whole chain.

        Args:
            expected_head: The hash of a head exported earlier and kept elsewhere. It is found in an intact chain, as
                its last entry or, when it has grown since, before that.

        Returns:
            The findings; a chain that does not verify is a report too.

        Raises:
            AuditError: The chain cannot be read, which says nothing of whether it is intact.
        """
        if not os.path.lexists(self._folder):  # looking must not make it
            return ChainWalk(None, expected_head).report()
        with self._alone():
            has_keys = self._private.exists() or self._public.exists()
            key = load_public_key(self._read_public())
            walk = ChainWalk(key, expected_head, has_lost_file=has_keys and not os.path.lexists(self._chain))
            for line in self._lines():
                if not walk.step(line):
                    break
            return walk.report()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._threads:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with locked(self._folder / "lock", patience_seconds=_LOCK_SECONDS):
                    yield
            except BlockingIOError as error:
                msg = f"the audit log {self._folder} was busy for {_LOCK_SECONDS:g} s; see which process holds its lock"
                raise AuditError(msg) from error
            except OSError as error:
                msg = f"cannot use the audit log {self._folder}: {error.strerror}; check permissions and disk space"
                raise AuditError(msg) from error

    def _load_key(self) -> Ed25519PrivateKey:
        if self._private.exists():
            self._key = load_private_key(self._private)
        elif self._chain.exists() and self._chain.stat().st_size:
            msg = f"{self._private} is missing, but {self._chain} has entries; restore the key or move the folder aside"
            raise AuditError(msg)
        else:
            self._key = make_private_key(self._private)
        public = public_pem(self._key)
        if not self._public.exists():
            write_durably(self._public, public, mode=0o644)
        if self._read_public() != public:
            self._key = None
            msg = f"{self._private} and {self._public} do not belong together; restore both, or move the folder aside"
            raise AuditError(msg)
        return self._key

    def _read_public(self) -> bytes:
        try:
            return read_file(self._public, _PUBLIC_KEY_BYTES, follow=False)
        except FileNotFoundError:
            return b""

    def _open_chain(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        is_new = not self._chain.exists()
        descriptor = os.open(self._chain, flags, 0o600)
        try:
            _require_regular(self._chain, descriptor)
            if is_new:
                _sync_folder(self._folder)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _end(self, descriptor: int) -> tuple[int, int, str, Mapping[str, Any] | None]:
        """Size without a torn last line, number of entries, last hash, and a note on what was torn."""
        size = os.fstat(descriptor).st_size
        if self._tail is not None and self._tail[0] == size:
            return (*self._tail, None)
        data = b""
        while data.count(b"\n") < 2 and len(data) < size:  # the last whole line begins after the newline before it
            data = os.pread(descriptor, min(size, len(data) + _TAIL_BYTES), max(0, size - len(data) - _TAIL_BYTES))
        *whole, rest = data.split(b"\n")
        torn = {"bytes": len(rest), "digest": "sha256:" + hashlib.sha256(rest).hexdigest()} if rest else None
        if not whole:
            return 0, 0, GENESIS, torn
        try:
            entry = json.loads(whole[-1])
            return size - len(rest), entry["index"] + 1, entry["hash"], torn
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            msg = f"the last entry of {self._chain} is damaged; see `evolvarium audit verify`, then move it aside"
            raise AuditError(msg) from error

    def _write(self, descriptor: int, size: int, line: bytes) -> None:
        """Append durably after `size` bytes; what lies behind them was never acknowledged."""
        try:
            os.ftruncate(descriptor, size)
            while line:
                line = line[os.write(descriptor, line) :]  # on a disk that is nearly full: a part, then an error
            os.fsync(descriptor)
        except BaseException:
            self._tail = None
            os.ftruncate(descriptor, size)
            raise

    def _lines(self) -> Iterator[bytes]:
        try:
            descriptor = os.open(self._chain, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        with os.fdopen(descriptor, "rb") as file:
            _require_regular(self._chain, descriptor)
            while line := file.readline(MAX_LINE_BYTES + 1):
                yield line


def _entry_line(
    key: Ed25519PrivateKey, index: int, previous: str, record: Mapping[str, Any], torn: Mapping[str, Any] | None
) -> bytes:
    fingerprint_of_key = fingerprint(key.public_key())
    core = {"index": index, "previous": previous, "key": fingerprint_of_key, "record": record, "torn": torn}
    digest = entry_hash(core)
    return canonical({**core, "hash": digest, "signature": sign(key, digest)}) + b"\n"


def _require_regular(path: Path, descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        msg = f"{path} is not a regular file; move it away"
        raise AuditError(msg)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
