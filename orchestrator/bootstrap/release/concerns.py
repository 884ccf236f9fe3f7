"""What an operator should look at in what a tool was seen to do.

Everything that is not known to be part of analysing one database is listed. The entries come from inside the tool's own
process: what they say was done, and what they leave out may have been done as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from urllib.parse import unquote

from orchestrator.domain.agent_packages import DATABASE_FILE, STDOUT, TOOL_FOLDER, AgentPackage
from orchestrator.domain.tool_runs import ToolObservation, ToolRun

_WORKING_FOLDER = "/tmp/tool/"  # noqa: S108 - in the container
"""Where a tool runs; its image shows what lies there without it, but for URIs."""
_MOUNTED = f"/data/{DATABASE_FILE}"
_OUTPUT_FOLDER = "tool_output/"
_HARMLESS_EVENTS = frozenset({
    "builtins.id", "code.__new__", "compile", "exec", "glob.glob", "glob.glob/2", "marshal.loads", "object.__getattr__",
    "object.__setattr__", "os.listdir", "os.mkdir", "os.scandir", "os.walk", "pathlib.Path.glob", "pathlib.Path.rglob",
    "sys._getframe", "sys._getframemodulename", "time.sleep",
})  # fmt: skip
"""What importing and using the modules that tools may use makes of audit events beside imports, files and SQL."""
_TELLING_MODULES = frozenset({
    "_ctypes", "_multiprocessing", "_posixsubprocess", "_socket", "_ssl", "asyncio", "cffi", "ctypes", "fcntl",
    "importlib.util", "mmap", "multiprocessing", "pty", "resource", "runpy", "signal", "socket", "ssl", "subprocess",
    "webbrowser",
})  # fmt: skip
"""They reach networks, processes, machine code or memory, and nothing that tools may import imports them."""
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
"""Texts, quoted names and comments of SQL."""
_READING = frozenset({"BEGIN", "COMMIT", "END", "EXPLAIN", "PRAGMA", "RELEASE", "ROLLBACK", "SAVEPOINT", "SELECT",
                      "VALUES", "WITH"})  # fmt: skip
_WRITING = re.compile(r"\b(?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO\b|\bDELETE\s+FROM\b|\bUPDATE\b.*\bSET\b", re.DOTALL)
_SHOWN_SQL = 200


def concerns_of(package: AgentPackage, run: ToolRun) -> tuple[str, ...]:
    """One line each; none: a text was given, and nothing else but what that takes was seen.

    Args:
        package: Whose tool it is.
        run: With an observation, unless it ended before it began.
    """
    failed = [] if run.failure is None else [f"it failed: {run.failure.value}"]
    if run.observation is None:
        return tuple(failed)
    seen = run.observation
    imports = [f"it imported {name}" for name in seen.imports if name in _TELLING_MODULES]
    sql = [_line(f"it ran SQL that does not only read: {text}") for text in seen.sql if not _only_reads(text)]
    omitted = [f"{seen.omitted} more things that it did are not listed"] if seen.omitted else []
    return (*failed, *imports, *_files(package, seen), *sql, *_events(seen), *omitted)


def _files(package: AgentPackage, seen: ToolObservation) -> Iterator[str]:
    for entry in seen.opened:
        mode, _, path = entry.partition(" ")
        writes = any(letter in mode for letter in "wax+")
        if writes and not _is_output(path, package):
            yield _line(f"it opened a file for writing: {mode} {path}")
        elif not writes and not (_is_database(path) if mode == "sqlite" else _is_its_own(path, package)):
            yield _line(f"it opened a file that is none of its own: {mode} {path}")
    if not any(entry.startswith("sqlite ") for entry in seen.opened):
        yield "it was not seen to open the database, so it may have kept from being watched"


def _events(seen: ToolObservation) -> Iterator[str]:
    for name, count in seen.events.items():
        if name not in _HARMLESS_EVENTS:
            yield _line(f"{name}, {'once' if count == 1 else f'{count} times or more'}")


def _is_database(name: str) -> bool:
    """Whether SQLite is given the tool's database, or one in memory."""
    path = unquote(name[5:].partition("?")[0]) if name.startswith("file:") else name
    return path in {"", ":memory:"} or _place(path) in {DATABASE_FILE, _MOUNTED}


def _is_its_own(path: str, package: AgentPackage) -> bool:
    place = _place(path)
    folder, _, name = place.rpartition("/")
    is_compiled = folder == f"{TOOL_FOLDER}/__pycache__" and name.endswith(".pyc")
    return place in {DATABASE_FILE, _MOUNTED, *package.tool_files} or is_compiled or _is_output(path, package)


def _is_output(path: str, package: AgentPackage) -> bool:
    place = _place(path)
    output = package.manifest.output
    return place.startswith(_OUTPUT_FOLDER) or (output != STDOUT and place == normpath(output))


def _place(path: str) -> str:
    """A path relative to the working folder, without detours; others as they are."""
    return normpath(path).removeprefix(_WORKING_FOLDER)


def _only_reads(sql: str) -> bool:
    plain = _QUOTED.sub(" '' ", sql)
    first = re.match(r"[\s;'(]*([A-Za-z]*)", plain)
    word = "" if first is None else first[1].upper()
    return (not word or word in _READING) and _WRITING.search(plain.upper()) is None


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_SQL else line[: _SHOWN_SQL - 1] + "\N{HORIZONTAL ELLIPSIS}"
