"""What a database holds, read from SQLite's own pragmas: tables, columns, keys and indexes, each name checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAP_BYTES = 384 << 20
"""Of SQLite; sorting goes to temporary files."""
MAX_TABLES = 5_000
MAX_COLUMNS = 100_000
"""Of all tables together."""
MAX_NAME_CHARACTERS = 1_000
"""A longer name, or one that is not UTF-8, is one that nobody can name."""
_ORDINARY, _HIDDEN, _GENERATED = 0, 1, (2, 3)
_LIMITS = ((sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1), (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0))
_PRAGMAS = (
    f"hard_heap_limit={HEAP_BYTES}",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "mmap_size=0",
    "foreign_keys=OFF",
    "secure_delete=ON",  # what was written in vain leaves no trace
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Unsuitable(Exception):
    """The database cannot be worked on; the text says why, without a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column that a query can read."""

    name: str
    type: str
    not_null: bool
    default: str | None
    """The expression's text; None: none is declared."""
    primary_key: int
    """Place in the primary key from 1 on; 0: not part of it."""
    generated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A reference."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    """Empty: the other table's primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """One column of an index's key."""

    name: str | None
    """None: an expression, or the row's number."""
    collation: str
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index, also one that a constraint made."""

    name: str
    unique: bool
    origin: str
    """`c`: CREATE INDEX, `u`: UNIQUE, `pk`: PRIMARY KEY."""
    partial: bool
    columns: tuple[IndexedColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view."""

    name: str
    kind: str
    """`table`, `view`, `virtual` or `shadow`."""
    sql: str
    """The statement that made it; empty where it is no text."""
    without_rowid: bool
    strict: bool
    columns: tuple[Column, ...]
    unnamed: tuple[str, ...]
    """Of each column that nobody can name, what it has for a name, as `name_fault` says it."""
    foreign_keys: tuple[ForeignKey, ...]
    indexes: tuple[Index, ...]

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Columns of the primary key in its order."""
        ranked = sorted((c.primary_key, c.name) for c in self.columns if c.primary_key)
        return tuple(name for _, name in ranked)

    @property
    def row_number(self) -> str | None:
        """The column that is another name of the row's number (INTEGER PRIMARY KEY); None: none is."""
        keys = [column for column in self.columns if column.primary_key]
        has_index = any(index.origin == "pk" for index in self.indexes)
        if self.without_rowid or has_index or len(keys) != 1 or fold(keys[0].type) != "integer":
            return None
        return keys[0].name


def fold(name: str) -> str:
    """A name as SQLite compares it: without regard to the case of ASCII letters, and of no others."""
    return name.translate(_LOWER)


