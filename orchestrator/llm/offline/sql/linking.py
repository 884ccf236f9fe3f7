"""Schema linking: which spans of a question name tables, columns and values.

Span by span, with scores from 0 to about 3; what a span means in the query is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.llm.offline.sql.words import Token, drop_possessives, likeness, name_words, stem

_MAX_SPAN = 6
_SKIPPED = frozenset({"the", "a", "an", "of", "all", "its", "their", "his", "her", "for"})
_DIRECTIONS = frozenset([
    "ascending", "descending", "alphabetical", "increasing", "decreasing", "reverse", "lexicographical",
])  # fmt: skip
_INVERTING = frozenset({"of", "for"})
_PREPOSITIONS = frozenset({"by", "of", "in", "at", "from", "to", "for", "on", "is", "has", "the"})
_NEVER = frozenset([
    "a", "an", "the", "of", "in", "on", "at", "to", "by", "be", "do", "does", "did", "and", "or", "not", "no",
    "with", "without", "whose", "who", "that", "which", "what", "how", "many", "much", "all", "any", "some",
    "each", "every", "per", "have", "than", "more", "less", "most", "least", "there", "this", "these", "those",
    "it", "its", "their", "they", "them", "we", "me", "i", "list", "show", "find", "give", "return", "count",
    "number", "total", "average", "maximum", "minimum", "max", "min", "sum", "avg", "between", "from", "for",
    "as", "ascending", "descending", "distinct", "different", "least", "highest", "lowest", "top", "is",
])  # fmt: skip
_SEX = {"female": "F", "male": "M", "woman": "F", "man": "M", "girl": "F", "boy": "M"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a span may mean: a table (`column` is None), a column, or a value in a column."""

    table: str
    column: Field | None
    value: str | None
    score: float

    @property
    def kind(self) -> str:
        """`table`, `column` or `value`."""
        return "table" if self.column is None else "column" if self.value is None else "value"


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens `first` to `last` (exclusive) and what they may mean, the best first."""

    first: int
    last: int
    targets: tuple[Target, ...]

    @property
    def kind(self) -> str:
        """That of the best target."""
        return self.targets[0].kind

    def of(self, kind: str) -> list[Target]:
        """The targets of one kind."""
        return [target for target in self.targets if target.kind == kind]


def link(tokens: Sequence[Token], schema: SchemaView, aliases: Sequence[tuple[str, Field]] = ()) -> tuple[Mention, ...]:
    """Mentions that do not overlap, from left to right: values first, then longer and better names before others.

    Args:
        tokens: Of the question.
        schema: With the values that were found in the question.
        aliases: (phrase, column): further names of columns.
    """
    spans: dict[tuple[int, int], list[Target]] = {}
    for first, last, target in (*_values(tokens, schema), *_names(tokens, schema), *_aliased(tokens, aliases)):
        spans.setdefault((first, last), []).append(target)
    ranked = sorted(spans.items(), key=lambda item: (-_strength(tokens, item), item[0]))
    taken: set[int] = set()
    mentions: list[Mention] = []
    for (first, last), targets in ranked:
        if taken.isdisjoint(range(first, last)):
            taken.update(range(first, last))
            mentions.append(Mention(first, last, _best(targets)))
    return tuple(sorted(mentions, key=lambda mention: mention.first))


def _aliased(tokens: Sequence[Token], aliases: Sequence[tuple[str, Field]]) -> Iterator[tuple[int, int, Target]]:
    for phrase, column in aliases:
        words = [stem(word) for word in _value_words(phrase)]
        for first in range(len(tokens) - len(words) + 1):
            if words and [token.stem for token in tokens[first : first + len(words)]] == words:
                yield first, first + len(words), Target(column.table, column, None, 2.8)


def _strength(tokens: Sequence[Token], item: tuple[tuple[int, int], list[Target]]) -> float:
    (first, last), targets = item
    width = sum(token.stem not in _SKIPPED or targets[0].kind == "value" for token in tokens[first:last])
    return max(target.score for target in targets) + 0.6 * width


def _best(targets: list[Target]) -> tuple[Target, ...]:
    unique: dict[tuple[str, str, str | None], Target] = {}
    for target in sorted(targets, key=lambda target: -target.score):
        unique.setdefault((target.table, target.column.name if target.column else "", target.value), target)
    best = next(iter(unique.values())).score
    return tuple(target for target in unique.values() if target.score > best - 1.4)[:8]


_Named = tuple[str, Field | None]
"""A table, or a column of it."""


def _names(tokens: Sequence[Token], schema: SchemaView) -> Iterator[tuple[int, int, Target]]:
    index = _index(schema)
    alike: dict[str, set[_Named]] = {}
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + _MAX_SPAN, len(tokens)) + 1):
            if tokens[last - 1].kind != "word" or tokens[last - 1].lower in {"and", "or"}:
                break
            if _orders_rows(tokens, first) or tokens[first].stem in _SKIPPED or tokens[last - 1].stem in _SKIPPED:
                continue
            span = [stem_ for token in tokens[first:last] for stem_ in _stems(token)]
            content = [word for word in span if word not in _SKIPPED]
            if _NEVER.issuperset(content) or _counts_rows(tokens[first:last], schema):
                continue
            for word in content:
                if word not in alike:
                    alike[word] = {name for other, names in index.items() if likeness(word, other) for name in names}
            found = sorted({name for word in content for name in alike[word]}, key=_name_key)
            for target in _named(content, found, inverted=not _INVERTING.isdisjoint(span)):
                yield first, last, target


def _name_key(name: _Named) -> tuple[str, str]:
    return name[0], "" if name[1] is None else name[1].name


@lru_cache(maxsize=64)
def _index(schema: SchemaView) -> dict[str, list[_Named]]:
    """Stems to the tables and columns whose names hold them."""
    index: dict[str, list[_Named]] = {}
    for table, columns in schema.tables.items():
        for word in set(name_words(table)):
            index.setdefault(word, []).append((table, None))
        for column in columns:
            for word in {*column.words, *column.title_words}:
                index.setdefault(word, []).append((table, column))
    return index


def _orders_rows(tokens: Sequence[Token], place: int) -> bool:
    """Whether `order` or `ordered` is about the order of rows here, so that it names no table of orders."""
    if tokens[place].stem not in {"order", "ordered", "sort", "sorted"}:
        return False
    before = tokens[place - 1].lower if place else ""
    after = tokens[place + 1].lower if place + 1 < len(tokens) else ""
    return (
        before in _DIRECTIONS or before == "in" or after in {"by", "alphabetically"} or (place == 0 and after == "the")
    )


def _counts_rows(span: Sequence[Token], schema: SchemaView) -> bool:
    """Whether a span is `number of` and the name of a table."""
    if len(span) < 3 or span[0].lower != "number" or span[1].lower not in _INVERTING:
        return False
    rest = [token.stem for token in span[2:] if token.stem not in _SKIPPED]
    return any(joined_equal(rest, name_words(table)) for table in schema.tables)


def _stems(token: Token) -> tuple[str, ...]:
    return tuple(stem(part) for part in re.split(r"[-_]", token.lower) if part)


def _named(content: Sequence[str], names: Sequence[_Named], *, inverted: bool) -> Iterator[Target]:
    """Tables and columns that a span names with all of its words; `type of key` names `key_type`, but no table."""
    for table, column in names:
        own = name_words(table)
        if column is None:
            score = 0.0 if inverted else _overlap(content, own, ())
            score += 0.25 if score > 0 else 0.0
        else:
            free = () if inverted else own
            score = max(_overlap(content, column.words, free), _overlap(content, column.title_words, free))
        if score > 0:
            yield Target(table, column, None, score)


def _overlap(content: Sequence[str], words: Sequence[str], free: Sequence[str]) -> float:
    """0 unless every word of the span has its own word in the name; otherwise up to 2, by how much is covered.

    Words in `free` (the table's) need not be said. The last word of a name weighs more.
    """
    if not words or len(content) > len(words) + len(free):
        return 0.0
    left = list(words)
    matched = 0.0
    for word in content:
        best = max(left, key=lambda other: likeness(word, other), default="")
        like = likeness(word, best) if best else 0.0
        if like > 0:
            left.remove(best)
            matched += like * _weight(best, words)
        elif not any(likeness(word, other) >= 0.8 for other in free):
            return 0.0
    if matched == 0:
        return 0.0
    unsaid = sum(_weight(word, words) * (0.15 if _is_part(word, free) else 1.0) for word in left)
    share = matched / (matched + unsaid)
    exact = 0.3 if joined_equal(content, words) else 0.0
    return 2.0 * share * min(1.0, matched / len(content)) + exact if share >= 0.3 else 0.0


def _weight(word: str, words: Sequence[str]) -> float:
    """How much a word of a name counts: the last most, prepositions next to nothing."""
    if word in _PREPOSITIONS:
        return 0.1
    last = next((other for other in reversed(words) if other not in _PREPOSITIONS), "")
    return 1.3 if word == last else 1.0


def _is_part(word: str, free: Sequence[str]) -> bool:
    """Whether a word is one of the others, or the beginning of one."""
    return any(other == word or (len(word) >= 2 and other.startswith(word)) for other in free)


def joined_equal(content: Sequence[str], words: Sequence[str]) -> bool:
    """Whether two lists of words are the same text."""
    return "".join(content) == "".join(words)


def _values(tokens: Sequence[Token], schema: SchemaView) -> Iterator[tuple[int, int, Target]]:
    places: dict[str, list[int]] = {}
    for number, token in enumerate(tokens):
        for part in {*_value_words(token.text), token.stem}:
            places.setdefault(part, []).append(number)
    for column in schema.fields():
        for weight, values in ((0.5, column.matches), (0.0, column.examples)):
            for value in values:
                yield from _found(value, column, weight, tokens, places)
        yield from _implied(column, tokens)


def _value_words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", drop_possessives(text.lower())))


def _found(
    value: str, column: Field, weight: float, tokens: Sequence[Token], places: dict[str, list[int]]
) -> Iterator[tuple[int, int, Target]]:
    words = _value_words(value)
    if not words or (column.is_number and not value.strip().isdigit()):
        return
    for first in places.get(words[0], places.get(stem(words[0]), [])):
        if tokens[first].kind == "number" and (column.is_number or len(words) == 1):
            continue
        last = _end_of(words, tokens, first)
        if last is None or (last - first == 1 and not _is_value(tokens[first], value, column)):
            continue
        quoted = 0.6 if tokens[first].kind == "quoted" else 0.0
        case = 0.3 if tokens[first].text[:1] == value.strip()[:1] else 0.0
        yield first, last, Target(column.table, column, value, 1.9 + weight + quoted + case)


def _end_of(words: Sequence[str], tokens: Sequence[Token], first: int) -> int | None:
    """Where the words of a value end in the question; None: they are not there."""
    said: list[str] = []
    for last in range(first, min(first + len(words), len(tokens))):
        said.extend(_value_words(tokens[last].text) or [""])
        if len(said) >= len(words):
            break
    same = [a == b or stem(a) == stem(b) for a, b in zip(words, said, strict=False)]
    return last + 1 if len(said) == len(words) and all(same) else None


def _is_value(token: Token, value: str, column: Field) -> bool:
    """A single common word is hardly a value; a single letter only if it is written as the value is."""
    if token.kind == "quoted":
        return True
    if len(value.strip()) == 1:
        return (
            token.text == value.strip()
            and token.text.isupper()
            and column.likeness_to("sex") > 0
            and token.text not in {"A", "I"}
        )
    return token.stem not in _NEVER


def _implied(column: Field, tokens: Sequence[Token]) -> Iterator[tuple[int, int, Target]]:
    """`female` for the F of a column of sexes."""
    if column.likeness_to("sex") < 0.8:
        return
    values = {value.upper()[:1]: value for value in (*column.examples, *column.matches)}
    for number, token in enumerate(tokens):
        letter = _SEX.get(token.stem)
        if letter in values and values[letter].lower() in {"f", "m", "female", "male"}:
            yield number, number + 1, Target(column.table, column, values[letter], 2.4)
