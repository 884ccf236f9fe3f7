"""A question as it is read once: linked, its cues found, its regions labelled. Derivations start from here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from orchestrator.llm.offline.sql import cues, regions
from orchestrator.llm.offline.sql.hints import HintView, read_hint
from orchestrator.llm.offline.sql.linking import Mention, link
from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.llm.offline.sql.schema_reader import read_schema
from orchestrator.llm.offline.sql.words import Token, tokenize

_NEAR = 3
_PREPOSITIONS = frozenset({"by", "in", "on", "at", "from", "after", "before", "to"})


@dataclass(frozen=True, eq=False)
class Reading:
    """Everything derivations know."""

    schema: SchemaView
    tokens: tuple[Token, ...]
    mentions: tuple[Mention, ...]
    hint: HintView

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Region of each token."""
        return regions.regions(self.tokens)

    @cached_property
    def comparisons(self) -> tuple[cues.Comparison, ...]:
        """In order of their places."""
        return tuple(cues.comparisons(self.tokens))

    @cached_property
    def superlatives(self) -> tuple[cues.Superlative, ...]:
        """Likewise, without those that only say the direction of an order."""
        order = self.order
        return tuple(
            found
            for found in cues.superlatives(self.tokens)
            if not (order is not None and self.labels[found.first] == "order")
        )

    @cached_property
    def order(self) -> regions.Order | None:
        """The order that is asked for."""
        return next(regions.orders(self.tokens), None)

    @cached_property
    def negations(self) -> tuple[int, ...]:
        """Places of words that deny."""
        compared = {place for c in self.comparisons for place in range(c.first, c.last)}
        return tuple(
            place
            for place, low in enumerate(self.lows)
            if low in cues.NEGATIONS
            and place not in compared
            and (low != "other" or self.lows[place + 1 : place + 2] == ("than",))
        )

    @cached_property
    def lows(self) -> tuple[str, ...]:
        """The tokens in lower case."""
        return tuple(token.lower for token in self.tokens)

    def place_of(self, phrase: str) -> int:
        """Where the question says a phrase, or else its first word; behind the last token if it says neither."""
        wanted = phrase.lower().split()
        for length in (len(wanted), 1):
            for place in range(len(self.lows) - length + 1):
                if wanted and list(self.lows[place : place + length]) == wanted[:length]:
                    return place
        return len(self.lows)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Tables that the question names."""
        return tuple(dict.fromkeys(m.targets[0].table for m in self.mentions if m.kind == "table"))

    @cached_property
    def implied_tables(self) -> frozenset[str]:
        """Tables that a column's or value's mention leaves no choice about."""
        return frozenset(
            next(iter(tables))
            for m in self.mentions
            if m.kind != "table" and m.targets[0].score >= 1.0 and len(tables := {t.table for t in m.targets}) == 1
        )

    def between(self, first: int, last: int) -> frozenset[str]:
        """The words between two places."""
        return frozenset(self.lows[first:last])

    @cached_property
    def owners(self) -> tuple[str | None, ...]:
        """For each mention the table that it is said to belong to: `shop name`, `name of the shop`."""
        return tuple(self._owner(number) for number in range(len(self.mentions)))

    @cached_property
    def grouped_table(self) -> str | None:
        """The table of `for each bridge`."""
        found = (m.targets[0].table for m in self.mentions if m.kind == "table" and self.labels[m.first] == "group")
        return next(found, None)

    def _owner(self, number: int) -> str | None:
        return self._owner_nearby(number) or self.grouped_table

    def _owner_nearby(self, number: int) -> str | None:
        mention = self.mentions[number]
        if number:
            before = self.mentions[number - 1]
            if before.kind == "table" and before.last == mention.first:
                return before.targets[0].table
        for after in self.mentions[number + 1 :]:
            between = self.lows[mention.last : after.first]
            if "number" in between:
                return None
            if after.kind == "table" and (not between or not {"of", "for", "from", "in"}.isdisjoint(between)):
                return after.targets[0].table
            if len(between) > _NEAR and not {"of", "for"} & set(between):
                return None
            if after.kind == "table":
                return None
        return None

    def is_tail(self, number: int) -> bool:
        """Whether a table's mention only ends a compound that begins with a column: `email address`."""
        mention = self.mentions[number]
        before = self.mentions[number - 1] if number else None
        return before is not None and before.kind == "column" and before.last == mention.first

    def is_participle(self, number: int) -> bool:
        """`the amount paid by card` asks for no `paid_on`: a lone participle before a preposition says which rows."""
        mention = self.mentions[number]
        before = self.lows[mention.first - 1] if mention.first else ""
        after = self.lows[mention.last] if mention.last < len(self.lows) else ""
        lone = mention.last - mention.first == 1 and self.lows[mention.first].endswith(("ed", "id", "wn", "en"))
        return lone and before not in {"the", "and", ",", "their", "its"} and after in _PREPOSITIONS

    def context(self, column: Field, owner: str | None = None) -> float:
        """How well a column fits what else the question names; about -1 to 2."""
        score = 0.0
        if owner is not None:
            score += 1.5 if column.table == owner else -0.3
        if column.table in self.tables:
            score += 0.6
        if column.table in self.implied_tables:
            score += 0.5
        if column.is_key and not column.is_primary:
            score -= 0.3
        if column.matches:
            score += 0.1
        return score + self.hint.favour(column)

    def columns_about(self, concept: str) -> list[tuple[Field, float]]:
        """Columns one of whose words means `concept`, with scores."""
        return [
            (column, 1.5 * like + self.context(column) + (0.3 if len(column.words) == 1 else 0.0))
            for column in self.schema.fields()
            if (like := column.likeness_to(concept)) >= 0.8
        ]


def nearest(mentions: tuple[Mention, ...], place: int, numbers: list[int]) -> list[tuple[int, int]]:
    """(number, distance in tokens) of mentions around a place, the nearest first; negative places are to the left."""
    found = []
    for number in numbers:
        mention = mentions[number]
        distance = mention.first - place if mention.first >= place else mention.last - 1 - place
        found.append((number, distance))
    return sorted(found, key=lambda item: abs(item[1]))


@lru_cache(maxsize=256)
def read(schema_text: str, question: str, hint: str) -> Reading:
    """The reading of a request; depends on nothing but its text."""
    return read_with(read_schema(schema_text), question, hint)


def read_with(schema: SchemaView, question: str, hint: str) -> Reading:
    """The reading of a question about a schema that is known already."""
    tokens = tokenize(question)
    view = read_hint(hint, schema)
    aliases = [(s.phrase, s.columns[0]) for s in view.statements if s.columns and s.is_name]
    return Reading(schema=schema, tokens=tokens, mentions=link(tokens, schema, aliases), hint=view)
