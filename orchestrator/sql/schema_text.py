"""A schema as text for a model, in three styles, within a bound.

Everything in a schema is untrusted: names, types, descriptions and values stay data (`sql/quoting.py`). Only the stored
statements of the style `ddl` are shown as they are; the block around them keeps them in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.sql import Column, ForeignKey, Schema, Table
from orchestrator.sql.quoting import KEYWORDS, identifier, is_exact, json_line, one_line, text_literal, visible

Matches = Mapping[tuple[str, str], Sequence[str]]
"""(table, column) to stored texts that the question mentions, the best first; see `sql/values.py`."""

MIN_CHARACTERS = 200
_TITLE_CHARACTERS = 200
_TEXT_CHARACTERS = 600
_LITERAL = re.compile(r"'(?:[^']|'')*'|[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[xX]'[0-9A-Fa-f]*'|NULL")
_TYPE = re.compile(r"(\w+(?: \w+)*)(?: ?\( ?[+-]?\d+ ?(?:, ?[+-]?\d+ ?)?\))?", re.ASCII)
_HARMLESS = re.compile(r"[^,()\[\]【】\"\\#]*")


class Style(StrEnum):
    """How a schema is written."""

    DDL = "ddl"
    """The `CREATE` statements as they are stored."""
    EXAMPLES = "examples"
    """EvoSQL's: `CREATE TABLE`, each column followed by a JSON object of what is known of it."""
    M_SCHEMA = "m-schema"
    """XiYan-SQL's M-Schema (Gao et al. 2024, arXiv:2411.08599)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    """How much is said of a column."""

    examples: int
    has_descriptions: bool = True
    has_comments: bool = True


_DETAILS = (
    _Detail(examples=1_000),
    _Detail(examples=1),
    _Detail(examples=0),
    _Detail(examples=0, has_descriptions=False),
    _Detail(examples=0, has_descriptions=False, has_comments=False),
)
"""From the most to the least; the first that fits is taken."""


def render(
    schema: Schema,
    style: Style,
    *,
    matches: Matches | None = None,
    max_characters: int,
    database: str = "main",
) -> str:
    """A schema as text.

    Args:
        schema: Of one database, with the data set's descriptions merged in where there are any.
        style: How to write it.
        matches: Stored texts that the question mentions; the style `ddl` has no place for them.
        max_characters: At least 200. Over it, examples go first, then descriptions, then everything that is said of
            columns, and last whole tables, those without matches before the others; a line says how many.
        database: The id that M-Schema begins with.

    Returns:
        Lines without a line end after the last, at most `max_characters` long; the same for the same arguments.

    Raises:
        ValueError: `max_characters` is below 200.
    """
    if max_characters < MIN_CHARACTERS:
        msg = f"a schema needs room for at least {MIN_CHARACTERS} characters, not {max_characters}"
        raise ValueError(msg)
    page = _Page(schema=schema, style=style, matches=matches or {}, database=one_line(database, 60))
    tables = range(len(schema.tables))
    details = _DETAILS[:1] if style is Style.DDL else _DETAILS
    for detail in details:
        text = page.text([page.block(table, detail) for table in schema.tables], tables)
        if len(text) <= max_characters:
            return text
    return _largest(page, [page.block(table, details[-1]) for table in schema.tables], max_characters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    schema: Schema
    style: Style
    matches: Matches
    database: str

    def block(self, table: Table, detail: _Detail) -> str:
        """One table, without a line end after it."""
        if self.style is Style.M_SCHEMA:
            return _m_table(table, self.matches, detail)
        if self.style is Style.DDL and table.sql.strip():
            return table.sql.strip().rstrip(";") + ";"
        return _statement(table, self.matches, _DETAILS[-1] if self.style is Style.DDL else detail)

    def text(self, blocks: Sequence[str], kept: Sequence[int]) -> str:
        """The blocks of some tables, by their places in the schema."""
        left_out = len(self.schema.tables) - len(kept)
        notice = "" if not left_out else f"{left_out} of {len(self.schema.tables)} tables are left out"
        chosen = [blocks[place] for place in kept]
        if self.style is not Style.M_SCHEMA:
            return "\n\n".join([*chosen, *([f"-- {notice}"] if notice else [])])
        keys = [line for place in kept for line in self._m_keys(self.schema.tables[place])]
        return "\n".join(
            [f"【DB_ID】 {self.database}", "【Schema】", *chosen]
            + ([f"# {notice}"] if notice else [])
            + (["【Foreign keys】", *keys] if keys else [])
        )

    def _m_keys(self, table: Table) -> Iterator[str]:
        for key in table.foreign_keys:
            others = _referenced(key, self.schema)
            for at, column in enumerate(key.columns):
                other = f".{identifier(others[at])}" if at < len(others) else ""
                yield f"{identifier(table.name)}.{identifier(column)}={identifier(key.table)}{other}"


def _largest(page: _Page, blocks: Sequence[str], max_characters: int) -> str:
    """As many tables as fit: first those with matches, then the others, each in the schema's order."""
    tables = page.schema.tables
    named = {table for table, _ in page.matches}
    kept: list[int] = []
    for place in sorted(range(len(tables)), key=lambda at: (tables[at].name not in named, at)):
        if len(blocks[place]) <= max_characters and len(page.text(blocks, [*kept, place])) <= max_characters:
            kept.append(place)
    return page.text(blocks, sorted(kept))


