"""The paired bootstrap over groups: against exact enumeration, and how often its intervals hold what they should."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.paired import paired_difference
from orchestrator.search.resampling import group_numbers, percentile_interval
from orchestrator.search.streams import stream

# (right or wrong of the first, of the other) per question, by group
CASES = [
    {"g1": ["10", "10"], "g2": ["01"], "g3": ["11"], "g4": ["10", "00", "11"]},
    {"g1": ["10"], "g2": ["01", "01", "01"], "g3": ["01"], "g4": ["10", "10"], "g5": ["00"]},
    {"g1": ["10"], "g2": ["10"], "g3": ["10"], "g4": ["00"], "g5": ["01"]},
]


def flat(groups: dict[str, list[str]]) -> tuple[list[bool], list[bool], list[str]]:
    rows = [(name, pair) for name, pairs in groups.items() for pair in pairs]
    return [pair[0] == "1" for _, pair in rows], [pair[1] == "1" for _, pair in rows], [name for name, _ in rows]


def enumerated(groups: dict[str, list[str]]) -> tuple[float, float]:
    """Ends of the 95 % interval over all equally likely resamples."""
    figures = [(sum(int(p[0]) - int(p[1]) for p in pairs), len(pairs)) for pairs in groups.values()]
    differences = [
        sum(gain for gain, _ in drawn) / sum(size for _, size in drawn)
        for drawn in product(figures, repeat=len(figures))
    ]
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


@pytest.mark.parametrize("groups", CASES)
def test_the_interval_is_that_of_all_possible_resamples(groups: dict[str, list[str]]) -> None:
    found = paired_difference(*flat(groups), generator=stream(1, "paired"), resamples=200_000)
    assert (found.low, found.high) == pytest.approx(enumerated(groups), abs=1e-9)


def test_the_difference_by_hand() -> None:
    found = paired_difference(*flat(CASES[0]), generator=stream(1, "paired"))
    assert found.difference == pytest.approx(2 / 7)  # three questions better, one worse, of seven
    assert (found.questions, found.groups) == (7, 4)
    assert found.half_width == pytest.approx((found.high - found.low) / 2)


answers = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=20)


@given(answers)
def test_whom_one_counts_first_only_turns_the_sign(rows: list[tuple[bool, bool, int]]) -> None:
    first, other, groups = zip(*rows, strict=True)
    one = paired_difference(first, other, groups, generator=stream(1, "paired"), resamples=200)
    turned = paired_difference(other, first, groups, generator=stream(1, "paired"), resamples=200)
    assert one.difference == -turned.difference
    assert (one.low, one.high) == pytest.approx((-turned.high, -turned.low))
    assert -1 <= one.low <= one.high <= 1


@given(answers)
def test_equal_agents_differ_by_nothing_for_certain(rows: list[tuple[bool, bool, int]]) -> None:
    first, _, groups = zip(*rows, strict=True)
    found = paired_difference(first, first, groups, generator=stream(1, "paired"), resamples=50)
    assert (found.difference, found.low, found.high) == (0, 0, 0)


def test_equal_generators_give_equal_intervals() -> None:
    one, other = (paired_difference(*flat(CASES[1]), generator=stream(5, "paired"), resamples=37) for _ in range(2))
    assert one == other


def test_a_single_group_leaves_nothing_to_resample() -> None:
    found = paired_difference([True, True, False], [False] * 3, ["g"] * 3, generator=stream(1, "paired"))
    assert found.low == found.high == found.difference == pytest.approx(2 / 3)
    assert found.groups == 1


def simulated(rng: np.random.Generator, groups: int) -> tuple[list[bool], list[bool], list[int]]:
    """Questions whose groups are answered alike: the first agent is right in 70 % of them, the other in 60 %."""
    first: list[bool] = []
    other: list[bool] = []
    numbers: list[int] = []
    for group in range(groups):
        size = int(rng.integers(1, 8))
        first += [bool(rng.random() < 0.7)] * size
        other += [bool(rng.random() < 0.6)] * size
        numbers += [group] * size
    return first, other, numbers


def coverage(by_group: bool) -> float:
    rng = stream(3, "coverage")
    held = 0
    for _ in range(300):
        first, other, numbers = simulated(rng, 60)
        groups: Sequence[int] = numbers if by_group else range(len(numbers))
        found = paired_difference(first, other, groups, generator=rng, resamples=500)
        held += found.low <= 0.1 <= found.high
    return held / 300


def test_intervals_hold_the_true_difference_as_often_as_they_say() -> None:
    assert 0.91 <= coverage(by_group=True) <= 0.98


def test_intervals_that_take_copies_for_evidence_do_not() -> None:
    assert coverage(by_group=False) < 0.85


@pytest.mark.parametrize(("first", "other", "groups"), [([], [], []), ([True], [], ["g"]), ([True], [True], [])])
def test_agents_must_have_answered_the_same_questions(first: list[bool], other: list[bool], groups: list[str]) -> None:
    with pytest.raises(ValueError, match="the same questions"):
        paired_difference(first, other, groups, generator=stream(1, "paired"))


def test_without_a_resample_there_is_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one resample"):
        paired_difference([True], [True], ["g"], generator=stream(1, "paired"), resamples=0)


def test_groups_are_numbered_as_they_are_met() -> None:
    assert group_numbers(["b", ("a", 1), "b", "c", ("a", 1)]).tolist() == [0, 1, 0, 2, 1]
    assert group_numbers([]).tolist() == []


def test_an_interval_cuts_off_the_same_share_on_both_sides() -> None:
    values = np.stack([np.arange(1001.0), np.arange(1001.0) * -2], axis=1)
    assert percentile_interval(values) == pytest.approx(np.array([[25.0, -1950.0], [975.0, -50.0]]))
