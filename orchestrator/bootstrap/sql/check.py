"""`sql check`: what the gate and the policy say of a query, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.bootstrap.sql.opening import OpenFor, open_database, require_file
from orchestrator.domain.data_access import Access
from orchestrator.sql import gate
from orchestrator.sql.reads import named_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is said of a query."""

    database: str
    refused_by: Literal["gate", "policy"] | None
    """None: it is allowed."""
    reason: str = ""
    is_ordered: bool = False
    """Whether the order of its rows is part of what it says."""
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Table to columns, of those that the policy leaves; may say too much, never too little."""
    access: Access | None = None
    """What the policy keeps back; None: the gate refused the query, so that the database was not asked."""


def check_query(sql: str, path: Path, opener: OpenFor) -> Checked:
    """Ask the gate, which needs nothing, and then the policy, which needs to know what is in the database.

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
        reason = ""
        try:
            database.check(sql)
        except gate.Refusal as refusal:
            reason = refusal.reason
        return Checked(
            database=database.name,
            refused_by="policy" if reason else None,
            reason=reason,
            is_ordered=statement.has_top_level_order,
            reads=named_columns(statement, database.description.schema),
            access=database.access,
        )
