"""Variants, what they share, and the Pareto front; nothing runs here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.methods.evosql import Settings
from orchestrator.methods.evosql.grid import (
    FIRST_ROUND,
    bubbles,
    crossed,
    paper_catalogue,
    pareto_front,
    trials_of,
    variants_of,
)

BASE = Settings()
points = st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float))


def test_a_grid_is_crossed_in_order_and_an_empty_one_has_one_combination() -> None:
    assert list(crossed({"rounds": [3, 1], "payload": [1, 4]})) == [
        {"rounds": 3, "payload": 1},
        {"rounds": 3, "payload": 4},
        {"rounds": 1, "payload": 1},
        {"rounds": 1, "payload": 4},
    ]
    assert list(crossed({})) == [{}]


def test_variants_stand_once_with_the_base_first_and_say_what_they_change() -> None:
    variants = variants_of(BASE, [{"payload": 4}, {"rounds": 3}, {"payload": 4, "rounds": 3}, {"bonus_cap": 0.5}])
    assert [(one.id, one.label) for one in variants] == [("v001", "base"), ("v002", "M 4"), ("v003", "cap 0.5")]
    (none,) = variants_of(BASE.model_copy(update={"temperature": 0.5}), [{"temperature": None, "seed": 1}])
    assert none.label == "seed 1, temperature none"


def test_an_unknown_or_impossible_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="gamma"):
        variants_of(BASE, [{"gamma": 1}])
    with pytest.raises(ValidationError, match="time_discount"):
        variants_of(BASE, [{"time_discount": 2}])


def test_the_papers_catalogue_is_made_of_different_variants() -> None:
    departures = list(paper_catalogue())
    variants = variants_of(BASE, departures)
    assert len(departures) == len(variants) == 56
    assert {one.settings.temperature for one in variants} == {0.8, 0.5, 0.7}
    assert {one.settings.rounds for one in variants} == {1, 2, 3}


def test_variants_of_fewer_rounds_share_the_evolution_of_more() -> None:
    variants = variants_of(BASE, list(crossed({"rounds": [1, 3, 2], "consistency_weight": [0.3, 0.0]})))
    trials = trials_of(variants)
    assert [(trial.settings.rounds, len(trial.variants)) for trial in trials] == [(3, 3), (3, 3)]
    assert len({trial.name for trial in trials}) == 2
    assert {trial.scope for trial in trials} == {"f1/"}


def test_without_a_judgement_of_the_last_round_rounds_are_not_shared() -> None:
    variants = variants_of(BASE.model_copy(update={"critic_last_round": False}), list(crossed({"rounds": [1, 2, 3]})))
    assert [trial.settings.rounds for trial in trials_of(variants)] == [3, 1, 2]


@pytest.mark.parametrize("name", FIRST_ROUND)
def test_what_the_first_round_depends_on_gives_it_a_place_of_its_own(name: str) -> None:
    changed = {"temperature": 0.5, "record_cell_characters": 100}.get(name, getattr(BASE, name) + 1)
    variants = variants_of(BASE, [{}, {name: changed}, {"payload": 4}])
    assert [trial.scope for trial in trials_of(variants)] == ["f1/", "f2/", "f1/"]


def test_every_other_setting_shares_the_first_round() -> None:
    others = {
        "rounds": 2, "payload": 4, "time_discount": 1.0, "consistency_weight": 0.0, "bonus_cap": 1.0,
        "confidence_weight": 0.5, "confidence_threshold": 10.0, "selection_temperature": 2.0, "stop_share": 0.5,
        "tie_break": "later", "critic_mode": "grouped", "critic_scores": "four", "critic_last_round": False,
        "empty_is_suspect": False, "critic_temperature": 0.5,
    }  # fmt: skip
    assert set(others) | set(FIRST_ROUND) == set(Settings.model_fields)
    variants = variants_of(BASE, [{name: value} for name, value in others.items()])
    assert {trial.scope for trial in trials_of(variants)} == {"f1/"}


@given(st.lists(points, min_size=1))
def test_a_point_is_on_the_front_exactly_if_nothing_dominates_it(found: list[tuple[float, float]]) -> None:
    def dominated(point: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
        return any(x >= point[0] and y >= point[1] and (x, y) != point for x, y in others)

    assert pareto_front(found) == {point for point in found if not dominated(point, found)}


@given(st.lists(points, min_size=1))
def test_every_variant_is_in_one_bubble_at_its_point(found: list[tuple[float, float]]) -> None:
    named = {f"v{number}": point for number, point in enumerate(found)}
    gathered = bubbles(named)
    assert {name: (one.x, one.y) for one in gathered for name in one.variants} == named
    assert sum(len(one.variants) for one in gathered) == len(found)
    assert [(one.x, one.y) for one in gathered] == sorted(set(found))


def test_fewer_tokens_are_better_where_the_first_coordinate_is_a_cost() -> None:
    cheap, dear, useless = bubbles({"a": (10.0, 0.5), "b": (20.0, 0.6), "c": (30.0, 0.6)}, lower_x=True)
    assert [cheap.on_front, dear.on_front, useless.on_front] == [True, True, False]
