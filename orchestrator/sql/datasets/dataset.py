"""A data set as the rest of the program sees it, whatever its layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.domain.sql import Column, Question, Schema
from orchestrator.errors import InputError

_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnText:
    """What a data set says of a column; empty where it says nothing."""

    title: str = ""
    description: str = ""
    value_description: str = ""


Descriptions = Mapping[tuple[str, str], ColumnText]
"""(table, column), both as `folded` gives them, to what is said of the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Questions and where their databases are."""

    name: str
    """`bird`, `spider` or `jsonl`."""
    digest: str
    """`sha256:` and 64 hex digits over names and content of all files but the databases, which have their own."""
    questions: tuple[Question, ...]
    """In the order of the file, those left out whose database is missing."""
    databases: Mapping[str, Path]
    """Id to file, for every database that a question asks."""
    descriptions: Mapping[str, Descriptions]
    """Id to what is said of its columns; a database that nothing is said of has none."""
    orphans: tuple[str, ...] = ()
    """What belongs to nothing, and what is missing, a line each."""


def folded(name: str) -> str:
    """How names of tables and columns are compared: without case and surrounding blanks."""
    return name.strip().casefold()


def describe_columns(schema: Schema, descriptions: Descriptions) -> Schema:
    """The schema with what a data set says of its columns; names are matched without case."""
    return Schema(
        tables=tuple(
            replace(table, columns=tuple(_described(table.name, column, descriptions) for column in table.columns))
            for table in schema.tables
        )
    )


def unmatched(schema: Schema, descriptions: Descriptions) -> tuple[str, ...]:
    """Columns that are described and not there, a line each."""
    present = {(folded(table.name), folded(column.name)) for table in schema.tables for column in table.columns}
    missing = sorted(descriptions.keys() - present)
    return tuple(f"{table}.{column} is described but not there" for table, column in missing)


def check_ids(ids: Sequence[str], source: Path, lines: Sequence[int] | None = None) -> None:
    """See that no id occurs twice.

    Args:
        ids: One for each entry.
        source: The list.
        lines: Where each of them stands; None: the list is one document, whose entries are counted.

    Raises:
        InputError: One does; the message names both entries.
    """
    what, places = ("entries", range(1, len(ids) + 1)) if lines is None else ("lines", lines)
    for name, count in Counter(ids).items():
        if count > 1:
            first = ids.index(name)
            second = ids.index(name, first + 1)
            both = f"{what} {places[first]} and {places[second]}"
            msg = f"{source}: {both} have the same id {name!r}; give each its own"
            raise InputError(msg)


def listed(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """One line for all of a kind, naming a few; none where there are none."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return (f"{what}: {', '.join(names[:_NAMES_SHOWN])}{more}",)


def _described(table: str, column: Column, descriptions: Descriptions) -> Column:
    text = descriptions.get((folded(table), folded(column.name)))
    if text is None:
        return column
    return replace(
        column,
        title=text.title or column.title,
        description=text.description or column.description,
        value_description=text.value_description or column.value_description,
    )
