"""From the text of an analysis to the schema it describes, with the values that questions may mention."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from orchestrator.llm.offline.sql.analysis.documents import read_documents
from orchestrator.llm.offline.sql.analysis.lines import MAX_LINES, LineReader
from orchestrator.llm.offline.sql.analysis.notes import ColumnNote, Notes, TableNote
from orchestrator.llm.offline.sql.analysis.statements import read_inserts, read_statements
from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.llm.offline.sql.schema_reader import Keys, connected
from orchestrator.llm.offline.sql.words import name_words, stem
from orchestrator.sql.values import ValueIndex

MAX_ANALYSIS_CHARACTERS = 1_500_000
MATCHES = 20
"""Stored texts that a question may mention."""
_EXAMPLES = 6
_CROWDED = 40
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, eq=False)
class Analysis:
    """A schema, and the texts of its columns by their words."""

    schema: SchemaView
    index: ValueIndex
    crowded: frozenset[tuple[str, str]]
    """(table, column) of those with so many values that a common word may be one by chance."""

    def for_question(self, question: str, evidence: str) -> SchemaView:
        """The schema with the values that a question or its evidence mentions, and without those it only seems to."""
        linked = self.index.link(question, evidence, limit=MATCHES)
        said = f"{question}\n{evidence}"

        def known(column: Field) -> Field:
            place = (column.table, column.name)
            found = tuple(v for v in linked.get(place, ()) if not self._is_chance(v, place, said))
            examples = tuple(v for v in column.examples if v not in linked.get(place, ()) or v in found)
            return replace(column, matches=found, examples=examples or column.examples[:1])

        return self.schema.renewed(known) if linked else self.schema

    def _is_chance(self, value: str, place: tuple[str, str], said: str) -> bool:
        """Whether a question says a name's only word in small letters, as it says any word: `power` is no `Power`."""
        is_word = value[:1].isupper() and len(value.split()) == 1 and value.strip() not in said
        return is_word and (place in self.crowded or stem(value) in self._names)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The words of all names."""
        tables = (word for table in self.schema.tables for word in name_words(table))
        return frozenset([*tables, *(word for column in self.schema.fields() for word in column.words)])


@lru_cache(maxsize=32)
def read_analysis(text: str, share: float = 1.0) -> Analysis:
    """Everything that an analysis says; nothing raises, and what is not understood is left out.

    Args:
        text: Untrusted, in any form; what is over 1,500,000 characters is not read.
        share: Of every list of values the part that is kept, from its beginning; over 0 and at most 1.
    """
    text = _CONTROLS.sub(" ", text[:MAX_ANALYSIS_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n"))
    notes = Notes()
    statements = read_statements(text, notes)
    starts = [start for start, _, _ in statements]
    documents = [
        (start, end)
        for start, end in read_documents(text, notes)
        if (at := bisect_right(starts, start)) == 0 or start >= statements[at - 1][1]
    ]
    read_inserts(text, notes)
    _read_lines(text, sorted([*statements, *((start, end, "") for start, end in documents)]), notes)
    return _analysis(notes, share)


def _read_lines(text: str, spans: Sequence[tuple[int, int, str]], notes: Notes) -> None:
    """The text between statements and documents; after a statement its table is the one spoken of."""
    reader = LineReader(notes)
    left = MAX_LINES
    reached = 0
    for start, end, table in (*spans, (len(text), len(text), "")):
        for line in text[reached:start].split("\n")[:left]:
            left -= 1
            reader.line(line)
        if table:
            reader.enter(table)
        reached = max(reached, end)


def _analysis(notes: Notes, share: float) -> Analysis:
    tables = {
        table.name: tuple(_field(table, column, share) for column in table.columns.values()) for table in notes.kept()
    }
    keys: Keys = [(key.table, key.columns, key.target, tuple(filter(None, key.references))) for key in notes.keys]
    view = connected(_with_implied_keys(tables, keys), keys)
    values = {
        (table.name, column.name): _texts(column, share) for table in notes.kept() for column in table.columns.values()
    }
    crowded = frozenset(place for place, texts in values.items() if len(texts) > _CROWDED)
    return Analysis(view, ValueIndex(values), crowded)


def _texts(column: ColumnNote, share: float) -> tuple[str, ...]:
    texts = [value for value in column.values if not _NUMBER.fullmatch(value.strip())]
    return tuple(texts[: math.ceil(share * len(texts))])


def _field(table: TableNote, column: ColumnNote, share: float) -> Field:
    kept = min(_EXAMPLES, math.ceil(share * len(column.values)))
    examples = tuple(column.values)[:kept] or column.bounds
    return Field(
        table=table.name,
        name=column.name,
        type=column.type,
        title=column.title,
        description=column.description,
        examples=examples,
        is_primary=column.is_primary,
    )


def _with_implied_keys(tables: dict[str, tuple[Field, ...]], keys: Keys) -> dict[str, tuple[Field, ...]]:
    """A column that others refer to is its table's key, where the text names none."""
    referred = set(_referred(keys))
    return {
        name: columns
        if any(column.is_primary for column in columns)
        else tuple(replace(c, is_primary=(name.lower(), c.name.lower()) in referred) for c in columns)
        for name, columns in tables.items()
    }


def _referred(keys: Keys) -> Iterator[tuple[str, str]]:
    for _, names, target, references in keys:
        if len(names) == 1 and len(references) == 1:
            yield target.lower(), references[0].lower()
