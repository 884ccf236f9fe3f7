"""What is kept of each table: decided from its description alone, before anything is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from definitions import (
    COLLATIONS,
    ROW_NUMBERS,
    Token,
    affinity,
    collation_of,
    column_definitions,
    is_certain,
    plain_value,
    words_of,
)
from survey import Column, ForeignKey, Index, Table, fold, name_of

MOST_ORDERED_COLUMNS = 1900
"""Of a table whose rows have to be put in order: SQLite orders by 2000 terms at most, and some are for types."""
Dropped = list[list[str]]
"""What is left out beside what was asked for, and why: `[kind, name, reason]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A table that is kept, and what of it."""

    table: Table
    columns: tuple[Column, ...]
    """Not empty; a generated one is kept as a plain column with its values."""
    hidden: frozenset[str]
    """Folded names of what is left out."""
    defaults: Mapping[str, str]
    """Column to the text of its default."""
    collations: Mapping[str, str]
    """Column to the collation it is declared with."""
    indexes: tuple[Index, ...]
    """Of every origin."""
    foreign_keys: tuple[ForeignKey, ...]

    @property
    def is_whole(self) -> bool:
        """Whether no column is left out."""
        return not self.hidden and not self.table.unnamed

    @property
    def row_number(self) -> str | None:
        """The kept column that is another name of the row's number; None: none is."""
        name = self.table.row_number
        return None if name is None or fold(name) in self.hidden else name

    @property
    def without_rowid(self) -> bool:
        """Whether the new table is WITHOUT ROWID, as the original, since its key is kept."""
        return self.table.without_rowid and any(index.origin == "pk" for index in self.indexes)

    @property
    def order(self) -> tuple[str, ...]:
        """Columns whose values put the rows in order; empty: the rows keep theirs.

        The order of rows may tell of a column that is left out. So it is kept only where nothing is left out, or where
        a key that is kept decides it. A table WITHOUT ROWID may be read by any of its indexes, so its key is named.
        """
        if self.without_rowid:
            return self.table.primary_key
        if self.is_whole or self.row_number is not None:
            return ()
        return tuple(column.name for column in self.columns)

    def type_matters(self, column: Column) -> bool:
        """Whether values that compare as equal may be of several types, 1 and 1.0; in a key there is one of them."""
        declared = fold(column.type)
        return not self.without_rowid and (affinity(declared) == "BLOB" or (self.table.strict and declared == "any"))


def plan(tables: Sequence[Table], keep: Mapping[str, Sequence[str]]) -> tuple[list[Plan], Dropped]:
    """The tables that are kept.

    Args:
        tables: All tables and views.
        keep: Table to its columns that are to be seen.
    """
    dropped: Dropped = []
    # Of a module that is not there SQLite cannot say which tables it stores things in; by custom they bear its name.
    unknown = tuple(fold(table.name) + "_" for table in tables if table.kind == "virtual" and not table.columns)
    columns: dict[str, tuple[Column, ...]] = {}
    for table in tables:
        if table.kind == "view" or table.name not in keep:
            continue
        if table.kind != "table" or fold(table.name).startswith(unknown):
            dropped.append(["table", table.name, "virtual tables and what they are stored in are left out"])
            continue
        if table.unnamed:
            which = ", ".join(f"{count} with {fault}" for fault, count in Counter(table.unnamed).items())
            dropped.append(["columns", table.name, f"{which}: left out, since no rule can name them"])
        kept = tuple(_kept_columns(table, frozenset(keep[table.name]), dropped))
        if kept:
            columns[table.name] = kept
    plans = [_plan(table, columns, tables, dropped) for table in tables if table.name in columns]
    return [one for one in plans if _can_be_ordered(one, dropped)], dropped


def _can_be_ordered(one: Plan, dropped: Dropped) -> bool:
    if len(one.order) <= MOST_ORDERED_COLUMNS:
        return True
    reason = f"has over {MOST_ORDERED_COLUMNS} columns beside hidden ones, too many to order its rows by them"
    dropped.append(["table", one.table.name, reason])
    return False


def _kept_columns(table: Table, wanted: frozenset[str], dropped: Dropped) -> Iterator[Column]:
    """The wanted columns but those that are computed from others which are left out, or cannot be seen to be."""
    definitions = column_definitions(table.sql) if is_certain(table.sql) else {}
    hidden = {fold(column.name) for column in table.columns if column.name not in wanted}
    missing: dict[str, str] = {}
    changed = True
    while changed:
        changed = False
        for column in table.columns:
            name = fold(column.name)
            if not column.generated or name in hidden:
                continue
            needed = _dependence(name, hidden, definitions) if hidden or table.unnamed else None
            if needed is not None:
                hidden.add(name)
                missing[column.name] = needed
                changed = True
    dropped.extend(
        ["column", f"{table.name}.{name}", f"needs {table.name}.{needed}"] for name, needed in missing.items()
    )
    yield from (column for column in table.columns if fold(column.name) not in hidden)


def _dependence(name: str, hidden: set[str], definitions: Mapping[str, tuple[Token, ...]]) -> str | None:
    """What a generated column needs that is left out, or may be; `*`: it may be anything; None: nothing."""
    definition = definitions.get(name)
    if definition is None:  # not understood
        return "*"
    words = {word for token in definition if (word := token.identifier) is not None}
    if any(name_of(word.encode()) is None for word in words):  # of a column that is not even among the hidden ones
        return "*"
    return min(words & (hidden | ROW_NUMBERS), default=None)


def _plan(table: Table, columns: Mapping[str, tuple[Column, ...]], tables: Sequence[Table], dropped: Dropped) -> Plan:
    kept = columns[table.name]
    names = {column.name for column in kept}
    definitions = column_definitions(table.sql)
    collations = {
        column.name: collation
        for column in kept
        if (collation := collation_of(definitions.get(fold(column.name), ()))) in COLLATIONS
    }
    defaults = {column.name: column.default for column in kept if column.default is not None}
    for name in [name for name, text in defaults.items() if not plain_value(text)]:
        del defaults[name]
        dropped.append(["default", f"{table.name}.{name}", "is an expression"])
    if "check" in words_of(table.sql):
        dropped.append(["check", table.name, "checks are left out"])
    if table.row_number is not None and table.row_number not in names:
        dropped.append(["primary key", table.name, f"needs {table.name}.{table.row_number}"])
    return Plan(
        table=table,
        columns=kept,
        hidden=frozenset(fold(column.name) for column in table.columns if column.name not in names),
        defaults=defaults,
        collations=collations,
        indexes=tuple(_indexes(table, names, dropped)),
        foreign_keys=tuple(_foreign_keys(table, names, columns, tables, dropped)),
    )


def _indexes(table: Table, kept: set[str], dropped: Dropped) -> Iterator[Index]:
    for index in table.indexes:
        reason = _index_fault(table, index, kept)
        if reason is None:
            yield index
        elif index.origin == "c":
            dropped.append(["index", index.name, reason])
        else:
            kind = "unique constraint" if index.origin == "u" else "primary key"
            dropped.append([kind, table.name, reason])


def _index_fault(table: Table, index: Index, kept: set[str]) -> str | None:
    """Why an index cannot be made again; None: it can."""
    if index.partial:
        return "has a condition"
    for column in index.columns:
        if column.name is None:
            return "is over an expression"
        if column.name not in kept:
            return f"needs {table.name}.{column.name}"
        if fold(column.collation) not in COLLATIONS:
            return f"needs the collation {column.collation}"
    return None


def _foreign_keys(
    table: Table,
    kept: set[str],
    columns: Mapping[str, tuple[Column, ...]],
    tables: Sequence[Table],
    dropped: Dropped,
) -> Iterator[ForeignKey]:
    for key in table.foreign_keys:
        missing = _first_missing(table, key, kept, columns, tables)
        if missing is None:
            yield key
        else:
            dropped.append(["foreign key", f"{table.name}({', '.join(key.columns)})", f"needs {missing}"])


def _first_missing(
    table: Table,
    key: ForeignKey,
    kept: set[str],
    columns: Mapping[str, tuple[Column, ...]],
    tables: Sequence[Table],
) -> str | None:
    """What a foreign key needs that is left out; None: nothing. What never was there does not count."""
    for name in key.columns:
        if name not in kept:
            return f"{table.name}.{name}"
    target = next((other for other in tables if fold(other.name) == fold(key.table)), None)
    if target is None:
        return None
    there = {fold(column.name) for column in columns.get(target.name, ())}
    if not there:
        return target.name
    for name in key.references or target.primary_key:
        if fold(name) not in there:
            return f"{target.name}.{name}"
    return None
