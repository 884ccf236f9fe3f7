"""A database as it is described, and what a query gave: values that the gate, the judge and the methods share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class RawText:
    """Text that is not UTF-8, byte for byte; equal to nothing but the same bytes."""

    raw: bytes

    def __str__(self) -> str:
        """For people and models, with replacement characters."""
        return self.raw.decode("utf-8", errors="replace")


Cell = None | int | float | str | bytes | RawText
"""A value of SQLite; `str` is text that is UTF-8, and so the whole truth."""


class QueryStatus(StrEnum):
    """How a query ended. Whatever failed on our side raises `SandboxError` instead."""

    OK = "ok"
    ERROR = "error"
    """SQLite refused it: syntax, a name that does not exist, a wrong number of columns."""
    REFUSED = "refused"
    """The gate, the authorizer or the policy refused it; nothing was read."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    """Its heap, its length limit or its address space did not suffice."""
    KILLED = "killed"
    """Its process ended without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """What came of one query."""

    status: QueryStatus
    message: str = ""
    """SQLite's or ours, one line without paths; empty if ok."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    truncated: bool = False
    """More rows or bytes came than the caps keep; `rows` holds the first ones."""
    lossy_text: bool = False
    """A cell holds text that is not UTF-8."""
    wall_seconds: float = 0.0

    @property
    def is_ok(self) -> bool:
        """Whether rows came, none at all included."""
        return self.status is QueryStatus.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table or view; all text is untrusted."""

    name: str
    type: str
    """As declared; empty where nothing is."""
    not_null: bool = False
    default: str | None = None
    """The expression's text; None: none is declared."""
    primary_key: int = 0
    """Place in the primary key from 1 on; 0: not part of it."""
    generated: bool = False
    examples: tuple[str, ...] = ()
    """Some distinct values as SQLite literals, the most frequent first, cut at 60 characters each."""
    title: str = ""
    """A longer name, from the data set's description."""
    description: str = ""
    """From the data set's description."""
    value_description: str = ""
    """Likewise: what its values mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A reference; the table it names need not exist."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    """Empty: the other table's primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view."""

    name: str
    kind: str
    """`table`, `view` or `virtual`."""
    sql: str
    """The statement that made it; untrusted."""
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    rows: int | None = None
    """None: not counted, because that took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A database without its rows."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """By name, without regard to case (ASCII, as SQLite has it); None: there is none."""
        wanted = _folded(name)
        return next((table for table in self.tables if _folded(table.name) == wanted), None)


def _folded(name: str) -> str:
    """As SQLite compares names: `É` and `é` are two."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a database's container tells of it once."""

    schema: Schema
    values: Mapping[tuple[str, str], tuple[str, ...]]
    """(table, column) to distinct short texts of text columns, as many as the caps keep; for linking a question."""
    sqlite_version: str
    dropped: tuple[str, ...] = ()
    """What a derived database lacks beside the hidden columns, one line each (`view v: needs person.email`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a data set; `gold` never leaves the judge."""

    id: str
    """Unique in the data set: BIRD's `question_id` or the list index."""
    database: str
    text: str
    evidence: str = ""
    difficulty: str = ""
    gold: str | None = None
    """None: no gold query is known."""
