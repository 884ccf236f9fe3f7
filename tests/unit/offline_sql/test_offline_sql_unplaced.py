"""Which words of a question the engine passes over."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.sql import unplaced_words
from tests.unit.offline_sql.observatory import SCHEMA


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the e-mail of the astronomers older than 40?", ("e-mail",)),
        ("Which weather do the observatories in Norway have?", ("weather",)),
        ("Qwzx blorp fnord, and qwzx?", ("Qwzx", "blorp", "fnord")),
        ("How many telescopes are there?", ()),
        ("List the names of the 3 most expensive telescopes in descending order of price.", ()),
        ("Show observatories whose name contains the word 'Hill'.", ()),
        ("What is the average age of astronomers without any observation for each kind of telescope?", ()),
        ("Who are our astronomers?", ()),
        ("", ()),
    ],
)
def test_words_that_name_nothing_and_shape_nothing_are_told_in_their_order(
    question: str, words: tuple[str, ...]
) -> None:
    assert unplaced_words(SCHEMA, question, "") == words


def test_what_the_evidence_explains_is_placed() -> None:
    question = "How many big observatories are there?"
    assert unplaced_words(SCHEMA, question, "") == ("big",)
    assert unplaced_words(SCHEMA, question, "big refers to altitude_m > 1000") == ()
