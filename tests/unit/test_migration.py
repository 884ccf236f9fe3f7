"""Who is whose neighbour, and who is shown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.islands import ring_neighbours
from orchestrator.search.migration import select_migrants


@pytest.mark.parametrize(
    ("island", "islands", "neighbours"),
    [(0, 1, ()), (0, 2, (1,)), (1, 2, (0,)), (0, 3, (1, 2)), (2, 3, (0, 1)), (0, 5, (1, 4)), (4, 5, (0, 3))],
)
def test_small_rings_have_the_neighbours_one_expects(island: int, islands: int, neighbours: tuple[int, ...]) -> None:
    assert ring_neighbours(island, islands) == neighbours


@given(st.integers(1, 50), st.data())
def test_neighbourhood_is_mutual_and_never_with_oneself(islands: int, data: st.DataObject) -> None:
    island = data.draw(st.integers(0, islands - 1))
    neighbours = ring_neighbours(island, islands)
    assert island not in neighbours
    assert len(set(neighbours)) == len(neighbours) == min(2, islands - 1)
    assert all(island in ring_neighbours(other, islands) for other in neighbours)


@pytest.mark.parametrize(("island", "islands"), [(-1, 3), (3, 3), (0, 0)])
def test_an_island_outside_the_ring_is_refused(island: int, islands: int) -> None:
    with pytest.raises(ValueError, match="is not in a ring"):
        ring_neighbours(island, islands)


pools = st.dictionaries(st.text("abc0123", min_size=1, max_size=4), st.integers(-3, 3).map(float), max_size=30)


@given(pools, st.sampled_from([0.01, 0.25, 0.5, 1.0]))
def test_migrants_are_the_best_part_of_the_pool_and_at_least_one(pool: dict[str, float], fraction: float) -> None:
    chosen = select_migrants(sorted(pool), fraction=fraction, fitness=pool.__getitem__)
    left_behind = set(pool) - set(chosen)
    assert len(chosen) == (max(1, math.floor(len(pool) * fraction)) if pool else 0)
    assert all(pool[candidate] >= pool[other] for candidate in chosen for other in left_behind)
    assert [pool[candidate] for candidate in chosen] == sorted((pool[c] for c in chosen), reverse=True)


def test_a_quarter_of_eight_elites_is_two_and_ties_go_to_the_earlier_one() -> None:
    pool = ["i0-c01", "i0-c02", "i0-c03", "i0-c04", "i2-c01", "i2-c02", "i2-c03", "i2-c04"]
    fitness = dict.fromkeys(pool, 0.9) | {"i2-c03": 0.95}
    assert select_migrants(pool, fitness=fitness.__getitem__) == ("i2-c03", "i0-c01")


def test_candidates_without_a_score_do_not_migrate() -> None:
    assert select_migrants(["failed", "scored"], fitness={"failed": None, "scored": 0.1}.__getitem__) == ("scored",)
    assert select_migrants(["failed"], fitness=lambda _: None) == ()


def test_a_fitness_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="fitness of 'a' is nan"):
        select_migrants(["a"], fitness=lambda _: math.nan)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.01, math.nan])
def test_a_fraction_out_of_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"lies in \(0, 1\]"):
        select_migrants(["a"], fraction=fraction, fitness=lambda _: 1.0)
