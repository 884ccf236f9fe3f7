"""Untrusted text inside text that means something: identifiers, literals, JSON on one line, and fenced blocks.

Names and values of a database come from anybody. Wherever they are shown they stay what they are: they begin no line,
end no literal, comment or fence, and hide no character.
"""

from __future__ import annotations

import json
import re

_PLAIN_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*")
_BACKTICKS = re.compile(r"`+")
_INFO = re.compile(r"[a-z]{0,16}")
_JOINERS = "\u200c\u200d"
"""Written inside words of some scripts; they end nothing and hide nothing."""
_KEYWORDS = """
ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE
CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY
LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS
OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE
RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""SQLite's (https://www.sqlite.org/lang_keywords.html); which of them it takes as names depends on the place."""


def identifier(name: str) -> str:
    """A name as SQLite reads it, quoted only where it must be.

    A name that holds a character nobody can see (a line end, say) is written with escapes, and so is not that name any
    more: there is no way to write it on one line. See `is_exact`.
    """
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS and name.isprintable():
        return name
    return '"' + visible(name).replace('"', '""') + '"'


def is_exact(name: str) -> bool:
    """Whether `identifier` gives a text that SQLite reads as this very name."""
    return visible(name) == name


def text_literal(text: str) -> str:
    """A text as a SQLite literal, character for character."""
    return "'" + text.replace("'", "''") + "'"


def visible(text: str) -> str:
    """Text on one line in which every control, format, separator and surrogate character is an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else _escape(c) for c in text)


def one_line(text: str, characters: int) -> str:
    """The beginning of a text, its white space collapsed, visible."""
    line = visible(" ".join(text[: 8 * characters].split()))
    return line if len(line) <= characters else line[: characters - 1] + "…"


def json_line(document: object) -> str:
    """A document as JSON on one line that shows every character and changes none."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else _json_escape(c) for c in text)


def data_block(text: str, info: str = "") -> str:
    """A fenced block of Markdown that nothing inside can end.

    Args:
        text: Untrusted. Line feeds and tabs stay, a line feed takes the place of CR LF, and all other characters that
            could pass for a line end or hide something become visible escapes.
        info: The block's language: at most 16 lower-case letters.

    Returns:
        Lines from the opening to the closing fence, without a line end after it. Both fences are longer than any run
        of backticks inside.

    Raises:
        ValueError: `info` is no such word.
    """
    if not _INFO.fullmatch(info):
        msg = f"a block's language is a short lower-case word, not {info!r}"
        raise ValueError(msg)
    body = "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.replace("\r\n", "\n").split("\n"))
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    ending = "" if body.endswith("\n") else "\n"
    return f"{fence}{info}\n{body}{ending}{fence}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(character: str) -> str:
    """As JSON has it: two escapes for a character beyond the first plane."""
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
