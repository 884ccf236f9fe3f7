"""A schema as the engine knows it: tables, columns with what is said of them, and the keys that connect them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.llm.offline.sql.words import likeness, name_words

_NUMBER_TYPES = ("int", "real", "num", "dec", "doub", "float", "bool", "bit", "year")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRUE = ("t", "true", "yes", "y", "1")
_FALSE = ("f", "false", "no", "n", "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column of the schema section; all of its text is untrusted."""

    table: str
    name: str
    type: str
    title: str = ""
    description: str = ""
    examples: tuple[str, ...] = ()
    """Values without quotes."""
    matches: tuple[str, ...] = ()
    """Values that the prompt's author found in the question, without quotes."""
    is_primary: bool = False
    is_key: bool = False
    """Part of a primary or foreign key, or at the other end of one."""

    @property
    def words(self) -> tuple[str, ...]:
        """Stems of the name."""
        return name_words(self.name)

    @property
    def title_words(self) -> tuple[str, ...]:
        """Stems of the title; empty if there is none."""
        return name_words(self.title)

    @property
    def is_number(self) -> bool:
        """Whether its values can be added and compared as numbers, by its type and its examples."""
        if any(part in self.type.lower() for part in _NUMBER_TYPES):
            return self.true_value is None or not self.examples or self.examples[0].isdigit()
        return bool(self.examples) and all(_is_number(example) for example in self.examples)

    @property
    def is_date(self) -> bool:
        """Whether its values are dates as SQLite's functions read them."""
        return bool(self.examples) and all(_ISO_DATE.match(example) for example in self.examples)

    @property
    def true_value(self) -> str | None:
        """The example that stands for yes, if the column holds nothing but yes and no."""
        lows = {example.lower(): example for example in self.examples}
        if (
            not lows
            or not set(lows) <= set(_TRUE + _FALSE)
            or (set(lows) <= {"0", "1"} and "bool" not in self.type.lower())
        ):
            return None
        letter = next(iter(lows))
        pairs = dict(zip(_FALSE, _TRUE, strict=True))
        found = next((lows[true] for true in _TRUE if true in lows), None)
        if found is not None:
            return found
        implied = pairs[letter]
        return implied.upper() if lows[letter].isupper() else implied

    @property
    def is_flag(self) -> bool:
        """Whether it holds nothing but 0 and 1."""
        return len(self.examples) == 2 and set(self.examples) == {"0", "1"}

    def likeness_to(self, concept: str) -> float:
        """How well one of its words means `concept`, 0 to 1."""
        if concept in {"date", "year"} and self.is_date:
            return 0.9
        return max((likeness(word, concept) for word in (*self.words, *self.title_words)), default=0.0)


@dataclass(frozen=True, slots=True)
class Edge:
    """An equality that joins two tables."""

    left: Field
    right: Field
    weight: float = 1.0
    """1 for a declared key, more for a guess."""

    def end(self, table: str) -> Field:
        """The column at this table's end."""
        return self.left if self.left.table == table else self.right

    def other(self, table: str) -> Field:
        """The column at the other end."""
        return self.right if self.left.table == table else self.left


@dataclass(frozen=True, eq=False)
class SchemaView:
    """All tables, by name as written, and the edges between them."""

    tables: dict[str, tuple[Field, ...]]
    edges: tuple[Edge, ...] = field(default=())

    def field(self, table: str, name: str) -> Field | None:
        """A column, without regard to case; None: there is none."""
        return self._by_name.get((table.lower(), name.lower()))

    def fields(self) -> Iterator[Field]:
        """All columns in order."""
        for columns in self.tables.values():
            yield from columns

    def table(self, name: str) -> str | None:
        """A table's name as written, without regard to case; None: there is none."""
        return self._table_names.get(name.lower())

    def key(self, table: str) -> Field | None:
        """The column that stands for a row: the only primary key, or an end of a declared key; None: none does."""
        primary = [column for column in self.tables[table] if column.is_primary]
        if len(primary) == 1:
            return primary[0]
        return None

    def display(self, table: str) -> tuple[Field, ...]:
        """The columns that name a row best, the best first, at most three."""
        own = name_words(table)

        def rank(column: Field) -> float:
            words = tuple(word for word in column.words if word not in own)
            if not words:
                return 3.0 if not column.is_number else 1.2
            if words in {("name",), ("full", "name")}:
                return 3.2
            if words == ("title",):
                return 3.0
            named = 2.0 if words[-1] in {"name", "title"} else 0.0
            return named + (1.0 if column.is_primary else 0.0) + (0.3 if not column.is_number else 0.0)

        return tuple(sorted(self.tables[table], key=lambda column: -rank(column))[:3])

    def renewed(self, change: Callable[[Field], Field]) -> SchemaView:
        """The same schema with every column changed, also in the edges; a column keeps its table and name."""
        tables = {name: tuple(map(change, columns)) for name, columns in self.tables.items()}
        bare = SchemaView(tables)

        def now(column: Field) -> Field:
            return bare.field(column.table, column.name) or column

        return SchemaView(tables, tuple(Edge(now(e.left), now(e.right), e.weight) for e in self.edges))

    def without(self, names: Collection[str]) -> SchemaView:
        """The same schema without the tables and columns of these names, which are in lower case."""
        tables = {
            table: tuple(column for column in columns if column.name.lower() not in names)
            for table, columns in self.tables.items()
            if table.lower() not in names
        }
        kept = {table: columns for table, columns in tables.items() if columns}
        view = SchemaView(kept)
        edges = [e for e in self.edges if all(view.field(end.table, end.name) for end in (e.left, e.right))]
        return SchemaView(kept, tuple(edges))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Field]:
        return {(column.table.lower(), column.name.lower()): column for column in self.fields()}

    @cached_property
    def _table_names(self) -> dict[str, str]:
        return {name.lower(): name for name in self.tables}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