def _statement(table: Table, matches: Matches, detail: _Detail) -> str:
    """`CREATE TABLE` (`CREATE VIEW` for a view), one column or constraint to a line."""
    lines = [(_definition(column), _column_note(table, column, matches, detail)) for column in table.columns]
    lines += [(constraint, "") for constraint in _constraints(table)]
    commas = [","] * (len(lines) - 1) + [""]
    kind = "VIEW" if table.kind == "view" else "TABLE"
    note = "" if is_exact(table.name) or not detail.has_comments else f" -- {json_line({'name': table.name})}"
    return "\n".join(
        [f"CREATE {kind} {identifier(table.name)} ({note}"]
        + [f"  {text}{comma}{note}" for (text, note), comma in zip(lines, commas, strict=False)]
        + [");"]
    )


def _definition(column: Column) -> str:
    return " ".join(
        [identifier(column.name), *([_type(column.type)] if column.type else []), *["NOT NULL"] * column.not_null]
    )


def _type(declared: str) -> str:
    """A declared type as SQLite reads it; what is not of the usual form is quoted."""
    usual = _TYPE.fullmatch(declared)
    if usual is None or declared[0].isdigit() or KEYWORDS.intersection(usual[1].upper().split()):
        return '"' + visible(declared).replace('"', '""') + '"'
    return declared


def _column_note(table: Table, column: Column, matches: Matches, detail: _Detail) -> str:
    """` -- ` and what is known of a column as JSON; empty where nothing is."""
    if not detail.has_comments:
        return ""
    found = matches.get((table.name, column.name), ())
    known = {
        "name": "" if is_exact(column.name) else column.name,
        "title": _title(column),
        "description": _cut(column.description) if detail.has_descriptions else "",
        "values": _cut(column.value_description) if detail.has_descriptions else "",
        "examples": column.examples[: detail.examples],
        "matches": [text_literal(text) for text in found],
    }
    present = {name: value for name, value in known.items() if value}
    return f" -- {json_line(present)}" if present else ""


def _title(column: Column) -> str:
    """The longer name, where it says more than the name does."""
    title = column.title.strip()
    if title.replace("_", " ").casefold() == column.name.replace("_", " ").casefold():
        return ""
    return title[:_TITLE_CHARACTERS]


def _cut(text: str) -> str:
    stripped = text.strip()
    return stripped if len(stripped) <= _TEXT_CHARACTERS else stripped[: _TEXT_CHARACTERS - 1] + "…"


def _constraints(table: Table) -> Iterator[str]:
    primary = sorted((column.primary_key, column.name) for column in table.columns if column.primary_key)
    if primary:
        yield f"PRIMARY KEY ({_names([name for _, name in primary])})"
    for key in table.foreign_keys:
        references = f" ({_names(key.references)})" if key.references else ""
        yield f"FOREIGN KEY ({_names(key.columns)}) REFERENCES {identifier(key.table)}{references}"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(identifier, columns))


def _m_table(table: Table, matches: Matches, detail: _Detail) -> str:
    columns = ",\n".join(_m_column(table, column, matches, detail) for column in table.columns)
    return f"# Table: {identifier(table.name)}\n[\n{columns}\n]"


def _m_column(table: Table, column: Column, matches: Matches, detail: _Detail) -> str:
    usual = _TYPE.fullmatch(column.type)
    kind = usual[1].upper() if usual else identifier(column.type)
    parts = [identifier(column.name) + (f":{kind}" if column.type else "")]
    described = [_title(column), column.description, column.value_description] if detail.has_descriptions else []
    text = one_line("; ".join(part.strip() for part in described if part.strip()), _TEXT_CHARACTERS)
    if text and detail.has_comments:
        parts.append(text if _HARMLESS.fullmatch(text) else json_line(text))
    if column.primary_key:
        parts.append("Primary Key")
    examples = _m_examples(column, matches.get((table.name, column.name), ()), detail)
    if examples:
        parts.append(f"Examples: [{', '.join(examples)}]")
    return f"({', '.join(parts)})"


def _m_examples(column: Column, found: Sequence[str], detail: _Detail) -> list[str]:
    """Literals on one line: what the question mentions first, then examples."""
    if not detail.has_comments:
        return []
    examples = [text if _LITERAL.fullmatch(text) else text_literal(text) for text in column.examples[: detail.examples]]
    return [visible(text) for text in dict.fromkeys([*map(text_literal, found), *examples])]


def _referenced(key: ForeignKey, schema: Schema) -> Sequence[str]:
    """The other table's columns; empty where the reference names none and the table is missing."""
    other = schema.table(key.table)
    if key.references or other is None:
        return key.references
    return [name for _, name in sorted((c.primary_key, c.name) for c in other.columns if c.primary_key)]
