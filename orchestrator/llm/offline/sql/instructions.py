"""Instructions, read for the rules they state: sentence by sentence, in whatever words and order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.llm.offline.sql.conventions import CONVENTIONS, convention

MAX_INSTRUCTION_CHARACTERS = 100_000
_MAX_SENTENCES = 2_000
_SENTENCE_CHARACTERS = 400
_BREAK = re.compile(r"(?<=[.;!?])\s+|\n\s*(?=[-*+•]\s|\d{1,3}[.)]\s|#|\n)|\n(?=\s*\n)")
_MARKS = re.compile(r"[`_#>\"'\u201c\u201d\u2018\u2019]+|\*\*|\*(?=\w)|(?<=\w)\*")
_SPACE = re.compile(r"\s+")
_DENIAL = re.compile(r"\b(?:do not|don t|does not|not|never|avoid|no|without|instead of|rather than|skip|drop)\b")
_CLAUSE = re.compile(r"[,:;(]|\b(?:but|use|write|return|prefer|and)\b")
_DENIAL_REACH = 45
_COMPILED = tuple(
    (convention, re.compile(convention.key), re.compile(convention.about) if convention.about else None)
    for convention in CONVENTIONS
)


def conventions_in(instructions: str) -> frozenset[str]:
    """Ids of the rules that a text states, however it phrases or orders them; of opposites the later one.

    Args:
        instructions: Untrusted, as is; what is over 100,000 characters or not understood says nothing.
    """
    found: dict[str, None] = {}
    for sentence in _sentences(instructions[:MAX_INSTRUCTION_CHARACTERS]):
        for identifier in dict.fromkeys(_said(sentence)):
            opposite = convention(identifier).opposite
            found.pop(opposite, None)
            found[identifier] = None
    return frozenset(found)


def _sentences(text: str) -> Iterator[str]:
    for part in _BREAK.split(text)[:_MAX_SENTENCES]:
        plain = _SPACE.sub(" ", _MARKS.sub(" ", part[: 2 * _SENTENCE_CHARACTERS].lower())).strip()
        if plain:
            yield plain[:_SENTENCE_CHARACTERS]


def _said(sentence: str) -> Iterator[str]:
    """The rules of one sentence, the denied ones as their opposites."""
    for rule, key, about in _COMPILED:
        match = key.search(sentence)
        if match is None or (about is not None and about.search(sentence) is None):
            continue
        if not _is_denied(sentence, match.start()):
            yield rule.id
        elif rule.opposite:
            yield rule.opposite


def _is_denied(sentence: str, place: int) -> bool:
    """Whether a denial stands before a place in its clause."""
    before = sentence[max(0, place - _DENIAL_REACH) : place]
    denials = list(_DENIAL.finditer(before))
    return bool(denials) and _CLAUSE.search(before[denials[-1].end() :].removeprefix(" use")) is None
