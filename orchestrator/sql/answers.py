"""The query in a language model's answer, and the fenced blocks it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.sql.gate import Refusal, check

_FENCE = re.compile(r" {0,3}(?P<ticks>`{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*")
_SQL = frozenset({"sql", "sqlite", "sqlite3"})


def extract_sql(text: str, *, is_cut_off: bool = False) -> str:
    """The query in a generator's answer; empty if there is none.

    The last block fenced as SQL counts; without one, the last block of no language or the whole text does, if it is
    a lone statement that the gate lets through.

    Args:
        text: Untrusted.
        is_cut_off: Whether it may end in the middle. Then a block that is not closed is none, and the whole text is no
            statement: the beginning of a query can be a query that means something else.
    """
    blocks = [(info, body) for info, body, is_closed in _blocks(text) if is_closed or not is_cut_off]
    named = [body for info, body in blocks if info.lower() in _SQL]
    if named:
        return named[-1].strip()
    bare = [body for info, body in blocks if not info]
    for lone in (*bare[-1:], *([] if is_cut_off else [text])):
        if _is_statement(lone.strip()):
            return lone.strip()
    return ""


def fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """(info, body) of every fenced block of Markdown; one that is not closed goes on to the end of the text."""
    for info, body, _ in _blocks(text):
        yield info, body


def _blocks(text: str) -> Iterator[tuple[str, str, bool]]:
    """(info, body, whether it is closed) of every fenced block."""
    ticks, info, body = "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        if not ticks:
            if opening := _FENCE.fullmatch(line):
                ticks, info, body = opening["ticks"], opening["info"], []
        elif line.strip(" \t").startswith(ticks) and not line.strip(" \t`"):
            yield info, "\n".join(body), True
            ticks = ""
        else:
            body.append(line)
    if ticks:
        yield info, "\n".join(body), False


def _is_statement(text: str) -> bool:
    try:
        check(text)
    except Refusal:
        return False
    return True
