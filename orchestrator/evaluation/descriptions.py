"""A database as its container describes it: checked JSON, and what a policy's rule makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.data_access import Access, DataRule, Hidden, folded
from orchestrator.domain.sql import Column, Description, ForeignKey, Schema, Table
from orchestrator.errors import ProtocolError
from orchestrator.sql.quoting import is_exact, visible

Dropped = tuple[tuple[str, str, str], ...]
"""What a derived database lacks beside the hidden columns: (kind, name, reason)."""
_ODD = "has characters that cannot be seen"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Column(_Strict):
    name: str
    type: str
    not_null: bool
    default: str | None
    primary_key: Annotated[int, Field(ge=0)]
    generated: bool
    examples: tuple[str, ...]


class _ForeignKey(_Strict):
    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


class _Table(_Strict):
    name: str
    kind: Literal["table", "view", "virtual"]
    sql: str
    rows: Annotated[int, Field(ge=0)] | None
    columns: tuple[_Column, ...]
    foreign_keys: tuple[_ForeignKey, ...]

    def value(self) -> Table:
        return Table(
            name=self.name,
            kind=self.kind,
            sql=self.sql,
            rows=self.rows,
            columns=tuple(Column(**column.model_dump()) for column in self.columns),
            foreign_keys=tuple(ForeignKey(**key.model_dump()) for key in self.foreign_keys),
        )


class _Surveyed(_Strict):
    tables: tuple[_Table, ...]


class _Described(_Surveyed):
    values: tuple[tuple[str, str, tuple[str, ...]], ...]


def parse_survey(body: bytes) -> Schema:
    """The body of a `surveyed` frame: names, types and keys of everything in the original.

    Raises:
        ProtocolError: It is not well formed.
    """
    try:
        return Schema(tables=tuple(table.value() for table in _Surveyed.model_validate_json(body).tables))
    except ValidationError as error:
        raise _malformed("surveyed", error) from error


def parse_description(body: bytes, *, sqlite_version: str, dropped: Dropped) -> Description:
    """The body of a `described` frame.

    Args:
        body: Untrusted in every text that it holds, and bounded by the frame it came in.
        sqlite_version: That described it.
        dropped: As the deriving container told.

    Raises:
        ProtocolError: It is not well formed.
    """
    try:
        described = _Described.model_validate_json(body)
    except ValidationError as error:
        raise _malformed("described", error) from error
    return Description(
        schema=Schema(tables=tuple(table.value() for table in described.tables)),
        values={(table, column): texts for table, column, texts in described.values},
        sqlite_version=sqlite_version,
        dropped=tuple(" ".join(f"{kind} {name}: {reason}".split()) for kind, name, reason in dropped),
    )


def without_odd_names(access: Access, rule: DataRule, schema: Schema) -> Access:
    """The same access; where the rule hides anything, columns and tables count as hidden whose names hide something.

    A name with a control character, a space of no width or half a surrogate pair looks like another one, so that a
    pattern written for what is seen does not match it.
    """
    if not (rule.deny or rule.redact or rule.tables != ("*",)):
        return access
    known = {(one.table, one.column) for one in access.hidden}
    odd = tuple(
        Hidden(table=table.name, column=column.name, rule=f"data rule {access.rule}, {visible(name)} {_ODD}")
        for table in schema.tables
        for column in table.columns
        if (table.name, column.name) not in known
        for name in [next((one for one in (table.name, column.name) if not is_exact(one)), "")]
        if name
    )
    return replace(access, hidden=(*access.hidden, *odd))


def columns_kept(schema: Schema, access: Access) -> dict[str, list[str]]:
    """Table to the columns that a rule leaves; a table of which nothing is left is not there."""
    hidden = {(one.table, one.column) for one in access.hidden}
    kept = {
        table.name: [column.name for column in table.columns if (table.name, column.name) not in hidden]
        for table in schema.tables
    }
    return {table: columns for table, columns in kept.items() if columns}


def with_dropped(access: Access, before: Schema, after: Schema, dropped: Dropped) -> Access:
    """The same access, where everything counts as hidden that the derived database does not have.

    Args:
        access: Of the rule alone.
        before: The original.
        after: The derived database.
        dropped: Why something is missing, where that is known.
    """
    there = {(table.name, column.name) for table in after.tables for column in table.columns}
    known = there | {(one.table, one.column) for one in access.hidden}
    reasons = {(kind, name): f"{kind} {name}: {reason}" for kind, name, reason in dropped}
    lost = tuple(
        Hidden(table=table.name, column=column.name, rule=f"data rule {access.rule}, {reason}")
        for table in before.tables
        for column in table.columns
        if (table.name, column.name) not in known
        for reason in [_why_lost(table.name, column.name, reasons)]
    )
    return replace(access, hidden=(*access.hidden, *lost))


def absent(before: Schema, dropped: Dropped) -> dict[str, str]:
    """Folded name of each table and view that is not even in the survey, to why it was left out."""
    return {
        folded(name): f"{kind} {name} was left out: {reason}"
        for kind, name, reason in dropped
        if kind in ("table", "view") and before.table(name) is None
    }


def _why_lost(table: str, column: str, reasons: Mapping[tuple[str, str], str]) -> str:
    for thing in (("column", f"{table}.{column}"), ("view", table), ("table", table)):
        if thing in reasons:
            return reasons[thing]
    return f"{table}.{column} could not be kept"


def _malformed(kind: str, error: ValidationError) -> ProtocolError:
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return ProtocolError(f"the body of a {kind!r} frame is not understood: {place or 'the whole'}: {first['msg']}")
