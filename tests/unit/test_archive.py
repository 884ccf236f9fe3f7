"""The grid is a function of what was offered, and not of the order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.archive import Grid, Placement, bin_of

BINS = (4, 3)
shares = st.floats(-0.5, 1.5)
features = st.tuples(shares, shares)
offers = st.lists(st.tuples(st.integers(-5, 5).map(float), features), max_size=40)
distinct_offers = st.lists(st.tuples(st.floats(-1e9, 1e9), features), max_size=40, unique_by=lambda offer: offer[0])


def filled(order: list[tuple[int, tuple[float, tuple[float, float]]]]) -> Grid[int]:
    grid: Grid[int] = Grid(bins=BINS)
    for number, (fitness, values) in order:
        grid.offer(number, fitness=fitness, features=values)
    return grid


@given(distinct_offers, st.data())
def test_with_distinct_fitness_the_elites_are_the_same_in_any_order(
    candidates: list[tuple[float, tuple[float, float]]], data: st.DataObject
) -> None:
    numbered = list(enumerate(candidates))
    shuffled = data.draw(st.permutations(numbered))
    assert filled(numbered).cells == filled(shuffled).cells
    assert filled(numbered).elites == filled(shuffled).elites
    assert filled(numbered).best == filled(shuffled).best


@given(offers, st.data())
def test_with_ties_the_fitness_of_every_cell_is_the_same_in_any_order(
    candidates: list[tuple[float, tuple[float, float]]], data: st.DataObject
) -> None:
    numbered = list(enumerate(candidates))
    first, second = filled(numbered), filled(data.draw(st.permutations(numbered)))
    assert {cell: elite.fitness for cell, elite in first.cells.items()} == {
        cell: elite.fitness for cell, elite in second.cells.items()
    }


@given(offers)
def test_every_cell_holds_the_first_of_its_best(candidates: list[tuple[float, tuple[float, float]]]) -> None:
    grid = filled(list(enumerate(candidates)))
    by_cell: dict[tuple[int, ...], list[tuple[float, int]]] = {}
    for number, (fitness, values) in enumerate(candidates):
        by_cell.setdefault(grid.cell(values), []).append((-fitness, number))
    assert {cell: elite.occupant for cell, elite in grid.cells.items()} == {
        cell: min(members)[1] for cell, members in by_cell.items()
    }
    assert len(grid) == len(by_cell)
    if candidates:
        assert grid.best is not None
        assert grid.best.fitness == max(fitness for fitness, _ in candidates)
        assert grid.best.occupant in grid.elites


def test_a_tie_keeps_the_incumbent() -> None:
    grid: Grid[str] = Grid(bins=(2,))
    assert grid.offer("first", fitness=1, features=[0.1]) is Placement.FILLED
    assert grid.offer("equal", fitness=1, features=[0.2]) is Placement.REJECTED
    assert grid.offer("better", fitness=1.5, features=[0.3]) is Placement.REPLACED
    assert grid.offer("elsewhere", fitness=1.5, features=[0.9]) is Placement.FILLED
    assert grid.elites == ("better", "elsewhere")
    assert grid.best is not None
    assert grid.best.occupant == "better"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_and_change_nothing(bad: float) -> None:
    grid: Grid[str] = Grid(bins=(2, 2))
    with pytest.raises(ValueError, match="only finite numbers"):
        grid.offer("x", fitness=bad, features=[0, 0])
    with pytest.raises(ValueError, match="only finite numbers"):
        grid.offer("x", fitness=1, features=[0, bad])
    assert len(grid) == 0
    assert grid.best is None


def test_a_missing_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="2 features, the candidate 1"):
        Grid[str](bins=(2, 2)).offer("x", fitness=1, features=[0.5])


@pytest.mark.parametrize("bins", [(), (0,), (3, -1)])
def test_a_grid_without_cells_is_refused(bins: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least one feature and one bin"):
        Grid[str](bins=bins)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 1000))
def test_a_bin_is_always_one_of_the_bins(value: float, bins: int) -> None:
    assert 0 <= bin_of(value, bins) < bins


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 100))
def test_bins_follow_the_order_of_values(low: float, high: float, bins: int) -> None:
    low, high = sorted((low, high))
    assert bin_of(low, bins) <= bin_of(high, bins)


def test_ten_bins_divide_the_range_evenly_and_the_last_includes_the_upper_end() -> None:
    assert [bin_of(n / 10 + 0.05, 10) for n in range(10)] == list(range(10))
    assert bin_of(1, 10) == bin_of(7, 10) == 9
    assert bin_of(0, 10) == bin_of(-7, 10) == 0
