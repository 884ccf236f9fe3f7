"""Which databases, tables and columns generated SQL and tools may read, and how much of them.

A rule only ever takes away: a hidden column is not in the database that generated code sees, which is rebuilt without
it, and the authorizer refuses it as well. `deny` and `redact` are one mechanism under two names; the name is what a
refusal says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from orchestrator.domain.sql import Schema
from orchestrator.domain.written_settings import WrittenSettings

Pattern = Annotated[str, Field(min_length=1, max_length=300)]
"""A name, `*` for any characters, `?` for one; without regard to case. Brackets and quotes are part of a name."""

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class DataRule(WrittenSettings):
    """What may be read of the databases it names; of several rules the first that names a database counts."""

    databases: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    """Ids of databases; one that no rule names cannot be read at all."""
    tables: Annotated[tuple[Pattern, ...], Field(min_length=1)] = ("*",)
    """Tables and views that may be read; as SQLite has it, only the case of the letters A to Z makes no difference."""
    deny: tuple[Pattern, ...] = ()
    """`table.column`, or `table` for all of it."""
    redact: tuple[Pattern, ...] = ()
    """The same, for columns that are kept back because they are personal."""
    max_rows: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Rows of one result; what is over it is cut and flagged."""
    max_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 16 << 20
    """Bytes of one result, likewise."""
    query_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """CPU time of one query: a gold query gets all of it, generated SQL half. It is killed when it runs for ten times
    as long as it may compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """One column that is kept back."""

    table: str
    column: str
    rule: str
    """Which rule, in words: `data rule 2, deny person.*`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A rule applied to one database."""

    rule: int
    """Number of the rule, from 1."""
    hidden: tuple[Hidden, ...]
    """Empty: the database is seen as it is."""
    max_rows: int
    max_bytes: int
    query_seconds: float

    def reason(self, table: str, column: str) -> str | None:
        """Why a column is kept back; None: it is not."""
        wanted = (folded(table), folded(column))
        return next((h.rule for h in self.hidden if (folded(h.table), folded(h.column)) == wanted), None)


def folded(name: str) -> str:
    """A name as SQLite compares it: without regard to the case of A to Z, and of no other letters."""
    return name.translate(_LOWER)


def find_rule(rules: Sequence[DataRule], database: str) -> tuple[int, DataRule] | None:
    """The first rule that names a database, with its number from 1; None: none does."""
    return next(
        ((n, rule) for n, rule in enumerate(rules, 1) if _first_match(rule.databases, database) is not None),
        None,
    )


def access_of(number: int, rule: DataRule, schema: Schema) -> Access:
    """What a rule keeps back of a database with this schema."""
    hidden = [
        Hidden(table=table.name, column=column.name, rule=f"data rule {number}, {why}")
        for table in schema.tables
        for column in table.columns
        if (why := _why(rule, table.name, column.name)) is not None
    ]
    return Access(
        rule=number,
        hidden=tuple(hidden),
        max_rows=rule.max_rows,
        max_bytes=rule.max_bytes,
        query_seconds=rule.query_seconds,
    )


def naming_nothing(rule: DataRule, database: str, schema: Schema) -> tuple[str, ...]:
    """Patterns of a rule that name nothing in a database and so may be misspelt, with their word (`deny book.price`).

    A pattern with `*` or `?` in a rule that names the database by such a pattern only is meant for other ones, too, and
    is never told of.

    Args:
        rule: It applies to the database.
        database: Its id.
        schema: Before anything was hidden.
    """
    is_meant = any(folded(one) == folded(database) for one in rule.databases)
    tables = [table.name for table in schema.tables]
    both = tables + [f"{table.name}.{column.name}" for table in schema.tables for column in table.columns]
    return tuple(
        f"{word} {pattern}"
        for word, patterns, names in (
            ("tables", rule.tables, tables),
            ("deny", rule.deny, both),
            ("redact", rule.redact, both),
        )
        for pattern in patterns
        if pattern != "*" and (is_meant or not set(pattern) & set("*?"))
        if not any(_first_match([pattern], name) for name in names)
    )


def _why(rule: DataRule, table: str, column: str) -> str | None:
    if not any(_matches(pattern, table, folded) for pattern in rule.tables):
        return f"table {table} is not among its tables"
    for word, patterns in (("deny", rule.deny), ("redact", rule.redact)):
        found = _first_match(patterns, table) or _first_match(patterns, f"{table}.{column}")
        if found is not None:
            return f"{word} {found}"
    return None


def _first_match(patterns: Sequence[str], name: str) -> str | None:
    """The first pattern that matches in any sense of "without regard to case".

    What is hidden must not depend on which of them somebody had in mind: SQLite's own leaves letters beyond A to Z as
    they are, and the full one turns some of them into two.
    """
    return next((p for p in patterns if _matches(p, name, folded) or _matches(p, name, str.casefold)), None)


def _matches(pattern: str, name: str, fold: Callable[[str], str]) -> bool:
    return fnmatchcase(fold(name), fold(pattern).replace("[", "[[]"))
