"""What one query may use and read, as the `open` frame says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from frames import MAX_BODY_BYTES, ProtocolError

MIN_LENGTH_BYTES = 1_000_000
"""Length of one text, blob or row that is always granted."""
MAX_LENGTH_BYTES = 1_000_000_000
"""The longest that SQLite itself can have."""
WALL_FACTOR = 10
"""A query may take so many times as long as it may compute: SQL cannot sleep, so only a busy machine makes it wait."""

Readable = Mapping[bytes, frozenset[bytes]]
"""Folded table name to the folded names of its columns that may be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one query; all of them positive."""

    query_seconds: float
    """Of processor time."""
    max_rows: int
    max_bytes: int
    """Of encoded cells; no more than fit a frame."""
    heap_bytes: int
    """Of SQLite's own memory."""
    length_bytes: int | None
    """Of one text, blob or row; None: a million or the longest record of the database, whichever is more."""
    address_bytes: int
    """Of the whole address space of the query's process."""

    @property
    def wall_seconds(self) -> float:
        """How long a query may take."""
        return WALL_FACTOR * self.query_seconds

    @classmethod
    def parse(cls, declared: object) -> Self:
        """Read `open.limits`.

        Raises:
            ProtocolError: A limit is missing, unknown, not a number, or not positive and finite.
        """
        known = {"query_seconds", "max_rows", "max_bytes", "heap_bytes", "length_bytes", "address_bytes"}
        if not isinstance(declared, dict) or set(declared) | {"length_bytes"} != known:
            msg = f"'limits' does not name {', '.join(sorted(known))}"
            raise ProtocolError(msg)
        length = declared.get("length_bytes")
        return cls(
            query_seconds=_positive("query_seconds", declared["query_seconds"], float),
            max_rows=_positive("max_rows", declared["max_rows"], int),
            max_bytes=min(_positive("max_bytes", declared["max_bytes"], int), MAX_BODY_BYTES),
            heap_bytes=_positive("heap_bytes", declared["heap_bytes"], int),
            length_bytes=None if length is None else min(_positive("length_bytes", length, int), MAX_LENGTH_BYTES),
            address_bytes=_positive("address_bytes", declared["address_bytes"], int),
        )


def parse_readable(declared: object) -> Readable | None:
    """Read `open.readable`, a table of table names to lists of column names; None: no restriction.

    Raises:
        ProtocolError: It is not of this form.
    """
    if declared is None:
        return None
    if not isinstance(declared, dict) or not all(
        isinstance(columns, list) and all(isinstance(column, str) for column in columns)
        for columns in declared.values()
    ):
        msg = "'readable' is not a table of lists of column names"
        raise ProtocolError(msg)
    return {fold(table): frozenset(map(fold, columns)) for table, columns in declared.items()}


def fold(name: str) -> bytes:
    """A name without regard to case as SQLite sees it: ASCII letters only."""
    return name.encode("utf-8", "surrogatepass").lower()


def _positive(name: str, value: Any, kind: type[int | float]) -> Any:  # noqa: ANN401 - a number of JSON
    if type(value) not in (int, kind) or not 0 < value < math.inf:
        msg = f"limit {name!r} is {value!r}, not a positive {kind.__name__}"
        raise ProtocolError(msg)
    return kind(value)
