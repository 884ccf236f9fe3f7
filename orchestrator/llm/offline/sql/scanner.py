"""SQL cut into tokens: for schema text, for queries to be judged, and for hints. Linear, and never fails."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_SQL_CHARACTERS = 20_000
_PIECE = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>'(?:[^']|'')*(?:'|\Z))"
    r"|(?P<name>\"(?:[^\"]|\"\")*(?:\"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z))"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<word>[^\W\d]\w*)|(?P<mark><=|>=|<>|!=|==|\|\||\S)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of SQL."""

    kind: str
    """`comment`, `string`, `name` (quoted), `word`, `number` or `mark`."""
    text: str
    """Names and strings without their quotes."""

    @property
    def low(self) -> str:
        """For keywords: lower case if it is a word, otherwise empty."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        """Whether it can be an identifier."""
        return self.kind in {"word", "name"}


def scan(sql: str, limit: int = MAX_SQL_CHARACTERS) -> list[Piece]:
    """All tokens of the first `limit` characters; comments are kept."""
    return [_piece(found.lastgroup or "mark", found.group()) for found in _PIECE.finditer(sql[:limit])]


def _piece(kind: str, text: str) -> Piece:
    if kind == "string":
        return Piece(kind, text[1:].removesuffix("'").replace("''", "'"))
    if kind == "name":
        close = {"[": "]"}.get(text[0], text[0])
        inner = text[1:].removesuffix(close)
        return Piece(kind, inner.replace(close * 2, close) if close != "]" else inner)
    return Piece(kind, text)
