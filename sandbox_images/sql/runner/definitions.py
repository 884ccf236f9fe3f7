"""The tokens of a CREATE statement: enough to see which names a definition holds, and to leave comments out.

They are those of SQLite's `sqlite3GetToken` (`tokenize.c`), for which every character beyond ASCII is a letter, but
for U+FEFF, which is white space where a token begins.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from survey import fold, quoted

_BYTE_ORDER_MARK = "\ufeff"
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\f\r][ \t\n\v\f\r]*|\ufeff)
      | (?P<comment>--[^\n]*|/\*(?!\Z).*?(?:\*/|\Z))
      | (?P<string>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<number>\.?[0-9][0-9A-Za-z_.]*)
      | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
      | (?P<mark>["'`[].*|.)""",
    re.DOTALL | re.VERBOSE,
)
_PLAIN_TYPE = re.compile(r"[A-Za-z_]\w*(?: [A-Za-z_]\w*)*(?: ?\(\d{1,9}(?:, ?\d{1,9})?\))?", re.ASCII)
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][0-9_]*)?")
_MARKS = frozenset("()+-*/%=<>!|&~,.;")
_CLOSING = {'"': '"', "`": "`", "[": "]"}
_CONSTANTS = frozenset({"null", "true", "false", "current_time", "current_date", "current_timestamp"})
COLLATIONS = frozenset({"binary", "nocase", "rtrim"})
"""Those that every SQLite has."""
ROW_NUMBERS = frozenset({"rowid", "oid", "_rowid_"})


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a statement."""

    kind: str
    """`space`, `comment`, `string`, `name` (in quotes or brackets), `number`, `word` or `mark`."""
    text: str

    @property
    def identifier(self) -> str | None:
        """The name it may stand for, folded; None: it can be none."""
        if self.kind == "word":
            return fold(self.text)
        if self.kind != "name":
            return None
        closing = _CLOSING[self.text[0]]
        inner = self.text[1:-1]
        return fold(inner if closing == "]" else inner.replace(closing * 2, closing))


def tokens(text: str) -> Iterator[Token]:
    """All tokens, with those of white space and comments."""
    for match in _TOKEN.finditer(text):
        yield Token(str(match.lastgroup), match.group())


def without_comments(text: str) -> str:
    """The same statement; every comment is one space."""
    return "".join(" " if token.kind == "comment" else token.text for token in tokens(text))


def words_of(text: str) -> frozenset[str]:
    """Every name and keyword in it, folded; of comments and strings none."""
    return frozenset(word for token in tokens(text) if (word := token.identifier) is not None)


def names_of(text: str) -> frozenset[str]:
    """The same words, and what every string holds, since SQLite takes a string for the name of a table, too."""
    return frozenset(name for token in tokens(text) if (name := _declared(token)) is not None)


def is_certain(text: str) -> bool:
    """Whether no SQLite can find other tokens in it than `tokens` does.

    It holds nothing that is no SQL, and no U+FEFF outside quotes and comments, which SQLite has not always taken for
    white space.
    """
    before = ""
    for token in tokens(text):
        if token.kind in ("space", "word") and _BYTE_ORDER_MARK in token.text:
            return False
        if token.kind == "mark" and token.text not in _MARKS:
            return False
        if token.kind == "number" and not _NUMBER.fullmatch(token.text):
            return False
        if before == "number" and token.kind == "word":
            return False
        before = token.kind
    return True


def column_definitions(sql: str) -> Mapping[str, tuple[Token, ...]]:
    """Folded name to the tokens after it, of every part between the outer parentheses of a CREATE TABLE.

    Table constraints are among them, under their keyword; a column of that name comes first and counts.
    """
    parts: list[list[Token]] = []
    depth = 0
    for token in tokens(sql):
        if token.kind in ("space", "comment"):
            continue
        depth -= token.text == ")"
        if depth == 0 and token.text == ")":
            break
        if depth == 1 and token.text == ",":
            parts.append([])
        elif depth:
            parts[-1].append(token)
        elif token.text == "(":
            parts.append([])
        depth += token.text == "("
    found: dict[str, tuple[Token, ...]] = {}
    for part in parts:
        if part and (name := _declared(part[0])) is not None:
            found.setdefault(name, tuple(part[1:]))
    return found


def collation_of(definition: tuple[Token, ...]) -> str | None:
    """The collation that a column's definition names, folded; None: none."""
    depth, found = 0, None
    for token, following in pairwise(definition):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and fold(token.text) == "collate":
            found = _declared(following)
    return found


def plain_value(text: str) -> bool:
    """Whether a default is one plain value, with nothing beside it."""
    parts = list(tokens(text.strip(" \t\n\v\f\r")))
    if parts and parts[0].text in ("+", "-"):
        return len(parts) == 2 and parts[1].kind == "number"
    if len(parts) == 2 and fold(parts[0].text) == "x":
        return parts[1].kind == "string"
    if len(parts) != 1:
        return False
    return parts[0].kind in ("string", "name", "number") or fold(parts[0].text) in _CONSTANTS


def affinity(declared: str) -> str:
    """What a column of this type turns values into (section 3.1 of SQLite's "Datatypes")."""
    text = fold(declared)
    for kind, marks in (("INTEGER", ("int",)), ("TEXT", ("char", "clob", "text")), ("BLOB", ("blob",))):
        if any(mark in text for mark in marks):
            return kind
    if not text:
        return "BLOB"
    return "REAL" if any(mark in text for mark in ("real", "floa", "doub")) else "NUMERIC"


@cache
def type_text(declared: str) -> str:
    """A declared type as it is written into a statement, without comments and with the same affinity."""
    text = " ".join(without_comments(declared).split())
    if affinity(text) != affinity(declared):
        text = affinity(declared)
    return text if not text or _is_read_as(text) else quoted(text)


def _is_read_as(text: str) -> bool:
    """Whether SQLite reads this as a type and nothing more, though it is not quoted."""
    if not _PLAIN_TYPE.fullmatch(text):
        return False
    with closing(sqlite3.connect(":memory:")) as scratch:
        try:
            scratch.execute(f"CREATE TABLE t (c {text})")
        except sqlite3.Error:
            return False
        (found,) = scratch.execute("PRAGMA table_xinfo(t)").fetchall()
    return bool(fold(found[2]) == fold(text) and found[3:] == (0, None, 0, 0))


def _declared(token: Token) -> str | None:
    """The name that a token declares, where SQLite takes a string for one as well."""
    return fold(token.text[1:-1].replace("''", "'")) if token.kind == "string" else token.identifier
