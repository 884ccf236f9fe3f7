"""Which databases are for what, and which questions a contest asks."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.sampling import DatabaseSplit, sample_contest, split_databases

THIRTEEN = [f"database_{n:02}" for n in range(13)]


def sizes(split: DatabaseSplit) -> tuple[int, int, int]:
    return len(split.evolve), len(split.select), len(split.final)


def split_of(count: int, shares: tuple[int, int, int] = (7, 3, 3)) -> tuple[int, int, int]:
    return sizes(split_databases(map(str, range(count)), 1, shares))


def test_thirteen_databases_are_split_seven_to_three_to_three() -> None:
    assert split_of(13) == (7, 3, 3)
    assert split_of(26) == (14, 6, 6)


def test_sizes_are_those_of_largest_remainders_by_hand() -> None:
    assert split_of(69) == (37, 16, 16)  # 37.15, 15.92, 15.92
    assert split_of(14) == (8, 3, 3)  # 7.54, 3.23, 3.23
    assert split_of(4) == (2, 1, 1)  # 2.15, 0.92, 0.92
    assert split_of(7, (2, 2, 2)) == (3, 2, 2)  # of equal remainders the earlier part gets more
    assert split_of(8, (2, 2, 2)) == (3, 3, 2)


def test_no_part_of_three_or_more_is_empty() -> None:
    assert split_of(3) == (1, 1, 1)
    assert split_of(3, (100, 1, 1)) == (1, 1, 1)
    assert split_of(5, (1, 1, 100)) == (1, 1, 3)
    assert split_of(2) == (1, 1, 0)
    assert split_of(1) == (1, 0, 0)
    assert split_of(0) == (0, 0, 0)


shares = st.tuples(*[st.integers(1, 50)] * 3)
name_sets = st.sets(st.text(max_size=5), max_size=40)


@given(name_sets, st.integers(), shares, st.randoms(use_true_random=False))
def test_a_split_is_a_function_of_the_set(
    names: set[str], seed: int, wanted: tuple[int, int, int], shuffler: Random
) -> None:
    split = split_databases(sorted(names), seed, wanted)
    assert sorted([*split.evolve, *split.select, *split.final]) == sorted(names)
    assert all(list(part) == sorted(part) for part in (split.evolve, split.select, split.final))
    assert len(names) < 3 or min(sizes(split)) >= 1
    exact = [len(names) * share / sum(wanted) for share in wanted]
    assert min(sizes(split)) <= 1 or all(abs(a - b) < 1 for a, b in zip(sizes(split), exact, strict=True))
    shuffled = sorted(names) * 2
    shuffler.shuffle(shuffled)
    assert split_databases(shuffled, seed, wanted) == split


def test_the_seed_decides_which_databases_are_where() -> None:
    splits = [split_databases(THIRTEEN, seed) for seed in range(400)]
    assert splits[:9] == [split_databases(THIRTEEN, seed) for seed in range(9)]
    final = Counter(name for split in splits for name in split.final)
    assert set(final) == set(THIRTEEN)
    assert all(count == pytest.approx(400 * 3 / 13, abs=35) for count in final.values())


def test_a_split_is_the_same_on_every_machine() -> None:
    split = split_databases(THIRTEEN, 0)
    assert [name[-2:] for name in split.select] == ["00", "02", "10"]
    assert [name[-2:] for name in split.final] == ["01", "05", "11"]


@pytest.mark.parametrize("bad", [(7, 3, 0), (0, 1, 1), (1, -1, 1)])
def test_every_part_has_a_share(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="every part has a positive share"):
        split_databases(THIRTEEN, 1, bad)


QUESTIONS = {name: list(range(n * 100, n * 100 + 10 * n)) for n, name in enumerate(THIRTEEN)}
"""Database n has 10 n questions; the first has none."""


def test_a_contest_asks_thirty_of_each_or_what_there_is() -> None:
    contest = sample_contest(QUESTIONS, 1, 4, databases=13, per_database=30)
    assert {name: len(asked) for name, asked in contest.items()} == {
        name: min(30, 10 * n) for n, name in enumerate(THIRTEEN) if n
    }
    assert contest[THIRTEEN[2]] == tuple(QUESTIONS[THIRTEEN[2]])


contests = st.dictionaries(st.text(max_size=3), st.lists(st.integers(), unique=True, max_size=12), min_size=1).filter(
    lambda questions: any(questions.values())
)


@given(contests, st.integers(), st.integers(1, 99), st.integers(1, 8), st.integers(1, 9))
def test_every_contest_keeps_the_rules(
    questions: dict[str, list[int]], seed: int, iteration: int, databases: int, per_database: int
) -> None:
    contest = sample_contest(questions, seed, iteration, databases=databases, per_database=per_database)
    assert list(contest) == sorted(contest)
    assert len(contest) == min(databases, sum(map(bool, questions.values())))
    for name, asked in contest.items():
        assert len(asked) == min(per_database, len(questions[name]))
        places = [questions[name].index(question) for question in asked]
        assert places == sorted(set(places))
    backwards = dict(reversed(questions.items()))
    assert sample_contest(backwards, seed, iteration, databases=databases, per_database=per_database) == contest


def test_equal_questions_at_different_places_are_different_ones() -> None:
    assert sample_contest({"d": ["q"] * 5}, 1, 1, databases=1, per_database=4) == {"d": ("q",) * 4}


def test_every_iteration_draws_anew_and_evenly() -> None:
    drawn = [sample_contest(QUESTIONS, 1, n, databases=5, per_database=10) for n in range(600)]
    by_database = Counter(name for contest in drawn for name in contest)
    assert set(by_database) == set(THIRTEEN[1:])
    assert all(count == pytest.approx(250, abs=40) for count in by_database.values())
    asked = Counter(question for contest in drawn for question in contest.get(THIRTEEN[2], ()))
    assert set(asked) == set(QUESTIONS[THIRTEEN[2]])
    expected = by_database[THIRTEEN[2]] / 2
    assert all(count == pytest.approx(expected, abs=40) for count in asked.values())


def test_a_contest_is_the_same_on_every_machine() -> None:
    questions = {name: range(100) for name in "abc"}
    contest = sample_contest(questions, 0, 1, databases=2, per_database=4)
    assert contest == {"a": (9, 70, 72, 76), "c": (12, 29, 49, 87)}


def test_what_another_database_holds_does_not_change_the_questions_of_this_one() -> None:
    one = sample_contest({"a": range(50), "b": range(50)}, 1, 1, databases=2, per_database=5)
    other = sample_contest({"a": range(50), "b": range(9)}, 1, 1, databases=2, per_database=5)
    assert one["a"] == other["a"]
    assert one["a"] != one["b"]


def test_impossible_contests_are_refused() -> None:
    for databases, per_database in ((0, 30), (5, 0)):
        with pytest.raises(ValueError, match=f"got {databases} x {per_database}"):
            sample_contest(QUESTIONS, 1, 1, databases=databases, per_database=per_database)
    with pytest.raises(ValueError, match="no question to sample"):
        sample_contest({"empty": []}, 1, 1, databases=1, per_database=1)
