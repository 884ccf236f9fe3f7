"""`evolvarium sql check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.sql.check import Checked, check_query
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.cli.options import Home, Json, PolicyName, RuntimeName
from orchestrator.cli.sql_answers import hidden_columns
from orchestrator.cli.sql_documents import SqlCheckDocument
from orchestrator.cli.sql_options import DatabaseFile
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.domain.sizes import size_words
from orchestrator.errors import InputError

_MAX_BYTES = 1 << 20
_LINES_SHOWN = 10
_COLUMNS_SHOWN = 8


def check(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SQL, or `-` to read it from stdin.")],
    db: DatabaseFile,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Say whether a query would be let through, what it reads, and which rule hides what. It is not run.

    The gate alone needs no engine. What the policy and SQLite say needs one: the tables are read and the query is
    prepared in a container. Exit code 0: allowed; 1: refused.
    """
    sql = _from_stdin() if query == "-" else query
    places = find_places(home, None)
    found = find_policy(places, policy, runtime)
    terminal = Terminal(as_json=as_json)
    with stoppable() as token:
        checked = check_query(sql, db, OpenFor(places=places, policy=found, token=token, note=terminal.note))
    document = _document(checked, found.name)
    terminal.result(document, *check_parts(document))
    if not document.allowed:
        raise typer.Exit(1)


def _from_stdin() -> str:
    content = sys.stdin.buffer.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        msg = f"stdin holds over {_MAX_BYTES} bytes, which is no query; give one query"
        raise InputError(msg)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"stdin is not UTF-8 at byte {error.start}; give the query as UTF-8"
        raise InputError(msg) from error


def _document(checked: Checked, policy: str) -> SqlCheckDocument:
    access = checked.access
    return SqlCheckDocument(
        database=checked.database,
        policy=policy,
        allowed=checked.refused_by is None,
        refused_by=checked.refused_by,
        reason=checked.reason,
        ordered=checked.is_ordered,
        reads={table: list(columns) for table, columns in checked.reads.items()},
        hidden=hidden_columns(access.hidden if access else ()),
        max_rows=None if access is None else access.max_rows,
        max_bytes=None if access is None else access.max_bytes,
        query_seconds=None if access is None else access.query_seconds,
    )


def check_parts(document: SqlCheckDocument) -> list[Rows | str]:
    """What is said of a query, as people read it."""
    if document.refused_by == "gate":
        return [f"Refused by the gate: {document.reason}", "The database was not asked, and no engine was needed."]
    by = "SQLite" if document.refused_by == "sqlite" else f"policy {document.policy}"
    verdict = "Allowed" if document.allowed else f"Refused by {by}: {document.reason}"
    parts: list[Rows | str] = [verdict]
    if document.reads:
        rows = [[table, ", ".join(columns) or None] for table, columns in document.reads.items()]
        title = "It reads" if document.allowed else "Of what the policy leaves it would read"
        parts += ["", Rows(title=title, columns=["table", "columns"], rows=rows, cell_characters=400)]
    if document.hidden:
        parts += ["", _kept_back(document)]
    limits = (
        f"{document.max_rows or 0:,} rows, {size_words(document.max_bytes or 0)}, {document.query_seconds:g} s of "
        "computing"
    )
    return [*parts, "", f"A query may give and take at most {limits}."]


def _kept_back(document: SqlCheckDocument) -> Rows:
    """One line for each table and rule, as many as fit a screen."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in document.hidden:
        grouped.setdefault((one.table, one.rule), []).append(one.column)
    lines = list(grouped.items())[:_LINES_SHOWN]
    shown = sum(min(len(columns), _COLUMNS_SHOWN) for _, columns in lines)
    count = len(document.hidden)
    cut = f", {shown} of them shown (--json shows all)" if shown < count else ""
    return Rows(
        title=f"Kept back of {document.database}: {count} column{'s' if count != 1 else ''}{cut}",
        columns=["table", "columns", "by"],
        rows=[[table, _few(columns), rule] for (table, rule), columns in lines],
        cell_characters=200,
    )


def _few(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _COLUMNS_SHOWN} more" if len(columns) > _COLUMNS_SHOWN else ""
    return ", ".join(columns[:_COLUMNS_SHOWN]) + more
