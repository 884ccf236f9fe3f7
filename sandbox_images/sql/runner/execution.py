"""One untrusted query, from its bytes to its cells, and how it ended. Whatever it does is data, never an exception."""

from __future__ import annotations

import json
import sqlite3
from itertools import accumulate
from typing import Any

from cells import Collected
from connection import MAX_SQL_CHARACTERS, Connection
from limits import Limits, Readable

Answer = tuple[dict[str, Any], bytes]
"""(`{status, message, columns, rows, truncated}`, the cells)."""
MAX_MESSAGE_CHARACTERS = 500
_NAMES_BYTES = 48 << 10
"""Of all names of columns as JSON: the head of a frame must hold them."""
_PRIMARY = 0xFF
"""The part of SQLite's error codes that says what kind it is."""
_SPACE = frozenset({sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG})


def execute(connection: Connection, body: bytes, limits: Limits, readable: Readable | None, *, reverse: bool) -> Answer:
    """Run one query.

    Args:
        connection: Of this process alone; used up afterwards.
        body: The SQL, untrusted.
        limits: Its caps.
        readable: What it may read; None: everything.
        reverse: Give rows that have no order the other way round.
    """
    try:
        sql = body.decode()
    except UnicodeDecodeError:
        return failed("error", "the query is not UTF-8")
    if len(sql) > MAX_SQL_CHARACTERS:
        return failed("refused", f"a query of {len(sql)} characters is over the limit of {MAX_SQL_CHARACTERS}")
    collected = Collected(limits.max_rows, limits.max_bytes)
    authorizer = connection.guard(sql, readable, reverse=reverse)
    try:
        cursor = connection.raw.execute(sql)
        if cursor.description is None:
            return failed("error", "the query gives no rows")
        columns = _names([column[0] for column in cursor.description])
        for row in cursor:  # one more than is kept tells exactly N rows from more than N
            if not collected.add(row):
                break
    except MemoryError:
        collected.data.clear()
        return failed("memory", "out of memory")
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: a NUL, or a name that is not UTF-8
        collected.data.clear()
        return failure(error, authorizer.refused, limits)
    head = {"columns": columns, "rows": collected.rows, "truncated": collected.truncated}
    return {"status": "ok", "message": "", **head}, bytes(collected.data)


def failed(status: str, message: str) -> Answer:
    """An ending without rows; the message becomes one line."""
    line = "".join(one if one.isprintable() else " " for one in message[: 4 * MAX_MESSAGE_CHARACTERS])
    line = " ".join(line.split())[:MAX_MESSAGE_CHARACTERS]
    return {"status": status, "message": line, "columns": [], "rows": 0, "truncated": False}, b""


def failure(error: Exception, refused: str | None, limits: Limits) -> Answer:
    """The ending that an error means.

    Args:
        error: Of SQLite, or of the text of a name.
        refused: What the authorizer did not allow; None: nothing.
        limits: Those that it ran under.
    """
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & _PRIMARY
    if refused is not None or primary == sqlite3.SQLITE_AUTH:
        return failed("refused", refused or str(error))
    if primary == sqlite3.SQLITE_INTERRUPT:
        return failed("timeout", overdue(limits.query_seconds, "processor"))
    if isinstance(error, UnicodeDecodeError):
        return failed("error", "a name in the database is not UTF-8")
    return failed("memory" if primary in _SPACE else "error", str(error))


def overdue(seconds: float, kind: str) -> str:
    """The message of a query that took too long; `kind` says of what."""
    return f"stopped after {seconds:g} s of {kind} time"


def _names(names: list[str]) -> list[str]:
    """Names of columns as they are, unless the head of a frame could not hold them; then each has the same room."""
    if len(json.dumps(names)) <= _NAMES_BYTES:
        return names
    room = _NAMES_BYTES // len(names) - len('"", ')
    return [_cut(name, room) for name in names]


def _cut(name: str, room: int) -> str:
    """The longest beginning that takes no more than `room` bytes as JSON."""
    sizes = accumulate(len(json.dumps(one)) - len('""') for one in name[:room])
    return name[: sum(size <= room for size in sizes)]
