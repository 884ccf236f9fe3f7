"""Tables, columns and keys as a database declares them, whatever it declares; nothing here runs an expression of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from limits import Readable, fold

MAX_TABLES = 5_000
MAX_NAME_CHARACTERS = 1_000
"""A table or column with a longer name is left out: a cut name would be another one."""
MAX_SQL_CHARACTERS = 100_000
_VIRTUAL_GENERATED, _STORED_GENERATED, _HIDDEN = 2, 3, 1
"""Of PRAGMA table_xinfo's `hidden`."""

Raw = sqlite3.Connection
"""With `bytearray` as its text factory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, and whether its cells are stored as they are."""

    name: str
    declared: dict[str, Any]
    """As in the body of a `described` frame, without examples."""
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view."""

    name: str
    kind: str
    sql: str
    columns: tuple[Column, ...]
    foreign_keys: list[dict[str, Any]]

    @property
    def is_stored(self) -> bool:
        """Whether reading it reads rows only: a view and a virtual table run code of the database's author."""
        return self.kind == "table" and bool(self.columns)


def read_tables(raw: Raw, readable: Readable | None) -> Iterator[Table]:
    """Every table and view in the order of their making, without SQLite's own and without what may not be read.

    Raises:
        sqlite3.Error: The schema cannot be read at all, or not in time.
    """
    rows = raw.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%'"
        " ESCAPE '\\' ORDER BY rowid LIMIT ?",
        (MAX_TABLES,),
    )
    for kind, raw_name, raw_sql in rows.fetchall():
        name = utf8(raw_name)
        if name is None or len(name) > MAX_NAME_CHARACTERS or (readable is not None and fold(name) not in readable):
            continue
        sql = text(raw_sql)[:MAX_SQL_CHARACTERS]
        columns = _columns(raw, raw_name)
        shown = columns if readable is None else [it for it in columns if fold(it.name) in readable[fold(name)]]
        is_virtual = sql[:40].upper().split()[:2] == ["CREATE", "VIRTUAL"]
        yield Table(
            name=name,
            kind="virtual" if is_virtual else text(kind),
            sql=sql if len(shown) == len(columns) else "",  # it would tell of the other ones
            columns=tuple(shown),
            foreign_keys=_foreign_keys(raw, raw_name, {it.name for it in shown}),
        )


def utf8(value: object) -> str | None:
    """Text that is UTF-8; None: it is not, or is no text."""
    try:
        return bytes(value).decode() if isinstance(value, bytearray) else None
    except UnicodeDecodeError:
        return None


def text(value: object) -> str:
    """Text with replacement characters; empty if there is none."""
    return bytes(value).decode(errors="replace") if isinstance(value, bytearray) else ""


def _columns(raw: Raw, table: bytearray) -> list[Column]:
    """Nothing for a view or virtual table that does not work."""
    rows = _about(raw, 'name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo', table)
    columns = []
    for raw_name, declared_type, not_null, default, primary_key, hidden in rows:
        name = utf8(raw_name)
        if name is None or len(name) > MAX_NAME_CHARACTERS or hidden == _HIDDEN:
            continue
        declared = {
            "name": name,
            "type": text(declared_type)[:MAX_NAME_CHARACTERS],
            "not_null": bool(not_null),
            "default": None if default is None else text(default)[:MAX_NAME_CHARACTERS],
            "primary_key": primary_key,
            "generated": hidden in (_VIRTUAL_GENERATED, _STORED_GENERATED),
        }
        columns.append(Column(name=name, declared=declared, is_stored=hidden != _VIRTUAL_GENERATED))
    return columns


def _foreign_keys(raw: Raw, table: bytearray, shown: set[str]) -> list[dict[str, Any]]:
    """In the order of their declaration, which SQLite numbers backwards."""
    rows = _about(raw, 'id, "table", "from", "to" FROM pragma_foreign_key_list', table, "ORDER BY id DESC, seq")
    keys: dict[int, dict[str, Any]] = {}
    for number, other, own, reference in rows:
        key = keys.setdefault(number, {"columns": [], "table": text(other), "references": []})
        key["columns"].append(text(own))
        if reference is not None:
            key["references"].append(text(reference))
    return [key for key in keys.values() if set(key["columns"]) <= shown]


def _about(raw: Raw, what: str, table: bytearray, order: str = "") -> list[tuple[Any, ...]]:
    """Ask one of SQLite's own table functions about a table whose name may hold anything; nothing if it fails."""
    try:
        return raw.execute(f"SELECT {what}(CAST(? AS TEXT)) {order}", (bytes(table),)).fetchall()
    except (MemoryError, UnicodeDecodeError):  # the latter of a name in SQLite's message
        return []
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:  # of time: it would fail for the next table, too
            raise
        return []
