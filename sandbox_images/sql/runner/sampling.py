"""What a table holds, from a bounded look: a count, frequent values as examples, and short texts.

The bounds are numbers of rows, cells, bytes and operations, not seconds, so that a database is described alike wherever
and whenever it is; the time limit of a query holds behind them.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from schema import Column, Raw, Table, utf8

MAX_SAMPLE_ROWS = 20_000
_SAMPLE_CELLS = 4_000_000
"""Of all tables together."""
_TABLE_CELLS = 400_000
_SAMPLE_BYTES = 32 << 20
"""Of one table."""
_STATEMENT_COLUMNS = 100
_KEY_BYTES = 300
"""Longer values are no examples: what they begin with may be the same."""
_EXAMPLE_CHARACTERS = 60
SHORT_CHARACTERS = 80
"""What still counts as a short text."""
_OPERATIONS = 1_000
"""Of SQLite's virtual machine, between two checks."""

Key = tuple[type, int | float | bytes]
"""(`bytearray` for text, otherwise the type of the value; the value)."""


class Allowance:
    """Operations and time for describing a database; statements that go over it are interrupted."""

    def __init__(self, raw: Raw, *, operations: int, statement_operations: int, cpu_seconds: float) -> None:
        """Start counting.

        Args:
            raw: Whose progress handler is taken.
            operations: Of all statements together.
            statement_operations: Of one.
            cpu_seconds: From now on.
        """
        self._left = operations // _OPERATIONS
        self._statement_operations = statement_operations // _OPERATIONS
        self._statement_left = self._statement_operations
        self._end = time.process_time() + cpu_seconds
        raw.set_progress_handler(self._is_spent, _OPERATIONS)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._left <= 0 or time.process_time() > self._end

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one statement, whose failure is no one else's: broken, interrupted or too large."""
        self._statement_left = self._statement_operations
        try:
            yield
        except (sqlite3.Error, MemoryError, ValueError):
            return

    def _is_spent(self) -> bool:
        self._left -= 1
        self._statement_left -= 1
        return self._statement_left < 0 or self.is_over


@dataclass(slots=True)
class Found:
    """What a look at a table found."""

    rows: int | None
    """None: not counted."""
    examples: dict[str, list[str]]
    """Column to literals."""
    text_columns: list[str]
    """Columns in which there was text."""


def look_at(raw: Raw, table: Table, allowance: Allowance, *, examples: int, all_columns: int) -> Found:
    """Count a table and sample it.

    Args:
        raw: Reads it.
        table: A stored one.
        allowance: Of the whole database.
        examples: How many literals of each column.
        all_columns: How many columns the whole database has.
    """
    found = Found(rows=None, examples={}, text_columns=[])
    source = f"{quoted(table.name)} AS t NOT INDEXED"
    with allowance.statement():
        # A plain count(*) is a single operation, which nothing could interrupt.
        counting = f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT -1 OFFSET 0)"  # noqa: S608 - names are quoted
        ((found.rows,),) = raw.execute(counting).fetchall()
    columns = [column for column in table.columns if column.is_stored]
    rows = min(MAX_SAMPLE_ROWS, _SAMPLE_CELLS // max(1, all_columns), _TABLE_CELLS // max(1, len(columns)))
    for start in range(0, len(columns), _STATEMENT_COLUMNS):
        if allowance.is_over:
            break
        part = columns[start : start + _STATEMENT_COLUMNS]
        counts: list[Counter[Key]] = [Counter() for _ in part]
        with allowance.statement():
            names = ", ".join(f"t.{quoted(column.name)}" for column in part)
            reading = f"SELECT {names} FROM {source} LIMIT {max(50, rows)}"  # noqa: S608 - names are quoted
            _count_values(raw.execute(reading), counts)
        _keep(found, part, counts, examples)
    return found


def texts_of(raw: Raw, table: str, column: str, allowance: Allowance, *, most: int) -> list[str]:
    """Distinct short texts of a column, in the order of their first rows; as many as the allowance finds."""
    name, texts = f"t.{quoted(column)}", []
    reading = (
        f"SELECT DISTINCT {name} FROM {quoted(table)} AS t NOT INDEXED"  # noqa: S608 - names are quoted
        f" WHERE typeof({name}) = 'text' AND length({name}) BETWEEN 1 AND {SHORT_CHARACTERS} LIMIT {most}"
    )
    with allowance.statement():
        for (value,) in raw.execute(reading):
            text = utf8(value)
            if text is not None:
                texts.append(text)
    return texts


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(kind: type, value: int | float | bytes) -> str:
    """A value as SQLite writes it, cut at 60 characters of text or 30 bytes of a blob."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}9e999"
    if kind is bytes:
        return f"X'{value[: _EXAMPLE_CHARACTERS // 2].hex().upper()}'"
    text = value.decode(errors="replace")[:_EXAMPLE_CHARACTERS]
    return "'" + text.replace("'", "''") + "'"


def _count_values(rows: sqlite3.Cursor, counts: Sequence[Counter[Key]]) -> None:
    size = 0
    for row in rows:
        for count, cell in zip(counts, row, strict=True):
            if isinstance(cell, (bytes, bytearray)):
                size += len(cell)
                if len(cell) > _KEY_BYTES:
                    continue
            if cell is not None:
                count[type(cell), bytes(cell) if isinstance(cell, bytearray) else cell] += 1
        if size > _SAMPLE_BYTES:
            return


def _keep(found: Found, columns: Sequence[Column], counts: Sequence[Counter[Key]], examples: int) -> None:
    for column, count in zip(columns, counts, strict=True):
        frequent = sorted(count.items(), key=lambda item: -item[1])[:examples]  # of equals, the one that came first
        found.examples[column.name] = [literal(*key) for key, _ in frequent]
        if any(kind is bytearray for kind, _ in count):
            found.text_columns.append(column.name)