def quoted(name: str) -> str:
    """A name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that trusts nothing in the file; texts come as bytes, since they need not be UTF-8."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = bytes
        for limit, value in _LIMITS:
            connection.setlimit(limit, value)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        yield connection


def read_tables(connection: sqlite3.Connection, schema: str = "main") -> list[Table]:
    """Every table and view of `schema`, in the order of their making, without SQLite's own.

    What has a name that nobody can name is left out; a view that does not work has no columns.

    Args:
        connection: Its texts come as bytes.
        schema: `main`, or the name of an attached database.

    Raises:
        sqlite3.Error: The file is no database or is damaged.
        Unsuitable: There are too many tables or columns.
    """
    statements = {
        name_of(name): text_of(sql) or ""
        for name, sql in connection.execute(
            f"SELECT name, sql FROM {schema}.sqlite_master WHERE type IN ('table', 'view')"  # noqa: S608 - not of the file
        )
    }
    kinds = {
        name: (text_of(kind) or "", bool(without_rowid), bool(strict))
        for _, raw, kind, _, without_rowid, strict in connection.execute(f"PRAGMA {schema}.table_list")
        if (name := name_of(raw)) is not None
    }
    wanted = [name for name in statements if name in kinds and not fold(name).startswith("sqlite_")]
    if len(wanted) > MAX_TABLES:
        msg = f"it has {len(wanted)} tables and views, over {MAX_TABLES}"
        raise Unsuitable(msg)
    tables = [_read(connection, schema, name, *kinds[name], statements[name]) for name in wanted]
    columns = sum(len(table.columns) for table in tables)
    if columns > MAX_COLUMNS:
        msg = f"it has {columns} columns, over {MAX_COLUMNS}"
        raise Unsuitable(msg)
    return tables


def as_json(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """What has columns, in the form of a description, without statements, defaults, rows and values."""
    return [
        {
            "name": table.name,
            "kind": "table" if table.kind == "shadow" else table.kind,
            "sql": "",
            "rows": None,
            "columns": [
                {
                    "name": column.name,
                    "type": column.type,
                    "not_null": column.not_null,
                    "default": None,
                    "primary_key": column.primary_key,
                    "generated": column.generated,
                    "examples": [],
                }
                for column in table.columns
            ],
            "foreign_keys": [
                {"columns": key.columns, "table": key.table, "references": key.references} for key in table.foreign_keys
            ],
        }
        for table in tables
        if table.columns
    ]


def _read(
    connection: sqlite3.Connection, schema: str, name: str, kind: str, without_rowid: bool, strict: bool, sql: str
) -> Table:
    try:
        rows = connection.execute(f"PRAGMA {schema}.table_xinfo({quoted(name)})").fetchall()
    except (sqlite3.Error, MemoryError):
        if kind == "table":
            raise
        rows = []  # a view over what is not there, a module that is not there
    visible = [row for row in rows if row[6] != _HIDDEN]
    columns = tuple(column for row in visible if (column := _column(row)) is not None)
    return Table(
        name=name,
        kind=kind,
        sql=sql,
        without_rowid=without_rowid,
        strict=strict,
        columns=columns,
        unnamed=tuple(name_fault(row[1]) for row in visible if name_of(row[1]) is None),
        foreign_keys=tuple(_foreign_keys(connection, schema, name)) if kind == "table" else (),
        indexes=tuple(_indexes(connection, schema, name)) if kind == "table" else (),
    )


def _column(row: Sequence[Any]) -> Column | None:
    _, raw, declared, not_null, default, primary_key, hidden = row
    name = name_of(raw)
    if name is None:
        return None
    return Column(
        name=name,
        type=text_of(declared) or "",
        not_null=bool(not_null),
        default=text_of(default),
        primary_key=primary_key,
        generated=hidden in _GENERATED,
    )


def _foreign_keys(connection: sqlite3.Connection, schema: str, name: str) -> Iterable[ForeignKey]:
    found: dict[int, list[tuple[str | None, str | None, str | None]]] = {}
    for row in connection.execute(f"PRAGMA {schema}.foreign_key_list({quoted(name)})"):
        found.setdefault(row[0], []).append((text_of(row[2]), text_of(row[3]), text_of(row[4])))
    for number in sorted(found, reverse=True):  # the pragma lists the last one first
        tables, columns, references = zip(*found[number], strict=True)
        named = tuple(column for column in columns if column is not None)
        if tables[0] is not None and len(named) == len(columns):
            yield ForeignKey(columns=named, table=tables[0], references=tuple(r for r in references if r is not None))


def _indexes(connection: sqlite3.Connection, schema: str, name: str) -> Iterable[Index]:
    listed = connection.execute(f"PRAGMA {schema}.index_list({quoted(name)})").fetchall()
    for _, raw, unique, origin, partial in reversed(listed):  # likewise
        index = name_of(raw)
        if index is None:
            continue
        key = connection.execute(f"PRAGMA {schema}.index_xinfo({quoted(index)})").fetchall()
        yield Index(
            name=index,
            unique=bool(unique),
            origin=text_of(origin) or "",
            partial=bool(partial),
            columns=tuple(
                IndexedColumn(name=text_of(column), collation=text_of(collation) or "", descending=bool(descending))
                for _, _, column, descending, collation, is_key in key
                if is_key
            ),
        )


def name_of(raw: bytes | None) -> str | None:
    """The name that a query can write; None: there is none."""
    text = text_of(raw)
    return None if text is None or not 0 < len(text) <= MAX_NAME_CHARACTERS else text


def name_fault(raw: bytes | None) -> str:
    """What something has for a name that nobody can name."""
    text = text_of(raw)
    if text is None:
        return "a name that is no text in UTF-8"
    return f"a name of over {MAX_NAME_CHARACTERS} characters" if text else "no name"


def text_of(raw: bytes | None) -> str | None:
    """Text that can be written into a statement and a frame; None: there is none, or it is no such text."""
    try:
        text = None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
    return None if text is None or "\0" in text else text
