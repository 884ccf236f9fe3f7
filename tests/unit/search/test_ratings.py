"""Elo ratings: contests computed by hand, and what holds of every contest."""

from __future__ import annotations

import math
from itertools import permutations
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.search.ratings import Order, expected_score, update

names = st.sampled_from("abcdefgh")
finite = st.floats(0, 4000)
archives = st.dictionaries(names, finite, min_size=2)
ks = st.floats(0.1, 200)
scales = st.floats(50, 2000)
orders = pytest.mark.parametrize("order", list(Order))


@st.composite
def contests(draw: st.DrawFn) -> tuple[dict[str, float], dict[str, int]]:
    """Ratings of an archive and what some of its members scored."""
    ratings = draw(archives)
    competitors = draw(st.lists(st.sampled_from(sorted(ratings)), unique=True))
    return ratings, {name: draw(st.integers(0, 6)) for name in competitors}


def test_expected_scores_by_hand() -> None:
    assert expected_score(1900, 1500, 400) == pytest.approx(10 / 11)
    assert expected_score(1500, 1900, 400) == pytest.approx(1 / 11)
    assert expected_score(1700, 1500, 400) == pytest.approx(1 / (1 + 10**-0.5))
    assert expected_score(1700, 1500, 200) == pytest.approx(10 / 11)
    assert expected_score(1613.7, 1613.7, 400) == 0.5


@given(finite, finite, scales)
def test_expected_scores_of_both_sides_are_one_together(a: float, b: float, scale: float) -> None:
    assert 0 <= expected_score(a, b, scale) <= 1
    assert expected_score(a, b, scale) + expected_score(b, a, scale) == pytest.approx(1)
    assert expected_score(a, b, scale) == pytest.approx(1 / (1 + 10 ** ((b - a) / scale)), abs=1e-12)


def test_a_lead_of_any_size_overflows_nothing() -> None:
    assert expected_score(1e9, -1e9, 1.0) == 1.0
    assert expected_score(-1e9, 1e9, 1.0) == 0.0


START = {"a": 1500.0, "b": 1500.0, "c": 1500.0}
PAPER = {"a": 65, "b": 62, "c": 62}
"""The three events of the paper's example: a beats b, a beats c, and b and c draw."""


def test_the_papers_contest_by_hand_in_simultaneous_order() -> None:
    assert update(START, PAPER, k=32, scale=400, order=Order.SIMULTANEOUS) == {"a": 1532.0, "b": 1484.0, "c": 1484.0}


def test_the_papers_contest_by_hand_in_sequential_order() -> None:
    after = update(START, PAPER, k=32, scale=400, order=Order.SEQUENTIAL)
    first = 16.0  # a beats b: 32 * (1 - 1/2)
    second = 32 * (1 - 1 / (1 + 10 ** (-first / 400)))  # a, now 1516, beats c
    third = 32 * (0.5 - 1 / (1 + 10 ** ((first - second) / 400)))  # b, 1484, and c, 1500 - second, draw
    assert second == pytest.approx(15.263693, abs=1e-6)
    assert third == pytest.approx(0.0339, abs=1e-4)
    assert after["a"] == pytest.approx(1516 + second)
    assert after["b"] == pytest.approx(1484 + third)
    assert after["c"] == pytest.approx(1500 - second - third)


def test_sequential_pairs_are_played_in_the_order_of_the_competitors() -> None:
    other = update(START, {"c": 62, "b": 62, "a": 65}, k=32, scale=400, order=Order.SEQUENTIAL)
    assert other["c"] == pytest.approx(1484.0)  # c-b is a draw of equals, c-a costs c 16, and b-a comes last
    assert other["b"] == pytest.approx(1500 - 15.263693, abs=1e-6)


@orders
def test_an_upset_moves_more_than_an_expected_win(order: Order) -> None:
    ratings = {"strong": 1900.0, "weak": 1500.0}
    expected = update(ratings, {"strong": 9, "weak": 2}, k=32, scale=400, order=order)
    upset = update(ratings, {"strong": 2, "weak": 9}, k=32, scale=400, order=order)
    assert expected["strong"] - 1900 == pytest.approx(32 / 11)
    assert upset["weak"] - 1500 == pytest.approx(32 * 10 / 11)


@orders
@given(contests(), ks, scales)
def test_the_sum_of_all_ratings_stays(
    order: Order, contest: tuple[dict[str, float], dict[str, int]], k: float, scale: float
) -> None:
    ratings, right = contest
    after = update(ratings, right, k=k, scale=scale, order=order)
    assert list(after) == list(ratings)
    assert math.fsum(after.values()) == pytest.approx(math.fsum(ratings.values()))


