"""Which views can be kept, and their making.

SQLite itself says what a view reads: an authorizer hears of every column that a name is resolved to, through other
views, through `*`, and where a name in double quotes could be a string as well. A view is kept if all of it is kept,
and if in the new database it still reads the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from definitions import is_certain, names_of, without_comments
from plans import Dropped, Plan
from survey import Table, fold, quoted

Reads = frozenset[tuple[str, str]]
"""Folded (table, column); an empty column stands for the table's rows."""
_FUNCTIONS = frozenset({"json_each", "json_tree"})
_OWN = ("sqlite_", "pragma_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A view that reads nothing but what is kept."""

    view: Table
    reads: Reads


def candidates(
    origin: sqlite3.Connection,
    tables: Sequence[Table],
    plans: Sequence[Plan],
    keep: Mapping[str, Sequence[str]],
    dropped: Dropped,
) -> list[Candidate]:
    """Views that may be kept.

    Args:
        origin: The original database.
        tables: All its tables and views.
        plans: Of the tables that are kept.
        keep: As for `plans.plan`.
        dropped: Told of the others.
    """
    known = {fold(table.name): table for table in tables}
    kept = {(fold(one.table.name), fold(column.name)) for one in plans for column in one.columns}
    kept |= {(table, "") for table, _ in kept}
    wanted = [table for table in tables if table.kind == "view" and table.name in keep]
    kept |= {(fold(view.name), fold(name)) for view in wanted for name in keep[view.name]}
    kept |= {(fold(view.name), "") for view in wanted}
    cut = {fold(one.table.name) for one in plans if not one.is_whole}
    cut |= {name for name, table in known.items() if table.kind != "view"} - {fold(one.table.name) for one in plans}
    found = []
    for view in wanted:
        reads = _reads(origin, view.name)
        reason = _fault(view, reads, keep[view.name], known, kept, cut)
        if reason is None and reads is not None:
            found.append(Candidate(view=view, reads=reads))
        else:
            dropped.append(["view", view.name, reason or "does not work"])
    return found


def make(made: sqlite3.Connection, wanted: Sequence[Candidate], dropped: Dropped) -> None:
    """Create the views that work in the new database as they do in the original.

    Args:
        made: The new database, its tables in place.
        wanted: The views.
        dropped: Told of those that do not work.
    """
    there: list[Candidate] = []
    for candidate in wanted:
        try:
            made.execute(without_comments(candidate.view.sql))
        except sqlite3.Error as error:
            dropped.append(["view", candidate.view.name, f"cannot be made again: {error}"])
        else:
            there.append(candidate)
    while broken := [candidate for candidate in there if not _works(made, candidate)]:
        for candidate in broken:  # others may rest on it
            made.execute(f"DROP VIEW {quoted(candidate.view.name)}")
            dropped.append(["view", candidate.view.name, "needs what is left out"])
            there.remove(candidate)


def _fault(
    view: Table,
    reads: Reads | None,
    wanted: Sequence[str],
    known: Mapping[str, Table],
    kept: set[tuple[str, str]],
    cut: set[str],
) -> str | None:
    """Why a view cannot be kept; None: nothing speaks against it."""
    if view.unnamed:
        return f"has a column with {view.unnamed[0]}"
    if reads is None or not view.sql:
        return "does not work"
    hidden = [column.name for column in view.columns if column.name not in wanted]
    if hidden:
        return f"needs {view.name}.{hidden[0]}"
    for table, column in sorted(reads):
        if table in known:
            if (table, column) not in kept:
                return f"needs {known[table].name}.{column}" if column else f"needs {known[table].name}"
        elif table.startswith(_OWN) or (column and table not in _FUNCTIONS):
            return f"needs {table}"
    return _fault_of_words(view.sql, {table for table, _ in reads}, known, cut)


def _fault_of_words(sql: str, tables: set[str], known: Mapping[str, Table], cut: set[str]) -> str | None:
    """The same, of what the authorizer does not hear: what a NATURAL JOIN compares, and columns without a name."""
    if cut and not is_certain(sql):
        return "has characters that SQLite may read in several ways"
    names = names_of(sql)
    joined = sorted(names & cut)
    if "natural" in names and joined:
        return f"has a NATURAL JOIN, and {joined[0]} lacks columns"
    nameless = sorted(table for table in tables & known.keys() if "no name" in known[table].unnamed)
    return f"may need a column of {known[nameless[0]].name} that has no name" if nameless and "" in names else None


def _reads(connection: sqlite3.Connection, view: str) -> Reads | None:
    """What a view reads; None: it does not work."""
    heard: set[tuple[str, str]] = set()

    def hear(action: int, table: str | None, column: str | None, schema: str | None, _: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            # Rows of a recursive common table have no schema and no column. So do a table's rows that are only counted.
            heard.add((fold(table), fold(column or "") if schema is not None else ""))
        return sqlite3.SQLITE_OK

    connection.execute("SELECT 1 FROM sqlite_master LIMIT 0").fetchall()  # or it would hear of the schema being read
    connection.set_authorizer(hear)
    try:
        connection.execute(f"EXPLAIN SELECT * FROM main.{quoted(view)}").close()  # noqa: S608 - a quoted name
    except (sqlite3.Error, MemoryError, UnicodeDecodeError):  # the last one of a name, which the message holds as well
        return None
    finally:
        connection.set_authorizer(None)
    return frozenset((table, column) for table, column in heard if table != fold(view))


def _works(made: sqlite3.Connection, candidate: Candidate) -> bool:
    reads = _reads(made, candidate.view.name)
    if reads is None or {read for read in reads if read[1]} != {read for read in candidate.reads if read[1]}:
        return False
    again = made.execute(f"PRAGMA main.table_xinfo({quoted(candidate.view.name)})").fetchall()
    return [row[1] for row in again] == [column.name.encode() for column in candidate.view.columns]
