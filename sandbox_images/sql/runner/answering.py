"""The answering service: queries against one database, each in a child of its own; this process never opens it.

What a child sends is untrusted here, too: it is bounded and checked for form before any of it is passed on.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from channel import EXIT_IO, Channel, complain
from child import Task, run
from children import Children, Failure
from connection import uri_of
from execution import MAX_MESSAGE_CHARACTERS, Answer, failed
from frames import Frame, ProtocolError
from limits import MAX_LENGTH_BYTES, MIN_LENGTH_BYTES, Limits, parse_readable

MAX_DESCRIPTION_BYTES = 8 << 20
MEASURE_SECONDS = 30.0
"""Processor time to measure the database: our own work, whatever a query is granted."""
_STATUSES = frozenset({"ok", "error", "refused", "timeout", "memory", "killed"})
_MAX_COLUMNS = 500
_GARBAGE = failed("killed", "its process sent something that is no answer")


def serve(channel: Channel, first: Frame, database: Path) -> int:
    """Serve the database until the channel ends.

    Args:
        channel: The runner's.
        first: The `open` frame.
        database: A file that nobody writes to.

    Returns:
        The exit code of a runner that cannot go on.

    Raises:
        ChannelClosed: The orchestrator has left.
        ProtocolError: It sent what is not understood.
    """
    limits, readable = Limits.parse(first.head.get("limits")), parse_readable(first.head.get("readable"))
    try:
        sha256 = _sha256(database)
        task = Task(uri=uri_of(database), limits=limits, length_bytes=limits.length_bytes or 0, readable=readable)
        if not limits.length_bytes:
            task = replace(task, length_bytes=_measured(task, database.stat().st_size))
        children = Children(partial(run, task), limits)
        channel.send({"type": "opened", "sqlite": sqlite3.sqlite_version, "sha256": sha256})
        _answer_all(channel, children, limits, database)
    except OSError as error:
        complain(f"cannot serve the database: {error}")
        return EXIT_IO


def _answer_all(channel: Channel, children: Children, limits: Limits, database: Path) -> NoReturn:
    while True:
        frame = channel.expect("query", "describe", "digest")
        if frame.type == "query":
            channel.send(*_query(children, frame, limits))
        elif frame.type == "describe":
            channel.send(*_describe(children, frame))
        else:
            channel.send({"type": "digest", "sha256": _sha256(database)})


def _query(children: Children, frame: Frame, limits: Limits) -> Answer:
    identity, reverse = frame.head.get("id"), frame.head.get("reverse")
    if not isinstance(identity, (int, str)) or not isinstance(reverse, bool):
        msg = f"a query has id {identity!r} and reverse {reverse!r}"
        raise ProtocolError(msg)
    began = time.monotonic()
    answer = children.ask({"type": "query", "reverse": reverse}, frame.body)
    seconds = time.monotonic() - began
    head, body = checked(answer, limits.max_rows, limits.max_bytes)
    return {"type": "result", "id": identity, **head, "wall_seconds": round(seconds, 6)}, body


def _describe(children: Children, frame: Frame) -> Answer:
    counts = {name: frame.head.get(name) for name in ("examples", "values")}
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            msg = f"'{name}' of a description is {count!r}"
            raise ProtocolError(msg)
    head, body = checked(children.ask({"type": "describe", **counts}), 0, MAX_DESCRIPTION_BYTES)
    described = {"sqlite": sqlite3.sqlite_version, "status": head["status"], "message": head["message"]}
    return {"type": "described", **described}, body


def checked(answer: Frame | Failure, max_rows: int, max_bytes: int) -> Answer:
    """An answer in the form that was asked for, or how its child ended; nothing else of what it says is kept.

    Args:
        answer: Untrusted.
        max_rows: More than the child was to send means that it is not what we started.
        max_bytes: Likewise, of its body.
    """
    if isinstance(answer, Failure):
        return failed(answer.status, answer.message)
    head = {name: answer.head.get(name) for name in ("status", "message", "columns", "rows", "truncated")}
    status, message, columns, rows = head["status"], head["message"], head["columns"], head["rows"]
    is_formed = (
        answer.type == "answer"
        and status in _STATUSES
        and isinstance(message, str)
        and len(message) <= MAX_MESSAGE_CHARACTERS
        and message.isprintable()
        and _are_names(columns)
        and type(rows) is int
        and 0 <= rows <= max_rows
        and isinstance(head["truncated"], bool)
        and len(answer.body) <= max_bytes
        and (status == "ok" or not (rows or columns or answer.body))
    )
    return (head, answer.body) if is_formed else _GARBAGE


def _are_names(columns: Any) -> bool:  # noqa: ANN401 - JSON of any form
    return isinstance(columns, list) and len(columns) <= _MAX_COLUMNS and all(isinstance(one, str) for one in columns)


def _measured(task: Task, size: int) -> int:
    """How long the longest record is, as a child of its own finds it; what it cannot read counts as a short one."""
    if size <= MIN_LENGTH_BYTES:
        return MIN_LENGTH_BYTES
    limits = replace(task.limits, query_seconds=MEASURE_SECONDS)
    children = Children(partial(run, replace(task, limits=limits, length_bytes=MAX_LENGTH_BYTES)), limits)
    try:
        answer = children.ask({"type": "measure"})
    finally:
        children.close()
    longest = None if isinstance(answer, Failure) else answer.head.get("longest")
    return min(max(MIN_LENGTH_BYTES, longest), MAX_LENGTH_BYTES) if type(longest) is int else MIN_LENGTH_BYTES


def _sha256(database: Path) -> str:
    with database.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
