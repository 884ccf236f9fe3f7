"""The simulation and the bound of the bin packing task, against the figures of the literature."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tasks" / "online_bin_packing"
OR1_BEST_FIT, OR1_FUNSEARCH, OR1_BOUND = 1038, 1033, 981


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.parents[1].name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # where dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


packing: Any = module(TASK / "evaluator" / "packing.py")
initial: Any = module(TASK / "initial" / "program.py")


def chooser(priority: Callable[[int, NDArray[np.int64]], Any]) -> Callable[..., NDArray[np.float64]]:
    """Call a program sequence by sequence, as the candidate's container does."""

    def choose(items: Any, remaining: Any, lengths: Any) -> NDArray[np.float64]:
        parts = np.split(remaining, np.cumsum(lengths)[:-1])
        return np.concatenate([priority(int(item), part) for item, part in zip(items, parts, strict=True)])

    return choose


BEST_FIT = chooser(initial.priority)


def funsearch_or(item: int, bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """FunSearch's heuristic for OR instances (Romera-Paredes et al. 2024): a step function of what would be left."""
    upper_ends = np.array([2, 3, 5, 7, 9, 12, 15, 21])
    values = np.array([4, 3, 2, 1, 0.9, 0.95, 0.97, 0.98, 0.99])
    return values[np.searchsorted(upper_ends, bins - item)]


@pytest.fixture(scope="module")
def or1() -> NDArray[np.int64]:
    root = Path(os.environ.get("EVOLVARIUM_DATA", ROOT.parent / "shared" / "data"))
    file = root / "or_library" / "binpack1.txt"
    if not file.is_file():
        pytest.skip(f"{file} is absent; set EVOLVARIUM_DATA to a folder that holds or_library/binpack1.txt")
    sequences: NDArray[np.int64] = packing.parse_or_library(file.read_text(), capacity=150, items=120)
    return sequences


def one_by_one(sizes: list[int], capacity: int, priority: Callable[[int, NDArray[np.int64]], Any]) -> int:
    """Bins used on one sequence, as slowly and plainly as the rules are worded."""
    bins = [capacity] * len(sizes)
    for size in sizes:
        fitting = [index for index, left in enumerate(bins) if left >= size]
        scores = priority(size, np.array([bins[index] for index in fitting]))
        chosen = max(fitting, key=lambda index: (scores[fitting.index(index)], -index))
        bins[chosen] -= size
    return sum(left < capacity for left in bins)


def fewest_bins(sizes: list[int], capacity: int) -> int:
    """The optimum, by trying every partition."""

    def search(rest: list[int], bins: list[int], best: int) -> int:
        if len(bins) >= best:
            return best
        if not rest:
            return len(bins)
        for index, left in enumerate(bins):
            if left >= rest[0]:
                best = search(rest[1:], [*bins[:index], left - rest[0], *bins[index + 1 :]], best)
        return search(rest[1:], [*bins, capacity - rest[0]], best)

    return search(sorted(sizes, reverse=True), [], len(sizes) + 1)


def test_or1_has_20_instances_whose_bounds_add_up_to_981(or1: NDArray[np.int64]) -> None:
    assert or1.shape == (20, 120)
    assert packing.lower_bounds(or1, 150).sum() == OR1_BOUND


def test_best_fit_uses_1038_bins_on_or1(or1: NDArray[np.int64]) -> None:
    found = packing.pack(or1, 150, BEST_FIT)
    assert found.bins.sum() == OR1_BEST_FIT
    assert round(100 * (OR1_BEST_FIT / OR1_BOUND - 1), 2) == 5.81
    assert found.deviation == 0


def test_the_funsearch_heuristic_uses_1033_bins_on_or1(or1: NDArray[np.int64]) -> None:
    found = packing.pack(or1, 150, chooser(funsearch_or))
    assert found.bins.sum() == OR1_FUNSEARCH
    assert round(100 * (OR1_FUNSEARCH / OR1_BOUND - 1), 2) == 5.30
    assert 0 < found.deviation < 1


def test_best_fit_on_random_sets_has_the_known_excess() -> None:
    excesses = []
    for seed in range(40):
        sequences = np.random.default_rng(seed).integers(20, 101, size=(100, 120))
        bins = packing.pack(sequences, 150, BEST_FIT).bins.sum()
        excesses.append(100 * (bins / packing.lower_bounds(sequences, 150).sum() - 1))
    assert 6.35 < np.mean(excesses) < 6.55
    assert all(5.9 < excess < 7.0 for excess in excesses)


@given(st.lists(st.lists(st.integers(20, 100), min_size=12, max_size=12), min_size=1, max_size=4))
def test_packing_many_sequences_at_once_equals_packing_them_one_by_one(sequences: list[list[int]]) -> None:
    for priority in (initial.priority, funsearch_or):
        found = packing.pack(np.array(sequences), 150, chooser(priority))
        assert found.bins.tolist() == [one_by_one(sizes, 150, priority) for sizes in sequences]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_the_bound_is_never_over_the_optimum_nor_under_the_volume(sizes: list[int]) -> None:
    (bound,) = packing.lower_bounds(np.array([sizes]), 20)
    assert -(-sum(sizes) // 20) <= bound <= fewest_bins(sizes, 20)


def test_the_bound_counts_items_that_cannot_share_a_bin() -> None:
    assert packing.lower_bounds(np.array([[11, 11, 11], [10, 10, 10], [20, 11, 9]]), 20).tolist() == [3, 2, 2]


def test_of_equal_priorities_the_first_bin_wins() -> None:
    seen: list[list[int]] = []

    def choose(items: Any, remaining: Any, lengths: Any) -> NDArray[np.float64]:  # noqa: ARG001
        seen.append(remaining.tolist())
        return np.zeros(len(remaining))

    assert packing.pack(np.array([[60, 100, 50]]), 150, choose).bins.tolist() == [2]
    assert seen == [[150, 150, 150], [150, 150], [90, 50, 150]]


def test_the_program_is_shown_every_bin_that_fits_also_the_empty_ones() -> None:
    shown: list[list[int]] = []

    def choose(items: Any, remaining: Any, lengths: Any) -> NDArray[np.float64]:
        shown.append(lengths.tolist())
        return BEST_FIT(items, remaining, lengths)

    packing.pack(np.array([[100, 60, 40], [20, 20, 20]]), 150, choose)
    assert shown == [[3, 3], [2, 3], [3, 3]]


def test_deviation_is_the_share_of_placements_where_best_fit_finds_less_room() -> None:
    worst_fit = chooser(lambda item, bins: bins * 1.0)  # noqa: ARG005
    assert packing.pack(np.array([[20, 20, 20, 20]]), 150, worst_fit).deviation == 0.75


OR_FILE = "2\n u0\n 150 3 2\n20\n30\n40\n u1\n 150 3 2\n50\n60\n70\n"


def test_the_or_library_form_is_read() -> None:
    assert packing.parse_or_library(OR_FILE, capacity=150, items=3).tolist() == [[20, 30, 40], [50, 60, 70]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the number of instances must be an integer from 1"),
        ("0\n", "the number of instances must be an integer from 1"),
        (OR_FILE[: OR_FILE.index(" u1")], "ends before the header of instance 2 of 2"),
        (OR_FILE[:-3], "ends after 2 of 3 items of instance 2 of 2"),
        (OR_FILE + "80\n", "'80' follows after the last of 2"),
        (OR_FILE.replace("150 3 2\n50", "100 3 2\n50"), "has capacity 100 and 3 items; needed are 150 and 3"),
        (OR_FILE.replace("150 3 2\n50", "150 4 2\n50"), "has capacity 150 and 4 items"),
        (OR_FILE.replace("30", "3.5"), "a size in instance 1 of 2 must be an integer from 1 to 150, not '3.5'"),
        (OR_FILE.replace("30", "151"), "must be an integer from 1 to 150"),
        (OR_FILE.replace("30", "-1"), "must be an integer from 1 to 150"),
    ],
)
def test_a_damaged_or_library_file_is_an_error(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        packing.parse_or_library(text, capacity=150, items=3)
