"""The two rules of the final choice, on cases worked out by hand and as properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.final_choice import MARGIN, ROUND_OFF, Measured, Rule, choose, pareto_front, scores_of

FALLING = [(1, 1.0), (3, 0.1), (5, 0.08), (6, 1e-3), (9, 9e-4)]
"""Sizes and errors; the front is all of it."""


def measured(*pairs: tuple[float, float]) -> list[Measured]:
    return [Measured(size=size, error=error) for size, error in pairs]


def test_the_front_leaves_out_whatever_is_larger_and_no_better() -> None:
    candidates = measured((3, 0.5), (1, 1.0), (4, 0.5), (3, 0.4), (2, 1.5), (7, 0.1))
    assert pareto_front(candidates) == (1, 3, 5)
    assert pareto_front([]) == ()


def test_of_candidates_alike_the_earliest_is_on_the_front() -> None:
    assert pareto_front(measured((2, 0.5), (2, 0.5), (1, 0.5), (1, 0.5))) == (2,)


def test_the_score_is_the_fall_of_the_logarithm_per_node() -> None:
    scores = scores_of(measured(*FALLING))
    assert scores == pytest.approx((
        0.0, math.log(10) / 2, math.log(1.25) / 2, math.log(80), math.log(10 / 9) / 3,
    ))  # fmt: skip
    assert scores_of([]) == ()


def test_an_error_of_zero_has_an_infinite_score() -> None:
    assert scores_of(measured((1, 0.5), (2, 0.0))) == (0.0, math.inf)
    assert choose(Rule.PAPER, measured((1, 0.5), (2, 0.0))) == 1


def test_the_paper_takes_the_highest_score_within_the_margin() -> None:
    assert choose(Rule.PAPER, measured(*FALLING)) == 3
    # 1.6 times the smallest error is out of the margin, so a small gain in error wins over a high score
    assert choose(Rule.PAPER, measured((1, 1.0), (6, 1.6e-3), (9, 1e-3))) == 2


def test_the_paper_prefers_terms_that_do_nothing_and_exact_does_not() -> None:
    # CRK35 in the paper's supplement (S3-C): the exact equation has 10 nodes, the chosen one 16
    candidates = measured((16, 2.123e-15), (10, 2.126e-15))
    assert choose(Rule.PAPER, candidates) == 0
    assert choose(Rule.EXACT, candidates) == 1


def test_exact_takes_the_smallest_at_round_off_although_another_is_far_better() -> None:
    assert choose(Rule.EXACT, measured((20, 1e-15), (14, 9e-12), (12, 1.1e-11), (3, 1e-2))) == 1


def test_exact_takes_the_smallest_within_the_margin_above_round_off() -> None:
    assert choose(Rule.EXACT, measured((20, 1e-4), (14, 1.5e-4), (12, 1.6e-4))) == 1


def test_of_two_alike_the_earlier_one_is_taken() -> None:
    alike = measured((9, 1e-3), (4, 2e-13), (4, 1e-13), (4, 1e-13))
    assert choose(Rule.EXACT, alike) == 1
    assert choose(Rule.PAPER, alike[1:]) == 1


def test_an_error_below_zero_counts_as_zero() -> None:
    assert choose(Rule.EXACT, measured((5, -0.5), (3, 0.0), (1, 1e-3))) == 1


@pytest.mark.parametrize("rule", [Rule.EXACT, Rule.PAPER])
def test_of_nothing_nothing_is_chosen(rule: Rule) -> None:
    assert choose(rule, []) is None


def test_fitness_is_no_rule_of_error_and_size() -> None:
    with pytest.raises(ValueError, match="by fitness alone"):
        choose(Rule.FITNESS, measured((1, 1.0)))


CANDIDATES = st.lists(
    st.builds(Measured, error=st.one_of(st.just(0.0), st.floats(1e-16, 10)), size=st.integers(1, 30).map(float)),
    min_size=1,
    max_size=40,
)


@given(CANDIDATES)
def test_what_is_not_on_the_front_is_beaten_by_what_is(candidates: list[Measured]) -> None:
    front = pareto_front(candidates)
    on_it = [candidates[place] for place in front]
    assert [c.size for c in on_it] == sorted({c.size for c in on_it})
    assert [c.error for c in on_it] == sorted({c.error for c in on_it}, reverse=True)
    for candidate in candidates:
        assert any(other.error <= candidate.error and other.size <= candidate.size for other in on_it)


@given(CANDIDATES)
def test_the_chosen_is_eligible_and_on_the_front_of_the_eligible(candidates: list[Measured]) -> None:
    least = min(candidate.error for candidate in candidates)
    paper, exact = choose(Rule.PAPER, candidates), choose(Rule.EXACT, candidates)
    assert paper is not None
    assert exact is not None
    assert paper in pareto_front(candidates)
    assert candidates[paper].error <= MARGIN * least
    worst = max(MARGIN * least, ROUND_OFF)
    assert candidates[exact].error <= worst
    assert all(c.size >= candidates[exact].size for c in candidates if c.error <= worst)
    assert candidates[exact].size <= candidates[paper].size


@given(CANDIDATES, st.floats(0.01, 100))
def test_the_unit_of_size_changes_nothing_for_exact(candidates: list[Measured], unit: float) -> None:
    scaled = [Measured(error=candidate.error, size=candidate.size * unit) for candidate in candidates]
    assert choose(Rule.EXACT, scaled) == choose(Rule.EXACT, candidates)


@given(CANDIDATES, CANDIDATES)
def test_later_candidates_that_are_worse_change_nothing(candidates: list[Measured], others: list[Measured]) -> None:
    worse = [Measured(error=20 + other.error, size=30 + other.size) for other in others]
    for rule in (Rule.EXACT, Rule.PAPER):
        assert choose(rule, [*candidates, *worse]) == choose(rule, candidates)
