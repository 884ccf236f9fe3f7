"""SQL cut into tokens exactly as SQLite 3.40 cuts it (https://sqlite.org/src/file/src/tokenize.c).

sqlglot's tokenizer follows many dialects and differs in places (characters that are white space, where numbers and
comments end), and where a statement ends must be known as the engine sees it. One linear pass, no recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    """A keyword or a bare name."""
    NAME = "name"
    """A name in double quotes, brackets or backticks; SQLite may take the first for a string."""
    STRING = "string"
    NUMBER = "number"
    BLOB = "blob"
    PARAMETER = "parameter"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text, as it is written there."""

    kind: Kind
    text: str
    start: int
    """Index of its first character."""

    @property
    def end(self) -> int:
        """Index after its last character."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The keyword in upper case; empty: it is none."""
        word = self.text.upper() if self.kind is Kind.WORD and self.text.isascii() else ""
        return word if word in KEYWORDS else ""

    @property
    def name(self) -> str:
        """What it names, without its quotes; empty: it is no name, or a keyword."""
        if self.kind is Kind.NAME:
            quote = self.text[-1]
            inside = self.text[1:-1]
            return inside if quote == "]" else inside.replace(quote * 2, quote)
        return self.text if self.kind is Kind.WORD and not self.keyword else ""


class NotTokens(ValueError):
    """A text that SQLite cannot cut into tokens; the message says where."""


_LETTER = r"[A-Za-z0-9_$\x80-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
      (?P<space>   [ \t\n\f\r][ \t\n\v\f\r]* | \ufeff | --[^\n]* | /\*(?s:.*?)\*/ )
    | (?P<blob>    [xX]'(?:[0-9A-Fa-f]{{2}})*' )
    | (?P<word>    (?![xX]'|[0-9$]) {_LETTER}+ )
    | (?P<string>  '(?:[^']|'')*+' )
    | (?P<name>    "(?:[^"]|"")*+" | `(?:[^`]|``)*+` | \[[^\]]*\] )
    | (?P<number>  (?> 0[xX][0-9A-Fa-f]+ | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? ) (?!{_LETTER}) )
    | (?P<parameter> \?[0-9]* | [:@$\#]{_LETTER}+ )
    | (?P<sign>    ->>? | \|\| | <[<=>]? | >[>=]? | ==? | != | /(?!\*) | [-+*%&|~,;().] )
    """,
    re.VERBOSE,
)


def tokenise(sql: str) -> tuple[Token, ...]:
    """Every token but white space and comments.

    Raises:
        NotTokens: An unknown character, or a quote or comment that does not end.
    """
    tokens = []
    at = 0
    while at < len(sql):
        found = _TOKEN.match(sql, at)
        if found is None:
            msg = f"no token of SQL begins at character {at + 1}, {sql[at : at + 20]!r}"
            raise NotTokens(msg)
        at = found.end()
        if found.lastgroup != "space":
            tokens.append(Token(Kind(str(found.lastgroup)), found.group(), found.start()))
    return tuple(tokens)


_KEYWORDS = """
    ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE
    CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
    GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY
    LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER
    OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME
    REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
    TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""All of https://sqlite.org/lang_keywords.html, in upper case."""
