"""What a tool does, told by the interpreter's audit events from inside the tool's own process.

Each entry is one line of JSON, sent at once, so that a tool that is killed has been told of. A tool that wants to can
close the pipe, write lines of its own to it, or do what raises no event: this informs auditors and decides nothing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_ENTRIES = 500
"""Of each kind; the rest is counted."""
MAX_TEXT = 2_000


class Observer:
    """An audit hook, which cannot be taken away once it has begun."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        """Tell nothing yet.

        Args:
            descriptor: Where to; a pipe that is drained.
            folder: The working folder, which names of files are shown without.
        """
        self._descriptor = descriptor
        self._folder = f"{folder}/"
        self._library = f"{sysconfig.get_path('stdlib')}/"
        self._told: dict[str, set[str]] = {"import": set(), "open": set(), "sql": set()}
        self._counts = {"exec": -1}  # the runner's own is the first, of the tool itself
        self._omitted = 0

    def begin(self) -> None:
        """Listen from now on."""
        sqlite3.connect = sqlite3.dbapi2.connect = self._connecting(sqlite3.connect)
        sys.addaudithook(self._hear)

    def _connecting(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        """`sqlite3.connect` as it was, but that what a connection runs is told."""

        @functools.wraps(connect)
        def connecting(*arguments: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - as they come
            connection = connect(*arguments, **options)
            with contextlib.suppress(Exception):  # of a class of the tool's own, or used in another thread
                connection.set_trace_callback(lambda sql: self._tell("sql", sql))
            return connection

        return connecting

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        try:
            self._note(event, arguments)
        except Exception:  # a hook that raises would end what it watches
            self._omit()

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            self._tell("import", str(arguments[0]))
        elif event == "open":
            self._opened(*arguments)
        elif event == "sqlite3.connect":
            self._tell("open", f"sqlite {self._shown(arguments[0])}")
        elif event != "sqlite3.connect/handle":
            count = self._counts[event] = self._counts.get(event, 0) + 1
            if count > 0 and count & (count - 1) == 0:  # at powers of two, so that a flood of events is a few lines
                self._write({"type": "event", "text": event, "count": count})

    def _opened(self, path: object, mode: str | None, flags: int) -> None:
        shown = self._shown(path)
        is_read = mode in ("r", "rb") or (mode is None and flags & os.O_ACCMODE == os.O_RDONLY)
        if is_read and shown.startswith(self._library):
            return  # modules of the standard library, as they are imported
        if mode is None:
            mode = {os.O_RDONLY: "r", os.O_WRONLY: "w"}.get(flags & os.O_ACCMODE, "r+")
        self._tell("open", f"{mode} {shown}")

    def _shown(self, path: object) -> str:
        return (
            os.fsdecode(path).removeprefix(self._folder) if isinstance(path, str | bytes | os.PathLike) else str(path)
        )

    def _tell(self, kind: str, text: str) -> None:
        text = text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode()[:MAX_TEXT]
        told = self._told[kind]
        if text in told:
            return
        if len(told) >= MAX_ENTRIES:
            self._omit()
            return
        told.add(text)
        self._write({"type": kind, "text": text})

    def _omit(self) -> None:
        self._omitted += 1
        if self._omitted & (self._omitted - 1) == 0:
            self._write({"type": "omitted", "count": self._omitted})

    def _write(self, entry: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            os.write(self._descriptor, json.dumps(entry).encode() + b"\n")
