"""What a question may cost: bounded in the words of the question and of the database, whoever wrote them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import islice, product
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestrator.sql as package
from orchestrator.sql.misspellings import (
    MAX_QUESTION_CHARACTERS,
    MAX_WORD_CHARACTERS,
    Comparisons,
    Misspellings,
    is_long,
    is_one_edit,
)
from orchestrator.sql.values import MAX_CHARACTERS, MAX_LOOKS, ValueIndex, link

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ALIKE = ["abc" + "".join(ending) for ending in islice(product(LETTERS, repeat=4), 20_000)]


@pytest.fixture(scope="module")
def alike() -> ValueIndex:
    """Ten columns of 2,000 words each that all begin with the same letters."""
    return ValueIndex({("t", f"c{n}"): ALIKE[n::10] for n in range(10)})


def calls(run: Callable[[], object]) -> Counter[str]:
    """How often each function of the package was called, and each generator of it resumed."""
    made: Counter[str] = Counter()
    root = str(Path(package.__file__).parent)

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            made[frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return made


def test_a_word_is_compared_once_however_often_it_is_said(alike: ValueIndex) -> None:
    once = calls(lambda: alike.link("abcjklmn", limit=9))
    often = calls(lambda: alike.link(" ".join(["abcjklmn"] * 2200), limit=9))
    assert 0 < often["is_one_edit"] == once["is_one_edit"] <= MAX_WORD_CHARACTERS // len("abcjklmn")


def test_the_comparisons_of_a_question_have_a_bound(alike: ValueIndex) -> None:
    words = ["abc" + "".join(ending) for ending in islice(product(reversed(LETTERS), repeat=5), 2_000)]
    made = calls(lambda: alike.link(" ".join(words), " ".join(reversed(words)), limit=9))
    assert made["is_one_edit"] <= MAX_QUESTION_CHARACTERS // 8
    assert made.total() < 1_000_000


def test_the_looks_at_stored_texts_have_a_bound() -> None:
    index = ValueIndex({("t", "c"): [f"Foo{'!' * n}" for n in range(2_000)]})
    made = calls(lambda: index.link("foo " * 5_000, '"foo" ' * 3_000, limit=9))
    assert made["_kind"] <= MAX_LOOKS
    assert made["_mentions"] <= MAX_LOOKS + 4
    assert made["_outermost"] <= MAX_LOOKS + 1


def test_over_its_bound_a_word_is_like_no_other_and_another_word_still_is() -> None:
    comparisons = Comparisons()
    for _ in range(MAX_WORD_CHARACTERS // len("Petesburg")):
        assert comparisons.are_one_edit_apart("petesburg", "petersburg")
    assert not comparisons.are_left_for("petesburg")
    assert not comparisons.are_one_edit_apart("petesburg", "petersburg")
    assert comparisons.are_one_edit_apart("petersbrug", "petersburg")


def test_what_is_surely_said_is_found_whatever_else_is_asked(alike: ValueIndex) -> None:
    words = ["abc" + "".join(ending) for ending in islice(product(reversed(LETTERS), repeat=5), 2_000)]
    assert [*alike.link(" ".join([*words, "abcabca"]), limit=9).values()] == [("abcabca",)]


@pytest.mark.parametrize(("begin", "end"), ["“”", "«»", "\u2018\u2019"])
def test_a_quote_that_opens_again_begins_anew(begin: str, end: str) -> None:
    texts = {("t", "c"): ("of",)}
    assert link(f"named {begin}this {begin}of{end}", "", texts, limit=9) == {("t", "c"): ("of",)}
    assert link(begin * (MAX_CHARACTERS - 3) + f"of{end}", "", texts, limit=9) == {("t", "c"): ("of",)}
    assert link(begin * MAX_CHARACTERS, begin * MAX_CHARACTERS, texts, limit=9) == {}


words = st.text("abcé", min_size=4, max_size=9)


@given(st.lists(words, unique=True), words)
def test_within_the_bounds_every_misspelling_with_the_same_beginning_or_end_is_found(
    stored: list[str], asked: str
) -> None:
    expected = {
        word
        for word in stored
        if is_long(word)
        and is_long(asked)
        and (word[:3] == asked[:3] or word[-3:] == asked[-3:])
        and is_one_edit(asked, word)
    }
    assert set(Misspellings(stored).of(asked, Comparisons())) == expected
