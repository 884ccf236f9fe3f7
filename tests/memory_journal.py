"""A journal in memory, and a fuse that stands for the end of its process; for tests that kill and resume."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.candidates import FileTree
from orchestrator.errors import RunStateError


class Killed(Exception):
    """Stands for the end of the process."""


class Fuse:
    """Burns through at the n-th touch, and stays burnt: a killed process does nothing any more."""

    def __init__(self, touches: int | None = None) -> None:
        self.left = touches
        self._lock = threading.Lock()

    def touch(self) -> None:
        with self._lock:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise Killed


class MemoryJournal:
    """`ports.Journal` in memory; the fuse is touched before and after every write."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.blobs: dict[str, bytes] = {}
        self.fuse = Fuse()
        self._lock = threading.Lock()

    def get(self, key: str) -> Mapping[str, Any] | None:
        with self._lock:
            text = self.entries.get(key)
        return None if text is None else json.loads(text)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        self.fuse.touch()
        with self._lock:
            if key in self.entries:
                msg = f"step {key!r} has a record already"
                raise RunStateError(msg)
            self.entries[key] = json.dumps(dict(record), allow_nan=False)
        self.fuse.touch()

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        with self._lock:
            found = [(key, json.loads(text)) for key, text in self.entries.items() if key.startswith(prefix)]
        return iter(found)

    def put_blob(self, content: bytes) -> str:
        digest = "sha256:" + FileTree({"blob": content}).manifest()["blob"]
        with self._lock:
            self.blobs[digest] = content
        return digest

    def get_blob(self, digest: str) -> bytes:
        with self._lock:
            return self.blobs[digest]
