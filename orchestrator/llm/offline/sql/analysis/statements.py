"""`CREATE TABLE` and `INSERT` statements anywhere in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.llm.offline.sql.analysis.facts import add_facts
from orchestrator.llm.offline.sql.analysis.notes import Firmness, Notes
from orchestrator.llm.offline.sql.scanner import Piece, scan
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.schema_reader import Keys, columns_of, statement_at

_CREATE = re.compile(
    r"\bCREATE\s+(?:TEMP(?:ORARY)?\s+|VIRTUAL\s+)?(?:TABLE|VIEW)\b(?=\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w\"'`\[])",
    re.IGNORECASE,
)
_INSERT = re.compile(r"^[ \t]*INSERT\s+(?:OR\s+\w+\s+)?INTO\b", re.IGNORECASE | re.MULTILINE)
_STATEMENT_CHARACTERS = 100_000
_MAX_INSERTS = 20_000
_INSERT_CHARACTERS = 20_000

Span = tuple[int, int, str]
"""(first character, behind the last one, the table's name)"""


def read_statements(text: str, notes: Notes) -> list[Span]:
    """Note every statement's table; where the statements are."""
    spans: list[Span] = []
    starts = [found.start() for found in _CREATE.finditer(text)]
    for start, following in zip(starts, [*starts[1:], len(text)], strict=False):
        if spans and start < spans[-1][1]:
            continue  # inside the literal or comment of another statement
        name, length = _statement(text[start : min(following, start + _STATEMENT_CHARACTERS)], notes)
        if name:
            spans.append((start, start + length, name))
    return spans


def _statement(text: str, notes: Notes) -> tuple[str, int]:
    """Its table's name and its length; the name is empty if it says no columns."""
    pieces = _with_names(scan(text, len(text)))
    _, name, body = statement_at(pieces, 0)
    if not name or not body or _is_query(pieces, body):
        return "", 0
    keys: Keys = []
    lines = list(_lines(body))
    columns = columns_of(name, lines, keys)
    table = notes.table(name, Firmness.DECLARED) if columns else None
    if table is None:
        return "", 0
    for field in columns:
        _note(field, notes)
    for line, comment in lines:
        column = table.column(line[0].text)
        if column is not None and any(piece.low == "check" for piece in line):
            notes.add_values(column, (piece.text for piece in line if piece.kind == "string"))
        if column is not None and comment and not comment.startswith("{"):
            add_facts(comment, table, column, notes, is_typed=True)
    for owner, names, target, references in keys:
        notes.add_key(owner, names, target, references)
    return name, _length(text)


def _with_names(pieces: list[Piece]) -> list[Piece]:
    """SQLite takes `'name'` for a name where only one can stand: after TABLE, and where a definition begins."""
    named: list[Piece] = []
    depth = 0
    before: Piece | None = None
    for piece in pieces:
        depth += {"(": 1, ")": -1}.get(piece.text, 0) if piece.kind == "mark" else 0
        begins = depth == 1 and before is not None and before.kind == "mark" and before.text in {"(", ","}
        follows = before is not None and before.low in {"table", "view", "exists", "references"}
        is_name = piece.kind == "string" and (begins or follows)
        named.append(Piece("name", piece.text) if is_name else piece)
        before = before if piece.kind == "comment" else piece
    return named


def _lines(body: list[Piece]) -> Iterator[tuple[list[Piece], str]]:
    """Definitions between commas with their comments: a comment belongs to what stands before it, comma or none."""
    lines: list[list[Piece]] = [[]]
    comments: list[list[str]] = [[]]
    depth = 0
    for piece in body:
        if piece.kind == "comment":
            at = -2 if not lines[-1] and len(lines) > 1 else -1
            comments[at].append(_comment(piece.text))
            continue
        if piece.kind == "mark" and piece.text == "," and depth == 0:
            lines.append([])
            comments.append([])
            continue
        depth += {"(": 1, ")": -1}.get(piece.text, 0) if piece.kind == "mark" else 0
        lines[-1].append(piece)
    for line, said in zip(lines, comments, strict=True):
        if line:
            yield line, " ".join(said)


def _note(field: Field, notes: Notes) -> None:
    table = notes.find(field.table)
    column = None if table is None else notes.column(table, field.name)
    if column is None:
        return
    column.type = column.type or field.type
    column.is_primary = column.is_primary or field.is_primary
    column.title = column.title or field.title
    column.description = column.description or field.description
    notes.add_values(column, (*field.matches, *field.examples))


def _is_query(pieces: list[Piece], body: list[Piece]) -> bool:
    """`CREATE VIEW v AS SELECT f(x)`: the first parenthesis lists no columns."""
    before = [piece.low for piece in pieces[:8]]
    opened = next((place for place, piece in enumerate(pieces) if piece.text == "(" and piece.kind == "mark"), 0)
    return "as" in before[:opened] or body[0].low == "select"


def _comment(text: str) -> str:
    return text.removeprefix("--").removeprefix("/*").removesuffix("*/").strip()


_PART = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|[()]", re.DOTALL)


def _length(text: str) -> int:
    """How far a statement goes: to the parenthesis that closes its first one."""
    depth = 0
    for found in _PART.finditer(text):
        if found.group() == "(":
            depth += 1
        elif found.group() == ")":
            depth -= 1
            if depth == 0:
                return found.end()
    return len(text)


def read_inserts(text: str, notes: Notes) -> None:
    """Note the values of `INSERT INTO t VALUES (...)`, row by row."""
    for number, found in enumerate(_INSERT.finditer(text)):
        if number >= _MAX_INSERTS:
            return
        end = text.find("\n", found.end())
        last = min(len(text) if end < 0 else end, found.end() + _INSERT_CHARACTERS)
        _insert(scan(text[found.end() : last], _INSERT_CHARACTERS), notes)


def _insert(pieces: list[Piece], notes: Notes) -> None:
    table = notes.find(pieces[0].text) if pieces and pieces[0].is_name else None
    values = next((place for place, piece in enumerate(pieces) if piece.low == "values"), None)
    if table is None or values is None:
        return
    listed = [piece.text for piece in pieces[1:values] if piece.is_name]
    columns = [table.column(name) for name in listed] if listed else list(table.columns.values())
    for row in _rows(pieces[values + 1 :]):
        for column, value in zip(columns, row, strict=False):
            if column is not None and value is not None:
                notes.add_values(column, [value])


def _rows(pieces: list[Piece]) -> Iterator[list[str | None]]:
    """Literals between parentheses; None for what is no text or number."""
    row: list[str | None] | None = None
    for piece in pieces:
        if piece.kind == "mark" and piece.text == "(":
            row = []
        elif piece.kind == "mark" and piece.text == ")" and row is not None:
            yield row
            row = None
        elif row is not None and not (piece.kind == "mark" and piece.text in {",", "-"}):
            row.append(piece.text if piece.kind in {"string", "number"} else None)
