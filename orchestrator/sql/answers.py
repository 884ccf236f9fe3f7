"""The query in a language model's answer, and the fenced blocks it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.sql.gate import Refusal, check

_FENCE = re.compile(r" {0,3}(?P<ticks>`{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*")
_SQL = frozenset({"sql", "sqlite", "sqlite3"})


def extract_sql(text: str) -> str:
    """The query in a generator's answer; empty if there is none.

    The last block fenced as SQL counts; without one, the last block of no language or the whole text does, if it is
    a lone statement that the gate lets through.

    Args:
        text: Untrusted.
    """
    blocks = list(fenced_blocks(text))
    named = [body for info, body in blocks if info.lower() in _SQL]
    if named:
        return named[-1].strip()
    bare = [body for info, body in blocks if not info]
    for lone in (*bare[-1:], text):
        if _is_statement(lone.strip()):
            return lone.strip()
    return ""


def fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """(info, body) of every fenced block of Markdown; one that is not closed goes on to the end of the text."""
    ticks, info, body = "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        if not ticks:
            if opening := _FENCE.fullmatch(line):
                ticks, info, body = opening["ticks"], opening["info"], []
        elif line.strip(" \t").startswith(ticks) and not line.strip(" \t`"):
            yield info, "\n".join(body)
            ticks = ""
        else:
            body.append(line)
    if ticks:
        yield info, "\n".join(body)


def _is_statement(text: str) -> bool:
    try:
        check(text)
    except Refusal:
        return False
    return True
