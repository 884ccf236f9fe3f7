"""When two texts are the same SQL: equal but for white space, comments and the case of keywords.

Nothing inside literals and quoted names is touched, and names keep their case, since they become names of columns.
"""

from __future__ import annotations

from orchestrator.sql.tokens import NotTokens, Token, tokenise


def normalise(sql: str) -> str:
    """The text that stands for all texts of the same SQL; idempotent.

    Semicolons at the end are dropped, as they are no part of the statement. A text that SQLite cannot cut into tokens
    stands for itself, without SQLite's white space around it: without another character it might be such a text.
    """
    try:
        tokens = tokenise(sql)
    except NotTokens:
        return sql.strip(" \t\n\f\r")
    words = [_normal(token) for token in tokens]
    while words and words[-1] == ";":
        words.pop()
    return " ".join(words)


def _normal(token: Token) -> str:
    return token.keyword or token.text
