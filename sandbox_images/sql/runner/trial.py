"""Which views can be prepared, tried out in processes that may be lost.

A view of views of views can be a short text and take SQLite minutes and gigabytes to prepare, and while it prepares,
nothing interrupts it. So this is done in a child with little time and memory, before anything else names a view: even
SQLite's list of tables prepares all of them.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from survey import fold, opened, quoted

VIEW_SECONDS = 1.0
"""Processor time to prepare one view."""
TOTAL_SECONDS = 10.0
"""To prepare all of them."""
_OPENING_SECONDS = 10.0
_HEAP_BYTES = 64 << 20
"""Half of what a query has."""
_OPERATIONS = 25_000
"""Of a prepared statement, as for a query."""
_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view that is to be tried."""

    name: str
    words: frozenset[str]
    """Every name in its definition, folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it."""

    faults: Mapping[str, str]
    """Name of a view to why it cannot be prepared."""
    waiting: Sequence[View]
    """Those that were not tried, because they name one that cannot be prepared."""


def try_all(source: Path, views: Sequence[View]) -> Tried:
    """Try to prepare views.

    Args:
        source: The database; nobody has it open.
        views: In an order in which most of them come after those that they read.

    Raises:
        OSError: The kernel refuses another process.
    """
    faults: dict[str, str] = {}
    waiting: list[View] = []
    rest = list(views)
    spent = 0.0
    while rest:
        lost = {*map(fold, faults), *(fold(view.name) for view in waiting)}
        answers, ending, seconds = _in_a_child(source, rest, lost, TOTAL_SECONDS - spent)
        spent += seconds
        for view, answer in zip(rest, answers, strict=False):
            if answer is None:
                waiting.append(view)
            elif answer:
                faults[view.name] = answer
        rest = rest[len(answers) :]
        if spent > TOTAL_SECONDS:
            faults.update((view.name, f"all views together take over {TOTAL_SECONDS:g} s to prepare") for view in rest)
            break
        if rest:
            faults[rest.pop(0).name] = ending
    return Tried(faults=faults, waiting=waiting)


def _in_a_child(
    source: Path, views: Sequence[View], lost: Collection[str], seconds: float
) -> tuple[list[str | None], str, float]:
    """(answers as far as they came, how the child ended at the next view, its processor time)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _try_each(source, views, set(lost), writing, time.process_time() + seconds)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        found = [json.loads(line) for line in answers if line.endswith(b"\n")]
    _, status, usage = os.wait4(pid, 0)
    is_overdue = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
    ending = f"takes over {VIEW_SECONDS:g} s to prepare" if is_overdue else "takes too much memory to prepare"
    return found, ending, usage.ru_utime + usage.ru_stime


def _try_each(source: Path, views: Sequence[View], lost: set[str], writing: int, end: float) -> NoReturn:
    """Write a line for each view: null where it waits, a reason, or an empty text where it can be prepared."""
    try:
        signal.setitimer(signal.ITIMER_PROF, _OPENING_SECONDS)  # its signal ends this process
        with opened(source) as connection, os.fdopen(writing, "wb", buffering=0) as answers:
            connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}").fetchall()
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            connection.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, _OPERATIONS)
            for view in views:
                signal.setitimer(signal.ITIMER_PROF, VIEW_SECONDS)
                answer = None if view.words & lost else _fault(connection, view.name)
                if answer != "":
                    lost.add(fold(view.name))
                answers.write(json.dumps(answer).encode() + b"\n")
                if time.process_time() > end:
                    break
    finally:
        os._exit(0)


def _fault(connection: sqlite3.Connection, view: str) -> str:
    try:
        connection.execute(f"PRAGMA main.table_xinfo({quoted(view)})").fetchall()
        connection.execute(f"EXPLAIN SELECT * FROM main.{quoted(view)}").close()  # noqa: S608 - a quoted name
    except MemoryError:
        return "takes too much memory to prepare"
    except sqlite3.Error as error:
        return f"does not work: {error}"[:_REASON_CHARACTERS]
    except UnicodeDecodeError:  # of the message, which names something
        return "does not work: it needs what has a name that is not UTF-8"
    return ""
