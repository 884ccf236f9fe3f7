"""What may stand behind a name: a sentence, what is said of a column, or a list of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.llm.offline.sql.analysis.facts import NAME, bare


def indent(line: str) -> int:
    """How far a line stands in, in characters."""
    return len(line) - len(line.lstrip(" \t"))


def is_sentence(rest: str) -> bool:
    """Whether words go on behind a name as they do in prose."""
    return re.match(r"[ \t]+(?!rows?\b|columns?\b|with \d|has \d|contains \d|table\b)[a-z]+ [a-z]+", rest) is not None


def tells(rest: str) -> bool:
    """Whether something is said of what a line names."""
    return bool(rest.strip(" .,;:")) and re.match(r" ?[:(\-\u2013\u2014\[→=]", rest) is not None


def introduces(rest: str) -> bool:
    """Whether what follows a name is what follows a column's name in a list."""
    return re.match(r"[`\"*]*[ \t]*(?:\Z|[:(\[,|\u2013\u2014→]|- |-> |/\*|--|[A-Z]{3,}\b|=)", rest) is not None


def listed_columns(rest: str) -> list[tuple[str, str]]:
    """The columns between the first parentheses or brackets: (name, what is said of it)."""
    found = re.search(r"[(\[]", rest)
    if found is None:
        return []
    parts: list[tuple[str, str]] = []
    for part in _parts(rest[found.end() :]):
        named = re.match(rf"\s*(?P<name>{NAME})(?P<rest>.*)", part)
        if named is None or re.match(r"\s+(?:rows?|columns?|records?)\b", named["rest"]):
            if part.strip() == "*":
                continue
            return []
        parts.append((bare(named["name"]), named["rest"]))
    return parts if len(parts) > 1 else []


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas outside of parentheses, up to the parenthesis that closes."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth < 0:
                yield text[start:place]
                return
        elif character in ",;" and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]
