"""Linking: which stored texts a question mentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sql.values import ValueIndex, link
from tests.unit.sql.made import NASTY

CITIES = {
    ("city", "name"): ("Oslo", "New York", "York", "New York City", "São Paulo", "Saint Petersburg", "In", " Bergen ")
}


def found(question: str, *texts: str, evidence: str = "") -> list[str]:
    """What is linked of some texts of one column."""
    linked = link(question, evidence, {("t", "c"): texts}, limit=20)
    return [text for of_column in linked.values() for text in of_column]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who lives in Oslo?", "Oslo"),
        ("who lives in oslo", "Oslo"),
        ("Oslo's mayor", "Oslo"),
        ("Oslo\u2019s mayor", "Oslo"),
        ("Flights from New York.", "New York"),
        ("flights from new-york", "New York"),
        ("How many drummers are there?", "Drummer"),
        ("How many batteries?", "battery"),
        ("How many boxes?", "Box"),
        ("How many heroes?", "Hero"),
        ("movies of 2001", "Movie"),
        ("Which women won?", "Woman"),
        ("every salesman", "Salesmen"),
        ("the cows' milk", "cow"),
        ("powers of 3-D Man", "3-D Man"),
        ("McDonald's in town", "McDonald's"),
        ("O'Brien's score", "O'Brien"),
        ("the 'Flying Dutchman'", "flying  dutchman"),
        ('titled "It\'s a Trap!"', "It's a Trap!"),
        ("titled 'It's a Trap!'", "It's a Trap!"),
        ("named «of»", "of"),
        ("named “Who?”", "Who?"),
        ("weather in Sao Paulo", "São Paulo"),
        ("weather in São Paulo", "Sao Paulo"),
        ("flights to Bergen", " Bergen "),
        ("trains to Petersbrug", "Petersburg"),
        ("trains to Saint Petesburg", "Saint Petersburg"),
        ("the guitarr player", "Guitar Player"),
        ("the hip-hop scene of North Carolina", "NorthCarolina"),
        ("people of sex F", "F"),
        ("customers in OR", "OR"),
        ("made in 2014", "2014"),
        ("on 2014-01-02", "2014-01-02"),
        ("rated 3.5, at least", "3.5"),
        ("北京有多少人", "北京"),
        ("students of Müller", "Mu\u0308ller"),
    ],
)
def test_a_text_that_the_question_mentions_is_linked_as_it_is_stored(question: str, text: str) -> None:
    assert found(question, "another", text, "thing") == [text]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who lives in Oslofjord?", "Oslo"),
        ("York, which is new", "New York"),
        ("How many are in the city?", "In"),
        ("In which city?", "In"),
        ("a list of names", "A"),
        ("the first of all", "the"),
        ("Which country?", "Country House"),
        ("the cat", "cut"),
        ("horses", "house"),
        ("made 3.5 times", "5"),
        ("made 5,000 times", "5"),
        ("3, 5 and 7", "3.5"),
        ("from 2014", "2015"),
        ("plan", "plane"),
        ("Petersberk", "Petersburg"),
        ("+ and -", "+"),
        ("表格", "表"),
        ("", "Oslo"),
        ("nothing", ""),
    ],
)
def test_what_only_looks_alike_is_not_linked(question: str, text: str) -> None:
    assert found(question, text) == []


def test_a_word_that_is_stored_is_no_misspelling() -> None:
    assert found("the county", "country") == ["country"]
    assert found("the county", "country", "county") == ["county"]


def test_a_text_inside_a_longer_one_of_its_column_is_left_out() -> None:
    assert link("from New York City", "", CITIES, limit=9) == {("city", "name"): ("New York City",)}
    other = CITIES | {("person", "surname"): ("York",)}
    assert link("from New York City", "", other, limit=9) == {
        ("city", "name"): ("New York City",),
        ("person", "surname"): ("York",),
    }


def test_the_surest_mention_comes_first() -> None:
    values = {("t", "a"): ("guitars", "GUITAR", "Guitar"), ("t", "b"): ("bass",), ("t", "c"): ("Electric Guitar",)}
    linked = link("Is 'bass' or Guitar or an electric guitar louder?", "", values, limit=9)
    assert list(linked.items()) == [
        (("t", "b"), ("bass",)),
        (("t", "a"), ("Guitar", "GUITAR", "guitars")),
        (("t", "c"), ("Electric Guitar",)),
    ]


def test_evidence_counts_as_the_question_does_and_comes_after_it() -> None:
    assert found("Which of them?", "Oslo", evidence="capital refers to name = 'Oslo'") == ["Oslo"]
    assert found("Bergen?", "Oslo", "Bergen", evidence="Oslo") == ["Bergen", "Oslo"]


def test_a_mention_does_not_reach_from_the_question_into_the_evidence() -> None:
    assert found("It is new", "New York", evidence="York") == []


def test_no_more_texts_than_asked_for_are_linked() -> None:
    values = {("t", str(n)): ("Oslo",) for n in range(30)}
    assert link("Oslo", "", values, limit=7) == {("t", str(n)): ("Oslo",) for n in range(7)}
    assert link("Oslo", "", values, limit=0) == {}


texts = st.lists(st.sampled_from(NASTY) | st.text(max_size=20), max_size=8)


@given(st.dictionaries(st.tuples(st.just("t"), st.sampled_from("abcd")), texts), st.text(max_size=80), texts)
def test_any_text_is_answered_with_stored_texts_and_always_alike(
    values: Mapping[tuple[str, str], Sequence[str]], question: str, more: list[str]
) -> None:
    asked = " ".join([question, *more])
    index = ValueIndex(values)
    linked = index.link(asked, question, limit=5)
    assert linked == index.link(asked, question, limit=5)
    assert sum(map(len, linked.values())) <= 5
    assert all(text in values[column] for column, of_column in linked.items() for text in of_column)
    assert all(len(set(of_column)) == len(of_column) > 0 for of_column in linked.values())


@given(
    st.lists(st.text("abcdefgh", min_size=6, max_size=12), min_size=1, max_size=4).map(" ".join),
    st.text("xyz ?", max_size=9),
)
def test_a_text_of_longer_words_is_found_wherever_it_is_said(text: str, around: str) -> None:
    assert text in found(f"{around} {text.upper()} {around}", text, around)


def test_one_text_is_found_among_many_that_share_its_words() -> None:
    index = ValueIndex({("t", f"c{n}"): tuple(f"common word{n} thing{m}" for m in range(2000)) for n in range(10)})
    for n in range(0, 2000, 50):
        assert index.link(f"is the common word3 thing{n} common?", limit=5) == {
            ("t", "c3"): (f"common word3 thing{n}",)
        }
