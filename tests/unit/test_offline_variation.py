"""Varying a program nobody knows anything about, token by token."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.variation import replaceable, vary

Chance = random.Random
PROGRAM = '''"""Score 3 things, by weight 0.5."""

import numpy as np

WEIGHT = 0.5  # not 7


def score(now, queue, *others, **options):
    if now < 10:
        return -queue
    return WEIGHT * queue + 2.0 ** now - f(*others) / (now - 1)
'''


def test_numbers_and_binary_operators_may_be_replaced_and_nothing_else() -> None:
    assert [place.text for place in replaceable(PROGRAM)] == [
        *("0.5", "<", "10", "*", "+", "2.0", "-", "/", "-", "1"),
    ]


@given(st.integers(0, 2**32))
def test_a_variation_compiles_and_is_new(seed: int) -> None:
    varied, changes = vary(PROGRAM, Chance(seed), known={PROGRAM})
    assert varied != PROGRAM
    assert "becomes" in changes
    compile(varied, "varied", "exec")


def test_a_variation_depends_on_the_seed_alone() -> None:
    assert vary(PROGRAM, Chance(4), known=set()) == vary(PROGRAM, Chance(4), known=set())
    assert len({vary(PROGRAM, Chance(seed), known=set())[0] for seed in range(20)}) > 10


def test_a_known_variation_is_not_proposed_again() -> None:
    known = {PROGRAM}
    for seed in range(60):
        varied, _ = vary(PROGRAM, Chance(seed), known=known)
        assert varied not in known
        known.add(varied)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(:\n    '''never closed",
        "(" * 40_000,
        "-" * 49_000,
        "x = 1\n  y = 2\n z = 3\n",
        "x = 1\x0c2\r\ny = 3\x85 4\n",
        "9" * 5000 + "\n",
        "\x00\x01\ud800",
        "if " * 10_000,
        "x = 1\n" * 100_000,
    ],
    ids=["empty", "open", "parentheses", "minus", "indents", "breaks", "digits", "control", "keywords", "long"],
)
def test_any_text_is_varied_without_harm_and_in_little_time(text: str) -> None:
    begin = time.process_time()
    varied, _ = vary(text, Chance(1), known=set())
    assert varied != text
    assert time.process_time() - begin < 10


@given(st.text(max_size=200), st.integers(0, 100))
def test_places_are_where_they_say(text: str, seed: int) -> None:
    assert all(text[place.start : place.end] == place.text for place in replaceable(text))
    assert vary(text, Chance(seed), known=set())[0] != text
