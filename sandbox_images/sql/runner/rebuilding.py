"""A database without some columns, made by fresh statements and INSERT SELECT.

Nothing of the original's pages, statements or comments is taken over: what is kept is read by a query and written anew.
What depends on something that is left out is left out as well: generated columns, keys, indexes, foreign keys and
views, however they come to depend on it. Triggers, checks, virtual tables and what SQLite keeps for itself
(`sqlite_sequence`, `sqlite_stat1`) never come along: a database that is only read needs none of them, and any of them
may hold copies of values.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from plans import Dropped, Plan, plan
from statements import create_indexes, create_table, insert
from survey import Unsuitable, opened, quoted, read_tables
from views import candidates, make

_SOURCE = "original"


def rebuild(source: Path, target: Path, keep: Mapping[str, Sequence[str]]) -> Dropped:
    """Make the database `target`, which does not exist.

    Args:
        source: The original; nothing in it is changed.
        target: In a folder that can be written to.
        keep: Table or view to the columns that are to be seen; the names as `survey` gives them.

    Returns:
        What is left out beside what `keep` does not name.

    Raises:
        sqlite3.Error: The original is damaged, or something does not fit.
        Unsuitable: It is too large to be worked on.
    """
    with opened(source) as origin:
        tables = read_tables(origin)
        plans, dropped = plan(tables, keep)
        if not plans:
            msg = "no table is left of it"
            raise Unsuitable(msg)
        triggers = origin.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0]
        if triggers:
            dropped.append(["triggers", str(triggers), "triggers are left out"])
        wanted = candidates(origin, tables, plans, keep, dropped)
        (encoding,) = origin.execute("PRAGMA encoding").fetchone()
    with opened(target) as made:
        made.execute(f"PRAGMA encoding = '{encoding.decode()}'")  # texts are copied as bytes only between equals
        made.execute("PRAGMA journal_mode = MEMORY").fetchall()
        made.execute(f"ATTACH DATABASE ? AS {_SOURCE}", (os.fspath(source),))
        made.execute("BEGIN")
        for one in plans:
            _copy(made, one, dropped)
        made.execute("COMMIT")
        made.execute(f"DETACH DATABASE {_SOURCE}")
        make(made, wanted, dropped)
        made.execute("PRAGMA journal_mode = DELETE").fetchall()
    return dropped


def _copy(made: sqlite3.Connection, one: Plan, dropped: Dropped) -> None:
    made.execute(create_table(one))
    try:
        made.execute(insert(one, _SOURCE))
    except sqlite3.IntegrityError as error:  # rows that were there before a constraint was, or a damaged index
        made.execute(f"DROP TABLE main.{quoted(one.table.name)}")
        made.execute(create_table(one, bare=True))
        made.execute(insert(one, _SOURCE))
        dropped.append(["constraints", one.table.name, f"do not hold: {error}"])
    for index, statement in create_indexes(one):
        try:
            made.execute(statement)
        except sqlite3.IntegrityError as error:
            dropped.append(["index", index.name, f"does not hold: {error}"])
