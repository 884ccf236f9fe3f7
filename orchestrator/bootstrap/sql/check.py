"""`sql check`: what the gate, the policy and SQLite say of a query, without computing a row of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.bootstrap.sql.opening import OpenFor, open_database, require_file
from orchestrator.domain.data_access import Access
from orchestrator.domain.sql import QueryStatus
from orchestrator.sql import gate
from orchestrator.sql.reads import named_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is said of a query."""

    database: str
    refused_by: Literal["gate", "policy", "sqlite"] | None
    """None: it is allowed."""
    reason: str = ""
    is_ordered: bool = False
    """Whether the order of its rows is part of what it says."""
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Table to columns, of those that the policy leaves; may say too much, never too little."""
    access: Access | None = None
    """What the policy keeps back; None: the gate refused the query, so that the database was not asked."""


def check_query(sql: str, path: Path, opener: OpenFor) -> Checked:
    """Ask the gate, which needs nothing, then the policy and SQLite, which need to know what is in the database.

    Args:
        sql: Untrusted.
        path: Of the SQLite file.
        opener: Of the caller.

    Raises:
        EvolvariumError: As `open_database`.
    """
    require_file(path)
    try:
        statement = gate.check(sql)
    except gate.Refusal as refusal:
        return Checked(database=path.stem, refused_by="gate", reason=refusal.reason)
    with open_database(path, "check", opener) as database:
        refused_by: Literal["policy", "sqlite"] | None = None
        reason = ""
        try:
            # No row of it is computed; but SQLite looks every name up.
            wrapped = f"SELECT * FROM (\n{database.check(sql)}\n) LIMIT 0"  # noqa: S608 - it has passed the gate
            prepared = database.query(wrapped, attempt_id="check")
        except gate.Refusal as refusal:
            refused_by, reason = "policy", refusal.reason
        else:
            if prepared.status is QueryStatus.ERROR:
                refused_by, reason = "sqlite", prepared.message
        return Checked(
            database=database.name,
            refused_by=refused_by,
            reason=reason,
            is_ordered=statement.has_top_level_order,
            reads=named_columns(statement, database.description.schema),
            access=database.access,
        )
