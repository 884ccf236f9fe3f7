"""What a query may do, asked by SQLite while it prepares a statement: read, and nothing else.

It is the second layer. Above it stands the gate, below it a read-only connection on a read-only mount, in a database
from which hidden columns were taken away.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing

from limits import Readable, fold

FUNCTIONS = frozenset({
    # values
    "abs", "changes", "char", "coalesce", "concat", "concat_ws", "format", "glob", "hex", "if", "ifnull", "iif",
    "instr", "last_insert_rowid", "length", "like", "likelihood", "likely", "lower", "ltrim", "max", "min",
    "nullif", "octet_length", "printf", "quote", "random", "randomblob", "replace", "round", "rtrim", "sign",
    "soundex", "sqlite_version", "substr", "substring", "total_changes", "trim", "typeof", "unhex", "unicode",
    "unistr", "unistr_quote", "unlikely", "upper", "zeroblob",
    # mathematics
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc",
    # dates
    "current_date", "current_time", "current_timestamp", "date", "datetime", "julianday", "strftime", "time",
    "timediff", "unixepoch",
    # groups
    "avg", "count", "group_concat", "json_group_array", "json_group_object", "median", "percentile",
    "percentile_cont", "percentile_disc", "string_agg", "sum", "total",
    # windows
    "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile", "percent_rank",
    "rank", "row_number",
    # JSON
    "->", "->>", "json", "json_array", "json_array_length", "json_error_position", "json_extract", "json_insert",
    "json_object", "json_patch", "json_pretty", "json_quote", "json_remove", "json_replace", "json_set",
    "json_type", "json_valid",
})  # fmt: skip
"""SQLite's own functions, of this version and later ones; none that reaches beyond its arguments."""
TABLE_FUNCTIONS = frozenset({b"json_each", b"json_tree"})
_ACTIONS = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in (
        "CREATE_INDEX", "CREATE_TABLE", "CREATE_TEMP_INDEX", "CREATE_TEMP_TABLE", "CREATE_TEMP_TRIGGER",
        "CREATE_TEMP_VIEW", "CREATE_TRIGGER", "CREATE_VIEW", "DELETE", "DROP_INDEX", "DROP_TABLE",
        "DROP_TEMP_INDEX", "DROP_TEMP_TABLE", "DROP_TEMP_TRIGGER", "DROP_TEMP_VIEW", "DROP_TRIGGER", "DROP_VIEW",
        "INSERT", "PRAGMA", "TRANSACTION", "UPDATE", "ATTACH", "DETACH", "ALTER_TABLE", "REINDEX", "ANALYZE",
        "CREATE_VTABLE", "DROP_VTABLE", "SAVEPOINT",
    )
}  # fmt: skip


def _modules() -> frozenset[bytes]:
    """Folded names of the virtual tables that exist without being made.

    Asked of an empty database, which also makes SQLite ready before the children are forked.
    """
    with closing(sqlite3.connect(":memory:")) as nothing:
        return frozenset(fold(name) for (name,) in nothing.execute("SELECT name FROM pragma_module_list"))


MODULES = _modules()


class Authorizer:
    """Answers SQLite's questions about one query, and keeps the first refusal."""

    def __init__(self, tables: Collection[bytes], readable: Readable | None) -> None:
        """Know the database.

        Args:
            tables: Folded names of its tables and views, without SQLite's own.
            readable: What may be read of its tables; None: everything.
        """
        self._tables = tables
        self._readable = readable
        self.refused: str | None = None
        """What was not allowed, in words; None: nothing yet."""

    def __call__(
        self, action: int, first: str | None, second: str | None, _database: str | None, _inside: str | None
    ) -> int:
        """SQLite's question."""
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            allowed = self._may_read(first or "", second or "")
            what = f"reading {first}.{second}" if second else f"reading {first}"
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() in FUNCTIONS
            what = f"function {second}"
        else:
            allowed = False
            what = _in_words(action, first)
        if allowed:
            return sqlite3.SQLITE_OK
        self.refused = self.refused or f"{what} is not allowed"
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str) -> bool:
        """SQLite gives no column where a query names a table and reads none of its columns."""
        name = fold(table)
        if name in self._tables:
            if self._readable is None:
                return True
            columns = self._readable.get(name)
            # ROWID in capitals is the hidden row number; a column that stands for it comes with its own name.
            return columns is not None and (not column or column == "ROWID" or fold(column) in columns)
        if name in TABLE_FUNCTIONS:
            return True
        # What is left are the names of common table expressions, which are asked about without a column only.
        return not column and not name.startswith((b"sqlite_", b"pragma_")) and name not in MODULES


def _in_words(action: int, name: str | None) -> str:
    if action == sqlite3.SQLITE_UPDATE and (name or "").startswith("sqlite_"):
        return "a virtual table"  # it declares its columns when it is first used
    return " ".join(filter(None, (_ACTIONS.get(action, f"action {action}"), name)))