@given(contests(), ks, scales, st.randoms(use_true_random=False))
def test_simultaneous_ratings_do_not_depend_on_any_order_to_the_last_digit(
    contest: tuple[dict[str, float], dict[str, int]], k: float, scale: float, shuffler: Random
) -> None:
    ratings, right = contest
    competitors, members = list(right), list(ratings)
    shuffler.shuffle(competitors)
    shuffler.shuffle(members)
    assert update(ratings, right, k=k, scale=scale, order=Order.SIMULTANEOUS) == update(
        {name: ratings[name] for name in members},
        {name: right[name] for name in competitors},
        k=k,
        scale=scale,
        order=Order.SIMULTANEOUS,
    )


def test_sequential_ratings_do() -> None:
    results = {
        tuple(sorted(update(START, {n: PAPER[n] for n in turn}, k=32, scale=400, order=Order.SEQUENTIAL).items()))
        for turn in permutations(PAPER)
    }
    assert len(results) > 1


@orders
@given(st.sets(names, min_size=1), finite, st.integers(0, 99), ks, scales)
def test_a_draw_of_equals_changes_nothing(
    order: Order, competitors: set[str], rating: float, count: int, k: float, scale: float
) -> None:
    ratings = dict.fromkeys(sorted(competitors), rating)
    assert update(ratings, dict.fromkeys(ratings, count), k=k, scale=scale, order=order) == ratings


@given(contests(), ks, scales)
def test_one_more_right_answer_never_costs_rating(
    contest: tuple[dict[str, float], dict[str, int]], k: float, scale: float
) -> None:
    ratings, right = contest
    before = update(ratings, right, k=k, scale=scale, order=Order.SIMULTANEOUS)
    for name in right:
        better = update(ratings, {**right, name: right[name] + 1}, k=k, scale=scale, order=Order.SIMULTANEOUS)
        assert better[name] >= before[name]
        assert all(better[other] <= before[other] for other in right if other != name)


@orders
@given(contests(), ks, scales)
def test_nobody_who_wins_every_event_loses_rating(
    order: Order, contest: tuple[dict[str, float], dict[str, int]], k: float, scale: float
) -> None:
    ratings, right = contest
    assume(len(right) > 1)
    best = max(right, key=lambda name: right[name])
    after = update(ratings, {**right, best: 99}, k=k, scale=scale, order=order)
    assert after[best] >= ratings[best]


@orders
@given(contests(), st.integers(1, 50))
def test_margins_are_ignored(order: Order, contest: tuple[dict[str, float], dict[str, int]], factor: int) -> None:
    ratings, right = contest
    wider = {name: count * factor for name, count in right.items()}
    assert update(ratings, wider, k=32, scale=400, order=order) == update(ratings, right, k=32, scale=400, order=order)


@given(finite, finite, st.integers(0, 3), st.integers(0, 3), ks, scales)
def test_both_orders_agree_on_two_competitors(
    a: float, b: float, right_a: int, right_b: int, k: float, scale: float
) -> None:
    ratings, right = {"a": a, "b": b}, {"a": right_a, "b": right_b}
    one, other = (update(ratings, right, k=k, scale=scale, order=order) for order in Order)
    assert one == pytest.approx(other)


@orders
@given(contests())
def test_who_does_not_compete_keeps_the_rating(order: Order, contest: tuple[dict[str, float], dict[str, int]]) -> None:
    ratings, right = contest
    before = dict(ratings)
    after = update(ratings, right, k=32, scale=400, order=order)
    assert {name: after[name] for name in ratings if name not in right} == {
        name: rating for name, rating in before.items() if name not in right
    }
    assert ratings == before
    if len(right) < 2:
        assert after == before


@orders
def test_a_competitor_without_a_rating_is_an_error(order: Order) -> None:
    with pytest.raises(ValueError, match="'d' has no rating"):
        update(START, {"a": 1, "d": 2}, k=32, scale=400, order=order)


@orders
def test_numbers_that_mean_nothing_are_refused(order: Order) -> None:
    with pytest.raises(ValueError, match="'b' has nan"):
        update({"a": 1500.0, "b": math.nan}, {"a": 1}, k=32, scale=400, order=order)
    with pytest.raises(ValueError, match="'a' has -1"):
        update(START, {"a": -1, "b": 0}, k=32, scale=400, order=order)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="k is positive"):
            update(START, PAPER, k=bad, scale=400, order=order)
        with pytest.raises(ValueError, match="scale is positive"):
            update(START, PAPER, k=32, scale=bad, order=order)
    with pytest.raises(ValueError, match="scale is positive"):
        expected_score(1500, 1500, 0)
    with pytest.raises(ValueError, match="ratings are finite"):
        expected_score(math.inf, 1500, 400)
