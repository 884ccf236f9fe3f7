"""A description of a database for those who write queries: schema, row counts, examples and short texts, bounded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import accumulate

from connection import Connection
from execution import Answer, failed, failure
from limits import Limits, Readable
from sampling import Allowance, Found, look_at, texts_of
from schema import Raw, Table, read_tables

_TABLES_BYTES = 4 << 20
_TABLE_BYTES = 2 << 20
_VALUES_BYTES = 3 << 20
_OPERATIONS = 100_000_000
_STATEMENT_OPERATIONS = 10_000_000
_SHARE_OF_TIME = 0.6
"""Of the processor time, for looking; writing it down comes after it."""
_NOTHING = Found(rows=None, examples={}, text_columns=[])


def describe(
    connection: Connection, limits: Limits, readable: Readable | None, *, examples: int, values: int
) -> Answer:
    """The answer to a `describe` job; its body is the JSON of a `described` frame.

    Args:
        connection: Of this process alone.
        limits: Of the description.
        readable: What is described; None: everything.
        examples: How many literals of each column.
        values: How many texts of each column at most.
    """
    raw = connection.raw
    connection.widen()
    connection.stop_after(_SHARE_OF_TIME * limits.query_seconds)
    try:
        tables = list(read_tables(raw, readable))
    except MemoryError:
        return failed("memory", "out of memory")
    except sqlite3.Error as error:
        return failure(error, None, limits)
    allowance = Allowance(
        raw,
        operations=_OPERATIONS,
        statement_operations=_STATEMENT_OPERATIONS,
        cpu_seconds=_SHARE_OF_TIME * limits.query_seconds,
    )
    described, found = _described(raw, tables, allowance, examples)
    texts = _values(raw, found, allowance, values)
    head, _ = failed("ok", "")
    return head, b'{"tables":[%b],"values":[%b]}' % (b",".join(described), b",".join(texts))


def _described(
    raw: Raw, tables: list[Table], allowance: Allowance, examples: int
) -> tuple[list[bytes], list[tuple[str, str]]]:
    """(JSON of each table, (table, column) of each column in which there was text)."""
    all_columns = sum(len(table.columns) for table in tables)
    pieces: list[bytes] = []
    text_columns: list[tuple[str, str]] = []
    room = _TABLES_BYTES
    for table in tables:
        found = _NOTHING
        if table.is_stored and not allowance.is_over:
            found = look_at(raw, table, allowance, examples=examples, all_columns=all_columns)
        piece = next((one for one in _forms(table, found) if len(one) <= min(room, _TABLE_BYTES)), None)
        if piece is not None:
            room -= len(piece)
            pieces.append(piece)
            text_columns += [(table.name, column) for column in found.text_columns]
    return pieces, text_columns


def _forms(table: Table, found: Found) -> Iterator[bytes]:
    """A table as JSON: whole, and then shorter and shorter."""
    for examples, sql in ((found.examples, table.sql), ({}, table.sql), ({}, "")):
        yield _json({
            "name": table.name,
            "kind": table.kind,
            "sql": sql,
            "rows": found.rows,
            "columns": [{**column.declared, "examples": examples.get(column.name, [])} for column in table.columns],
            "foreign_keys": table.foreign_keys,
        })  # fmt: skip


def _values(raw: Raw, columns: list[tuple[str, str]], allowance: Allowance, most: int) -> list[bytes]:
    """JSON of `[table, column, texts]`; room that a column leaves goes to the later ones."""
    pieces: list[bytes] = []
    room = _VALUES_BYTES
    for number, (table, column) in enumerate(columns):
        if allowance.is_over or not most:
            break
        share = room // (len(columns) - number) - len(_json([table, column, []]))
        texts = texts_of(raw, table, column, allowance, most=most)
        sizes = accumulate(len(_json(text)) + 1 for text in texts)  # a comma comes after each
        kept = [text for text, size in zip(texts, sizes, strict=True) if size <= share]
        if kept:
            pieces.append(_json([table, column, kept]))
            room -= len(pieces[-1])
    return pieces


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
