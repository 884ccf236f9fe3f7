"""Which words of a question name what the policy keeps back: for whoever asks, and never for a model.

A model is not told what is hidden, so it answers with whatever comes next to it. The asker holds the policy and the
file, and `sql check` lists the same names; being told costs no secret, and not being told costs a wrong answer.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.domain.data_access import Access, Hidden, folded
from orchestrator.domain.sql import Schema
from orchestrator.llm.offline.sql.words import Token, name_words, tokenize

_MAX_SPAN = 6
_JOINTS = frozenset([
    "a", "an", "the", "of", "in", "on", "at", "to", "by", "for", "from", "with", "as", "and", "or", "not", "is", "are",
    "be", "do", "it", "i", "no", "if",
])  # fmt: skip
"""In every question, so that alone they name no column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """Words of a question, and the hidden columns that bear their name."""

    words: str
    """As they are written."""
    columns: tuple[Hidden, ...]
    """Not empty; those of a table are all of its columns where the words name the table."""


def withheld_words(question: str, evidence: str, access: Access, visible: Schema) -> tuple[Withheld, ...]:
    """Words that name a hidden column, or a table that is hidden as a whole.

    Names are compared by their words, in singular and without regard to case and marks. A hidden column whose name a
    visible one bears as well counts only where its table is named, too; of several, those whose table is named.

    Args:
        question: Its first 200 words are looked at.
        evidence: Likewise.
        access: What is kept back.
        visible: The schema without it.

    Returns:
        In the order of the words, each once.
    """
    if not access.hidden:
        return ()
    spans: dict[str, str] = {}
    for text in (question, evidence):
        for key, said in _spans(tokenize(text)):
            spans.setdefault(key, said)
    left = {folded(table.name) for table in visible.tables}
    seen = {_key(column.name) for table in visible.tables for column in table.columns}
    named: dict[str, list[Hidden]] = {}
    for hidden in access.hidden:
        table, column = _key(hidden.table), _key(hidden.column)
        if table in spans and folded(hidden.table) not in left:
            named.setdefault(table, []).append(hidden)
        if column in spans and column != table and (column not in seen or table in spans):
            named.setdefault(column, []).append(hidden)
    return tuple(
        Withheld(words=said, columns=_likeliest(named[key], spans)) for key, said in spans.items() if key in named
    )


def _likeliest(columns: Sequence[Hidden], spans: Container[str]) -> tuple[Hidden, ...]:
    """Those of tables that are named as well, where there are such."""
    return tuple(one for one in columns if _key(one.table) in spans) or tuple(columns)


def _key(name: str) -> str:
    """What is equal for names that differ only in marks, case and number: `card_number`, `Card Numbers`."""
    return "".join(name_words(name))


def _spans(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Words in a row as keys, with how they are written."""
    for first in range(len(tokens)):
        key = ""
        for last in range(first, min(first + _MAX_SPAN, len(tokens))):
            if tokens[last].kind == "mark":
                break
            key += _key(tokens[last].text)
            if key and (last > first or tokens[first].lower not in _JOINTS):
                yield key, " ".join(token.text for token in tokens[first : last + 1])
