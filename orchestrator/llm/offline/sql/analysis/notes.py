"""What readers note of a database before it becomes a schema; each thing may be said any number of times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

MAX_TABLES = 200
MAX_COLUMNS = 600
MAX_VALUES = 5_000
"""Of one column."""
MAX_ALL_VALUES = 100_000
MAX_KEYS = 2_000
NAME_CHARACTERS = 120
VALUE_CHARACTERS = 200


class Firmness(IntEnum):
    """How sure it is that something is a table."""

    GUESSED = 1
    """A heading with what could be columns below it."""
    NAMED = 2
    """It is called a table."""
    DECLARED = 3
    """A statement or a document says all of its columns."""


@dataclass(slots=True)
class ColumnNote:
    """What is known of a column."""

    name: str
    type: str = ""
    title: str = ""
    description: str = ""
    values: dict[str, None] = field(default_factory=dict)
    """In their order, without quotes."""
    bounds: tuple[str, ...] = ()
    """Least and greatest value."""
    is_primary: bool = False


@dataclass(slots=True)
class TableNote:
    """What is known of a table."""

    name: str
    firmness: Firmness
    columns: dict[str, ColumnNote] = field(default_factory=dict)
    """By name in lower case."""
    by_word: dict[str, list[ColumnNote]] = field(default_factory=dict)
    """By the first word of the name, those with the longest names first."""

    def column(self, name: str) -> ColumnNote | None:
        """Without regard to case; None: it is not known."""
        return self.columns.get(name.strip().lower())


@dataclass(frozen=True, slots=True)
class KeyNote:
    """A reference from columns to those of another table; tables and columns need not exist."""

    table: str
    columns: tuple[str, ...]
    target: str
    references: tuple[str, ...]
    """Empty: the target's primary key."""


class Notes:
    """Everything noted so far; what is over the bounds is dropped."""

    def __init__(self) -> None:
        self.tables: dict[str, TableNote] = {}
        self.keys: dict[KeyNote, None] = {}
        self._values = 0

    def find(self, name: str) -> TableNote | None:
        """A table, without regard to case; None: it is not known."""
        return self.tables.get(name.strip().lower())

    def table(self, name: str, firmness: Firmness) -> TableNote | None:
        """The table of that name, made if it is new; None: there is no room, or no name."""
        name = name.strip()[:NAME_CHARACTERS]
        found = self.tables.get(name.lower())
        if found is not None:
            found.firmness = max(found.firmness, firmness)
            return found
        if not name or len(self.tables) >= MAX_TABLES:
            return None
        made = TableNote(name=name, firmness=firmness)
        self.tables[name.lower()] = made
        return made

    def column(self, table: TableNote, name: str) -> ColumnNote | None:
        """The column of that name, made if it is new; None: there is no room, or no name."""
        name = name.strip()[:NAME_CHARACTERS]
        found = table.columns.get(name.lower())
        if found is not None:
            return found
        if not name or len(table.columns) >= MAX_COLUMNS:
            return None
        made = ColumnNote(name=name)
        table.columns[name.lower()] = made
        alike = table.by_word.setdefault(name.lower().split(" ")[0], [])
        alike.append(made)
        alike.sort(key=lambda column: -len(column.name))
        return made

    def add_values(self, column: ColumnNote, values: Iterable[str]) -> None:
        """Values without quotes; empty ones are none."""
        for value in values:
            if len(column.values) >= MAX_VALUES or self._values >= MAX_ALL_VALUES:
                return
            if value.strip() and value not in column.values and len(value) <= VALUE_CHARACTERS:
                column.values[value] = None
                self._values += 1

    def add_key(self, table: str, columns: Iterable[str], target: str, references: Iterable[str]) -> None:
        """A reference between columns."""
        note = KeyNote(
            table.strip(), tuple(c.strip() for c in columns), target.strip(), tuple(r.strip() for r in references)
        )
        if len(self.keys) < MAX_KEYS and note.table and note.target and note.columns:
            self.keys.setdefault(note)

    def kept(self) -> Iterator[TableNote]:
        """The tables that are ones: guessed ones only where no surer source speaks of tables."""
        real = [table for table in self.tables.values() if table.columns]
        surest = max((table.firmness for table in real), default=Firmness.GUESSED)
        for table in real:
            typed = any(column.type for column in table.columns.values())
            if table.firmness == surest or (typed and table.firmness is Firmness.NAMED):
                yield table
