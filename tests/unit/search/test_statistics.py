"""Groups of values against what can be worked out by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.statistics import EXACT_PAIRS, mean_difference, rank_test, sample
from orchestrator.search.statistics_bands import QUARTILE_RUNS, band_kind, band_over
from orchestrator.search.streams import stream

SIX = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
VALUES = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=8)


def test_a_group_in_figures() -> None:
    found = sample([2.0, 4.0, 4.0, 10.0])
    assert (found.n, found.mean, found.median, found.low, found.high) == (4, 5.0, 4.0, 2.0, 10.0)
    assert found.sd == pytest.approx((9 + 1 + 1 + 25) ** 0.5 / 3**0.5)
    assert sample([1.0, 2.0, 7.0, 8.0]).median == 4.5


def test_a_single_value_has_no_deviation() -> None:
    assert sample([3.5]).sd is None
    assert sample([3.5, 3.5]).sd == 0


@pytest.mark.parametrize(
    "values", [[], [1.0, float("nan")], [float("inf")], [1.0, -1e151]], ids=["none", "nan", "infinite", "too large"]
)
def test_only_finite_values_make_a_group(values: list[float]) -> None:
    for refused in (
        lambda: sample(values),
        lambda: rank_test(values, [1.0]),
        lambda: rank_test([1.0], values),
        lambda: mean_difference([1.0], values, generator=stream(0, "test")),
    ):
        with pytest.raises(ValueError, match="one or more finite values"):
            refused()


def test_the_largest_values_give_finite_figures() -> None:
    found = sample([1e150, -1e150])
    assert (found.mean, found.sd) == (0.0, pytest.approx(2**0.5 * 1e150))
    difference = mean_difference([1e150, 1e150], [-1e150, -1e150], generator=stream(0, "test"))
    assert (difference.difference, difference.low, difference.high) == (2e150, 2e150, 2e150)


def by_enumeration(first: tuple[float, ...]) -> tuple[float, float]:
    """U, and the two-sided p-value as the share of all ways to choose three of six that are as far from the middle."""

    def u_of(chosen: tuple[float, ...]) -> int:
        return sum(one > two for one in chosen for two in SIX if two not in chosen)

    distances = [abs(u_of(chosen) - 4.5) for chosen in combinations(SIX, 3)]
    u = u_of(first)
    return u, sum(distance >= abs(u - 4.5) for distance in distances) / len(distances)


@pytest.mark.parametrize("first", list(combinations(SIX, 3)), ids=lambda first: "".join(f"{one:.0f}" for one in first))
def test_three_against_three_is_the_enumeration_of_all_twenty(first: tuple[float, ...]) -> None:
    other = [value for value in SIX if value not in first]
    found = rank_test(first, other)
    assert found.method == "exact"
    assert found.pairs == 9
    assert (found.u, found.p) == pytest.approx(by_enumeration(first))


def test_the_most_that_three_against_three_can_show() -> None:
    found = rank_test([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.u, found.share) == (9.0, 1.0)
    assert found.p == pytest.approx(2 / 20)


def test_ties_count_half_and_are_not_called_exact() -> None:
    found = rank_test([1.0, 2.0], [2.0, 3.0])
    assert found.u == 0.5  # 1 < 2, 1 < 3, 2 = 2, 2 < 3
    assert found.method == "normal approximation"
    # sd^2 = 4 / 12 * (5 - (2^3 - 2) / (4 * 3)) = 1.5; z = (|0.5 - 2| - 0.5) / sd
    assert found.p == pytest.approx(0.414216178, abs=1e-8)


def test_equal_groups_show_nothing() -> None:
    assert rank_test([1.0, 1.0], [1.0, 1.0, 1.0]).p == 1.0
    assert rank_test([1.0], [2.0]).p == 1.0


def test_many_pairs_are_not_counted_out() -> None:
    many = list(range(EXACT_PAIRS // 2 + 1))
    found = rank_test([-1.0, -2.0], [float(value) for value in many])
    assert found.method == "normal approximation"
    assert 0 < found.p < 0.05


@given(VALUES, VALUES)
def test_the_groups_mirror_each_other(first: list[float], other: list[float]) -> None:
    one, two = rank_test(first, other), rank_test(other, first)
    assert one.u + two.u == one.pairs == two.pairs
    assert one.p == pytest.approx(two.p)
    assert 0 <= one.p <= 1


def test_two_values_against_two_can_differ_by_as_much_as_their_ends() -> None:
    """Means of {0, 1} drawn twice are 0, 1/2, 1 with 1/4, 1/2, 1/4: a difference of -1 or 1 has 1/16, over 2.5 %."""
    found = mean_difference([0.0, 1.0], [0.0, 1.0], generator=stream(1, "test"))
    assert (found.difference, found.low, found.high) == (0.0, -1.0, 1.0)


def test_two_values_against_a_constant() -> None:
    """The resampled mean is 10, 15, 20 with 1/4, 1/2, 1/4, so that both ends are reached."""
    found = mean_difference([10.0, 20.0], [3.0, 3.0], generator=stream(1, "test"))
    assert (found.difference, found.low, found.high) == (12.0, 7.0, 17.0)


def test_a_single_value_cannot_be_resampled() -> None:
    found = mean_difference([1.0], [2.0, 4.0], generator=stream(1, "test"))
    assert (found.difference, found.low, found.high) == (-2.0, None, None)


def test_the_interval_is_that_of_plain_resampling() -> None:
    """Against values that are drawn one by one; standard error (var/n) within a few percent."""
    first, other = [1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 3.0, 5.0, 9.0]
    found = mean_difference(first, other, generator=stream(1, "test"), resamples=40_000)
    plain = np.random.default_rng(7)
    drawn = plain.choice(first, (40_000, 5)).mean(axis=1) - plain.choice(other, (40_000, 4)).mean(axis=1)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.25)


def test_equal_streams_give_equal_intervals() -> None:
    groups = ([1.0, 2.0, 5.0], [2.0, 2.5, 7.0])
    first, again = (mean_difference(*groups, generator=stream(3, "compare", "hidden")) for _ in range(2))
    assert first == again


def test_an_interval_needs_a_resample() -> None:
    with pytest.raises(ValueError, match="at least one resample, got 0"):
        mean_difference([1.0, 2.0], [1.0, 2.0], generator=stream(0, "test"), resamples=0)


def test_a_band_of_three_runs_has_their_median_and_ends() -> None:
    curves = [[(0.0, 5.0), (2.0, 3.0)], [(0.0, 5.0), (1.0, 4.0)], [(0.0, 5.0), (3.0, 1.0)]]
    found = band_over(curves, "min-max")
    assert found.spent == (0.0, 1.0, 2.0, 3.0)
    assert found.median == (5.0, 5.0, 4.0, 3.0)
    assert found.low == (5.0, 4.0, 3.0, 1.0)
    assert found.high == (5.0, 5.0, 5.0, 4.0)


def test_quartiles_lie_between_neighbours() -> None:
    found = band_over([[(0.0, float(value))] for value in (0, 10, 20, 30, 40, 50)], "interquartile")
    assert (found.low, found.median, found.high) == ((12.5,), (25.0,), (37.5,))


def test_a_band_begins_where_every_run_has_a_value_and_ends_where_the_last_run_does() -> None:
    found = band_over([[(0.0, 1.0), (9.0, 1.0)], [(2.0, 5.0), (3.0, 5.0)]], "min-max")
    assert found.spent == (2.0, 9.0)
    assert (found.low, found.high) == ((1.0, 1.0), (5.0, 5.0))


def test_of_equal_amounts_the_last_counts() -> None:
    assert band_over([[(0.0, 1.0), (0.0, 2.0)]], "min-max").median == (2.0,)


def test_a_run_without_a_value_leaves_no_band() -> None:
    assert band_over([[(0.0, 1.0)], []], "min-max").spent == ()


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="got none"):
        band_over([], "min-max")
    with pytest.raises(ValueError, match="ascend"):
        band_over([[(1.0, 1.0), (0.0, 2.0)]], "min-max")


def test_few_runs_have_no_quartiles() -> None:
    assert band_kind(QUARTILE_RUNS - 1) == "min-max"
    assert band_kind(QUARTILE_RUNS) == "interquartile"
