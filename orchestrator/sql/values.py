"""Which stored texts a question mentions, so that SQL can compare with what is there and not with what was said.

A text counts as mentioned when all its words stand one after the other in the question or its evidence: as they are, in
another case, in the plural or possessive, or with one of its longer words misspelt by one letter. The rules are about
English words and know no data set; writing without spaces between words is compared character by character.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from orchestrator.sql.misspellings import Comparisons, Misspellings, is_long

Values = Mapping[tuple[str, str], Sequence[str]]
"""(table, column) to distinct stored texts."""

MAX_WORDS = 24
"""Words of a stored text; longer ones are prose, which no question repeats."""
MAX_CHARACTERS = 20_000
"""Of a question; what is over it is not looked at."""
MAX_LOOKS = 100_000
"""Stored texts that are looked at for one question, each as often as a word of it leads there; more are not found."""
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
_UNSPACED_WORD = re.compile(f"[{_UNSPACED}]")
_ACCENT = re.compile("[\u0300-\u036f]")
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019](?:s\b|(?!\w))", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?<!\w)'((?:[^']|(?<=\w)'(?=\w))+)'(?!\w)|\"([^\"]+)\"|“([^“”]++)”|"
    r"\u2018([^\u2018\u2019]++)\u2019|«([^«»]++)»|`([^`]+)`"
)  # an apostrophe inside a word does not end what single quotes hold; a quote that opens again begins anew, so that
# many which nothing closes are not each read to the end
_COMMON = frozenset(
    [
        *("a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "by", "did", "do", "does"),
        *("each", "every", "find", "first", "for", "from", "give", "had", "has", "have", "how", "i", "if", "in", "is"),
        *(
            "it",
            "its",
            "last",
            "list",
            "many",
            "me",
            "more",
            "most",
            "much",
            "name",
            "no",
            "not",
            "number",
            "of",
            "off",
        ),
        *("on", "only", "or", "other", "our", "out", "show", "so", "than", "that", "the", "their", "them", "then"),
        *("there", "these", "they", "this", "to", "total", "up", "us", "was", "we", "were", "what", "when", "where"),
        *("which", "who", "whose", "why", "with", "yes", "you"),
    ]
)
"""Words of any question; a text of such words alone must be quoted, or be written alike and not in small letters."""


class _Kind(IntEnum):
    """How a text is mentioned, the surest first."""

    QUOTED = 0
    SAME_CASE = 1
    OTHER_CASE = 2
    """Or without its accents."""
    INFLECTED = 3
    """In another number, or as two words that are stored as one."""
    MISSPELT = 4


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    folded: str
    """Without case and accents."""
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Value:
    place: int
    """Of its column among all columns."""
    text: str
    words: tuple[_Word, ...]
    key: int
    """Which of its words the index has it under: its rarest."""


@dataclass(frozen=True, slots=True)
class _Mention:
    kind: _Kind
    begin: int
    end: int
    """Characters of question and evidence, one after the other."""
    value: _Value

    def rank(self) -> tuple[int, int, int, int, str]:
        return (self.kind, self.begin - self.end, self.begin, self.value.place, self.value.text)


class _Effort:
    """What one question may still cost."""

    def __init__(self) -> None:
        self.comparisons = Comparisons()
        self._looks_left = MAX_LOOKS

    def looks(self, values: Sequence[_Value]) -> Sequence[_Value]:
        """As many of some values as may still be looked at."""
        allowed = values[: self._looks_left]
        self._looks_left -= len(allowed)
        return allowed


class ValueIndex:
    """The texts of a database by their words; made once in time linear in their length, and asked often.

    A question costs what the texts cost that share their rarest word with it, and comparisons with words that begin or
    end like one of its own; both have bounds (`MAX_LOOKS`, `misspellings`), over which nothing more is found.
    """

    def __init__(self, values: Values) -> None:
        self._columns = list(values)
        texts = [(at, text, _words(text)) for at, found in enumerate(values.values()) for text in dict.fromkeys(found)]
        self._counts = Counter(word.folded for _, _, words in texts for word in words)
        self._by_word: dict[str, list[_Value]] = {}
        self._by_text: dict[str, list[_Value]] = {}
        for place, text, words in texts:
            rareness = [self._counts[word.folded] for word in words]
            value = _Value(place, text, words, rareness.index(min(rareness)) if words else 0)
            self._by_text.setdefault(_folded_text(text), []).append(value)
            if 0 < len(words) <= MAX_WORDS:
                self._by_word.setdefault(words[value.key].folded, []).append(value)
        self._misspellings = Misspellings(self._by_word)

    def link(self, question: str, evidence: str = "", *, limit: int) -> dict[tuple[str, str], tuple[str, ...]]:
        """The stored texts that a question or its evidence mentions.

        Args:
            question: As it was asked.
            evidence: What the data set says beside it; empty where it says nothing.
            limit: Most texts in all.

        Returns:
            (table, column) to texts exactly as they are stored; columns and texts with the surest mention first, equal
            ones by length, place in the question, and column. A text inside a longer one of its column is left out.
        """
        parts = [unicodedata.normalize("NFC", part[:MAX_CHARACTERS]) for part in (question, evidence)]
        effort = _Effort()
        mentions = [*self._mentions(parts[0], 0, effort), *self._mentions(parts[1], len(parts[0]) + 1, effort)]
        best: dict[tuple[int, str], _Mention] = {}
        for mention in sorted(_outermost(mentions), key=_Mention.rank):
            best.setdefault((mention.value.place, mention.value.text), mention)
        linked: dict[tuple[str, str], tuple[str, ...]] = {}
        for mention in list(best.values())[: max(0, limit)]:
            column = self._columns[mention.value.place]
            linked[column] = (*linked.get(column, ()), mention.value.text)
        return linked

    def _mentions(self, text: str, offset: int, effort: _Effort) -> Iterator[_Mention]:
        for quoted in _QUOTED.finditer(text):
            for value in effort.looks(self._by_text.get(_folded_text(quoted[quoted.lastindex or 0]), ())):
                yield _Mention(_Kind.QUOTED, quoted.start() + offset, quoted.end() + offset, value)
        asked = _words(text)
        for word, after in pairwise(asked):
            for value in effort.looks(self._by_word.get(word.folded + after.folded, ())):
                if len(value.words) == 1 and is_long(value.words[0].folded):
                    yield _Mention(_Kind.INFLECTED, word.begin + offset, after.end + offset, value)
        forms = [_forms(word.folded) for word in asked]
        misspelt = self._misspelt(asked, effort)
        for at, word in enumerate(asked):
            for other in (*forms[at], *misspelt.get(word.folded, ())):
                for value in effort.looks(self._by_word.get(other, ())):
                    first = at - value.key
                    here = asked[max(0, first) : first + len(value.words)]
                    others = forms[first : first + len(value.words)]
                    kind = self._kind(value, here, others, effort.comparisons) if first >= 0 else None
                    if kind is not None and _is_said(value, kind, text, here[0].begin, here[-1].end):
                        yield _Mention(kind, here[0].begin + offset, here[-1].end + offset, value)

    def _misspelt(self, asked: Sequence[_Word], effort: _Effort) -> dict[str, tuple[str, ...]]:
        """Words of the database that each word may stand for, if it is not one itself."""
        unknown = (word for word in dict.fromkeys(word.folded for word in asked) if word not in self._counts)
        return {word: self._misspellings.of(word, effort.comparisons) for word in unknown}

    def _kind(
        self, value: _Value, asked: Sequence[_Word], forms: Sequence[Sequence[str]], comparisons: Comparisons
    ) -> _Kind | None:
        """How words in a row say a text; None: they do not."""
        if len(asked) != len(value.words):
            return None
        kinds: list[_Kind] = []
        for stored, word, others in zip(value.words, asked, forms, strict=True):
            if stored.folded == word.folded:
                kinds.append(_Kind.SAME_CASE if stored.text == word.text else _Kind.OTHER_CASE)
            elif stored.folded in others:
                kinds.append(_Kind.INFLECTED)
            elif _Kind.MISSPELT not in kinds and self._is_misspelt(word.folded, stored.folded, comparisons):
                kinds.append(_Kind.MISSPELT)
            else:
                return None
        return max(kinds)

    def _is_misspelt(self, word: str, stored: str, comparisons: Comparisons) -> bool:
        is_candidate = word not in self._counts and is_long(word) and is_long(stored)
        return is_candidate and comparisons.are_one_edit_apart(word, stored)


def link(question: str, evidence: str, values: Values, *, limit: int) -> dict[tuple[str, str], tuple[str, ...]]:
    """`ValueIndex.link` for a single question."""
    return ValueIndex(values).link(question, evidence, limit=limit)


def _words(text: str) -> tuple[_Word, ...]:
    """The words of a text in NFC, a possessive ending not being one."""
    bare = _POSSESSIVE.sub(lambda found: " " * len(found[0]), unicodedata.normalize("NFC", text))
    return tuple(_Word(word[0], _folded(word[0]), word.start(), word.end()) for word in _WORD.finditer(bare))


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", word.casefold())))


def _folded_text(text: str) -> str:
    return " ".join(_folded(text).split())


def _forms(word: str) -> tuple[str, ...]:
    """A word, and what could be its singular and plural."""
    if len(word) < 3 or not word.isalpha() or not word.isascii():
        return (word,)
    plural = word.removesuffix("y") + "ies" if word.endswith("y") else word + "es"
    others = [word + "s", plural]
    if word.endswith("man"):
        others.append(word.removesuffix("man") + "men")
    if word.endswith("men"):
        others.append(word.removesuffix("men") + "man")
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        others.append(word[:-1])
    if len(word) > 4 and word.endswith("es"):
        others.append(word[:-2])
    if len(word) > 4 and word.endswith("ies"):
        others.append(word[:-3] + "y")
    return (word, *dict.fromkeys(others))


def _is_said(value: _Value, kind: _Kind, text: str, begin: int, end: int) -> bool:
    """Whether words that agree are a mention and no accident."""
    said = [word.text for word in value.words]
    if not any(character.isalpha() for word in said for character in word):
        return text[begin:end] == value.text.strip() and not _goes_on(text, begin, end)
    letters = sum(map(len, said))
    is_short = letters < (2 if _UNSPACED_WORD.match(said[0]) else 3)
    if is_short or all(word.folded in _COMMON for word in value.words):
        before = text[max(0, begin - 9) : begin].rstrip()
        begins_sentence = not before or before[-1] in ".!?:"
        return kind is _Kind.SAME_CASE and value.text != value.text.lower() and not begins_sentence
    return True


def _goes_on(text: str, begin: int, end: int) -> bool:
    """Whether a number is only part of a longer one: 5 in 3.5 or in 5,000."""
    before, after = text[max(0, begin - 2) : begin], text[end : end + 2]
    return bool(re.fullmatch(r"\d[.,]", before) or re.fullmatch(r"[.,]\d", after))


def _outermost(mentions: Iterable[_Mention]) -> Iterator[_Mention]:
    """Mentions that do not lie inside another one of the same column."""
    place, reached, last = -1, -1, (-1, -1)
    for mention in sorted(mentions, key=lambda m: (m.value.place, m.begin, -m.end)):
        if mention.value.place != place:
            place, reached, last = mention.value.place, -1, (-1, -1)
        if mention.end > reached or (mention.begin, mention.end) == last:
            reached, last = max(reached, mention.end), (mention.begin, mention.end)
            yield mention
