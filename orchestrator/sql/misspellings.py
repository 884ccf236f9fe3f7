"""Which stored words a word may be a misspelling of, within bounds: neither questions nor databases are trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

MISSPELT_FROM = 6
"""Letters that a word must have for another one to be a misspelling of it."""
MAX_WORD_CHARACTERS = 100_000
"""Characters that are compared for one word of a question."""
MAX_QUESTION_CHARACTERS = 500_000
"""Characters that are compared for one question; those of BIRD's and Spider's public lists need fewer than 500."""


class Comparisons:
    """The comparisons that one question may still cost; over its bounds no two words are alike."""

    def __init__(self) -> None:
        self._left = MAX_QUESTION_CHARACTERS
        self._of_words: dict[str, int] = {}

    def are_one_edit_apart(self, asked: str, stored: str) -> bool:
        """`is_one_edit`, as long as the question and its word have characters left to compare."""
        if abs(len(asked) - len(stored)) > 1 or not self.are_left_for(asked):
            return False
        self._of_words[asked] = self._of_words.get(asked, 0) + len(asked)
        self._left -= len(asked)
        return is_one_edit(asked, stored)

    def are_left_for(self, asked: str) -> bool:
        """Whether one more comparison with a word of the question would be made."""
        return len(asked) <= min(MAX_WORD_CHARACTERS - self._of_words.get(asked, 0), self._left)


class Misspellings:
    """Words by length and by their first and last three letters, of which a misspelling keeps some."""

    def __init__(self, words: Iterable[str]) -> None:
        """Keep the words.

        Args:
            words: Without case and accents; those that are not long enough are left out.
        """
        self._alike: dict[tuple[int, str], list[str]] = {}
        for word in filter(is_long, words):
            for part in _parts(word):
                self._alike.setdefault((len(word), part), []).append(word)

    def of(self, asked: str, comparisons: Comparisons) -> tuple[str, ...]:
        """The words that one word may stand for, each once."""
        if not is_long(asked):
            return ()
        compared = takewhile(lambda _: comparisons.are_left_for(asked), self._near(asked))
        return tuple(dict.fromkeys(other for other in compared if comparisons.are_one_edit_apart(asked, other)))

    def _near(self, asked: str) -> Iterator[str]:
        for part in _parts(asked):
            for length in (len(asked) - 1, len(asked), len(asked) + 1):
                yield from self._alike.get((length, part), ())


def is_long(word: str) -> bool:
    """Whether a word can be misspelt or a misspelling."""
    return len(word) >= MISSPELT_FROM and word.isalpha()


def is_one_edit(word: str, other: str) -> bool:
    """Whether one letter more, less or changed, or two exchanged, makes one word the other."""
    short, long = sorted((word, other), key=len)
    if len(long) - len(short) > 1 or short == long:
        return False
    at = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    exchanged = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or exchanged


def _parts(word: str) -> tuple[str, ...]:
    return word[:3], f"…{word[-3:]}"
