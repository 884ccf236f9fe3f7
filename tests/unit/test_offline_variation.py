"""Varying a program nobody knows anything about, token by token."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.variation import replaceable, vary, vary_tree

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


TREE = {"notes.md": "7 things, 8 words\n", "program.py": PROGRAM, "tables.py": "TABLE = (3, 5.5, 8)\n"}


@given(st.integers(0, 2**32))
def test_any_module_of_a_program_may_vary_and_other_files_never(seed: int) -> None:
    varied, changes = vary_tree(TREE, "program.py", Chance(seed), known=[TREE])
    changed = {file for file in TREE if varied[file] != TREE[file]}
    assert list(varied) == list(TREE)
    assert changed
    assert changed <= {"program.py", "tables.py"}
    assert all(f"in {file}" in changes for file in changed)
    for file in changed:
        compile(varied[file], file, "exec")


def test_every_module_gets_its_turn() -> None:
    varied = [vary_tree(TREE, "program.py", Chance(seed), known=[])[0] for seed in range(60)]
    assert {file for tree in varied for file in TREE if tree[file] != TREE[file]} == {"program.py", "tables.py"}


def test_numbers_vary_more_often_than_what_holds_a_program_together() -> None:
    changes = ", ".join(vary("y = a * 2.5 + b * 1.5 - c / 3.5\n", Chance(seed), known=set())[1] for seed in range(300))
    numbers, operators = (sum(f"{token} becomes" in change for change in changes.split(", ") for token in tokens)
                          for tokens in (("2.5", "1.5", "3.5"), ("*", "+", "-", "/")))  # fmt: skip
    assert numbers > operators


def test_a_program_without_anything_to_vary_gets_a_comment_in_its_entry_module() -> None:
    tree = {"a.py": "x = y\n", "z.py": "import a\n"}
    varied, changes = vary_tree(tree, "z.py", Chance(1), known=[])
    assert varied["a.py"] == tree["a.py"]
    assert varied["z.py"].startswith("import a\n\n# variation ")
    assert changes == "nothing but a comment"
