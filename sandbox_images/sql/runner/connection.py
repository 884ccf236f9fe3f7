"""The connection of one child: read-only, limited, and told about the database before anything untrusted runs."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from authorizer import Authorizer
from limits import Limits, Readable

MAX_SQL_CHARACTERS = 20_000
_SQL_BYTES = 4 * MAX_SQL_CHARACTERS  # UTF-8 takes at most four for a character
_CEILINGS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: _SQL_BYTES,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 64,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_OPERATIONS = 2_000
"""Of SQLite's virtual machine, between two looks at the clock."""
_DECLARE = "SELECT count(*) FROM json_each('[1]'), json_tree('[1]')"


def uri_of(database: Path) -> str:
    """How a file is named to be opened for reading only."""
    return f"{database.absolute().as_uri()}?mode=ro"


class Connection:
    """An open database."""

    def __init__(self, uri: str, limits: Limits, length_bytes: int) -> None:
        """Open it, and read its schema.

        Args:
            uri: From `uri_of`; made beforehand, since every page that a forked process touches costs it time.
            limits: Of the query.
            length_bytes: Of one text, blob or row.

        Raises:
            sqlite3.Error: It is no database, or its schema is broken.
            MemoryError: Its schema does not fit the limits.
        """
        self._limits = limits
        self.raw = raw = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0)
        raw.text_factory = bytearray  # text byte for byte, and told from blobs, which are `bytes`
        raw.executescript(
            f"PRAGMA hard_heap_limit={limits.heap_bytes}; PRAGMA temp_store=MEMORY; PRAGMA query_only=ON;"
            " PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
            " PRAGMA mmap_size=0;"  # a read that fails is an error then, and no signal
            " SELECT random();"  # reads its seed while files can be opened
        )
        names = raw.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall()
        self._tables = frozenset(
            folded for (name,) in names if not (folded := bytes(name).lower()).startswith(b"sqlite_")
        )
        for which, ceiling in _CEILINGS.items():  # after the schema, which may have a table of a thousand columns
            raw.setlimit(which, ceiling)
        raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length_bytes)

    def guard(self, sql: str, readable: Readable | None, *, reverse: bool) -> Authorizer:
        """Get ready for one untrusted statement.

        Args:
            sql: The statement.
            readable: What it may read; None: everything.
            reverse: Give rows that have no order the other way round.

        Returns:
            Who keeps what was refused.
        """
        if "json_" in sql.lower():
            self.raw.execute(_DECLARE).fetchall()  # under an authorizer they could not declare themselves
        if reverse:
            self.raw.execute("PRAGMA reverse_unordered_selects=ON").fetchall()
        authorizer = Authorizer(self._tables, readable)
        self.raw.set_authorizer(authorizer)
        self.stop_after(self._limits.query_seconds)
        return authorizer

    def widen(self) -> None:
        """Allow statements of our own, which name what they ask about by a variable."""
        self.raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1)

    def stop_after(self, seconds: float) -> None:
        """Interrupt whatever runs once this process has computed for so long from now on."""
        end = time.process_time() + seconds
        self.raw.set_progress_handler(lambda: time.process_time() > end, _OPERATIONS)
