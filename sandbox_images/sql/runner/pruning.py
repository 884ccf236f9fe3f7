"""What must leave a database before anything is read from it: what nobody can name, and views that nobody can use.

A table whose name no text can hold matches no rule of a policy; so it is left out whatever the policy says. The file is
a copy of our own. Rows of its schema are deleted rather than things dropped, since a statement could not name them, and
the pages that are left over do not come along when the database is copied or rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from definitions import names_of
from plans import Dropped
from survey import fold, name_fault, name_of, opened, text_of
from trial import View, try_all

_SHOWN_CHARACTERS = 100
_OWNERS = {b"table": "table", b"view": "view"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A table or view in the schema of a database."""

    kind: str
    raw: bytes
    """Its name."""
    rows: tuple[int, ...]
    """Numbers of its row in the schema, and of those of its indexes and triggers."""
    words: frozenset[str]
    """Of its definition, folded."""


def prune(source: Path) -> Dropped:
    """Take away what cannot be named, and views that cannot be prepared.

    Args:
        source: The database, which is changed if anything is left out.

    Returns:
        What was taken away, with the reason.

    Raises:
        sqlite3.Error: The file is no database, or is damaged.
        OSError: The kernel refuses another process.
    """
    entries = _entries(source)
    dropped: Dropped = []
    unnamed = [entry for entry in entries if name_of(entry.raw) is None]
    dropped += [[entry.kind, _shown(entry.raw), f"it has {name_fault(entry.raw)}"] for entry in unnamed]
    _delete(source, unnamed)
    views = {str(name_of(entry.raw)): entry for entry in entries if entry.kind == "view" and name_of(entry.raw)}
    tried = try_all(source, [View(name=name, words=entry.words - {fold(name)}) for name, entry in views.items()])
    dropped += [["view", name, reason] for name, reason in tried.faults.items()]
    _delete(source, [views[name] for name in tried.faults])
    # Without those, what reads one of them fails at once; a view that only has a column of that name does not.
    lost = {fold(name): name for name in (*tried.faults, *(view.name for view in tried.waiting))}
    last = try_all(source, [View(name=view.name, words=frozenset()) for view in tried.waiting])
    dropped += [
        ["view", view.name, f"needs view {lost[min(view.words & lost.keys())]}, which is left out"]
        for view in tried.waiting
        if view.name in last.faults
    ]
    _delete(source, [views[name] for name in last.faults])
    return dropped


def _entries(source: Path) -> list[_Entry]:
    with opened(source) as connection:
        schema = connection.execute("SELECT rowid, type, name, tbl_name, sql FROM sqlite_master").fetchall()
    owned: dict[object, list[int]] = {}
    for row, kind, _, owner, _ in schema:
        if kind not in _OWNERS:
            owned.setdefault(owner, []).append(row)
    return [
        _Entry(
            kind=_OWNERS[kind],
            raw=name if isinstance(name, bytes) else b"",
            rows=(row, *owned.get(name, ())),
            words=names_of(text_of(sql) or "") if isinstance(sql, bytes) and _OWNERS[kind] == "view" else frozenset(),
        )
        for row, kind, name, _, sql in schema
        if kind in _OWNERS
    ]


def _delete(source: Path, entries: Iterable[_Entry]) -> None:
    """Delete them from the schema, with their indexes and triggers."""
    rows = [(row,) for entry in entries for row in entry.rows]
    if not rows:
        return
    with opened(source) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("BEGIN")
        connection.executemany("DELETE FROM sqlite_master WHERE rowid = ?", rows)
        connection.execute("COMMIT")


def _shown(raw: bytes) -> str:
    return repr(raw.decode(errors="backslashreplace")[:_SHOWN_CHARACTERS])[1:-1]
