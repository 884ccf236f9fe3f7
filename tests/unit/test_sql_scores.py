"""The figures of a bench, computed by hand from a few questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bootstrap.sql.outcomes import EvolutionRecord, Method, Outcome, Right, SpentRecord
from orchestrator.bootstrap.sql.scores import (
    Share,
    difference,
    ending_counts,
    final_scores,
    flag_counts,
    pass_scores,
    repaired,
    round_scores,
    rounds_made,
    sampling_scores,
)
from orchestrator.evaluation.sql_judge import Flag, Metric
from orchestrator.search.streams import stream

ALL = frozenset(Metric)
NONE: Right = frozenset()
LOOSE = frozenset({Metric.BIRD, Metric.MULTISET, Metric.SPIDER})
"""Right but for the order of the rows."""
SPENT = SpentRecord(requests=0, input_tokens=0, cached_input_tokens=0, output_tokens=0, usd="0", lost=0)


def made(
    name: str,
    *,
    first: Sequence[Right] = (),
    evolutions: Mapping[Method, tuple[str, Sequence[Right], Sequence[Right]]] | None = None,
    answers: Mapping[Method, Right] | None = None,
    flags: frozenset[Flag] = frozenset(),
) -> Outcome:
    """A question; of an evolution its ending, its answers after each round and its later candidates."""
    return Outcome(
        id=name,
        database="d",
        first=tuple(first),
        first_calls=(),
        evolutions={
            method: EvolutionRecord(
                ending=end, answers=tuple(after), passed=tuple(after), later=tuple(later), unreadable=0, calls=()
            )
            for method, (end, after, later) in (evolutions or {}).items()
        },
        answers=answers or {},
        flags=flags,
        spent=SPENT,
    )


EASY = made(
    "easy",
    first=[ALL, ALL],
    evolutions={
        Method.EVOSQL: ("stable", [ALL], []),
        Method.SELF_EVOLUTION: ("rounds", [ALL, LOOSE], [LOOSE, NONE]),
    },
    answers={Method.EVOSQL: ALL, Method.SELF_EVOLUTION: LOOSE, Method.MAJORITY: ALL, Method.BEST_OF_K: ALL},
    flags=frozenset({Flag.BOTH_EMPTY}),
)
HARD = made(
    "hard",
    first=[NONE, LOOSE],
    evolutions={
        Method.EVOSQL: ("rounds", [NONE, ALL], [ALL, NONE]),
        Method.SELF_EVOLUTION: ("rounds", [NONE, NONE], [NONE, NONE]),
    },
    answers={Method.EVOSQL: ALL, Method.SELF_EVOLUTION: NONE, Method.MAJORITY: NONE, Method.BEST_OF_K: NONE},
)
CUT_OFF = made("cut-off")
"""The budget did not cover its first round."""
OUTCOMES = [EASY, HARD, CUT_OFF]


def test_a_share_is_of_all_questions_also_of_those_that_the_budget_did_not_reach() -> None:
    scores = final_scores(OUTCOMES, Method.EVOSQL)
    assert scores[Metric.STRICT] == Share(right=2, of=3)
    assert scores[Metric.STRICT].value == pytest.approx(2 / 3)
    loose = final_scores(OUTCOMES, Method.SELF_EVOLUTION)
    assert [loose[metric].right for metric in Metric] == [1, 1, 1, 0, 0]


def test_a_share_of_nothing_is_unknown_and_not_zero() -> None:
    assert final_scores([], Method.EVOSQL)[Metric.BIRD].value is None
    assert sampling_scores([])[Metric.BIRD].average is None
    assert difference([], Method.EVOSQL, Method.MAJORITY, Metric.BIRD, stream(0, "t")) is None


def test_the_answer_of_a_round_after_an_early_end_is_the_last_one_there_was() -> None:
    strict = [one[Metric.STRICT].right for one in round_scores(OUTCOMES, Method.EVOSQL, 3)]
    assert strict == [1, 2, 2]
    assert [one[Metric.STRICT].right for one in round_scores(OUTCOMES, Method.SELF_EVOLUTION, 3)] == [1, 0, 0]


def test_avg_pass_hat_and_pass_at_k_are_of_the_first_round() -> None:
    scores = sampling_scores(OUTCOMES)
    assert scores[Metric.STRICT].average == pytest.approx((1 + 0 + 0) / 3)
    assert scores[Metric.BIRD].average == pytest.approx((1 + 0.5 + 0) / 3)
    assert scores[Metric.BIRD].all_right == Share(right=1, of=3)
    assert scores[Metric.BIRD].any_right == Share(right=2, of=3)
    assert scores[Metric.STRICT].any_right == Share(right=1, of=3)


def test_pass_of_all_rounds_counts_later_candidates_too() -> None:
    assert pass_scores(OUTCOMES, Method.EVOSQL)[Metric.STRICT] == Share(right=2, of=3)
    assert pass_scores(OUTCOMES, Method.SELF_EVOLUTION)[Metric.STRICT] == Share(right=1, of=3)


def test_repaired_is_right_in_the_end_without_a_right_candidate_in_the_first_round() -> None:
    counts = repaired(OUTCOMES, Method.EVOSQL)
    assert counts[Metric.STRICT] == 1  # hard: no candidate had the order right
    assert counts[Metric.BIRD] == 0  # one had the rows right already
    assert repaired(OUTCOMES, Method.SELF_EVOLUTION)[Metric.STRICT] == 0


def test_endings_and_rounds_are_counted_and_what_did_not_begin_ended_for_its_budget() -> None:
    assert ending_counts(OUTCOMES, Method.EVOSQL) == {"budget": 1, "rounds": 1, "stable": 1}
    assert rounds_made(OUTCOMES, Method.EVOSQL) == (1, 2)
    assert flag_counts(OUTCOMES) == {"both_empty": 1}


def test_a_difference_is_paired_and_its_interval_is_that_of_resampled_questions() -> None:
    better = [made(f"b{n}", answers={Method.EVOSQL: ALL, Method.MAJORITY: NONE}) for n in range(6)]
    worse = [made(f"w{n}", answers={Method.EVOSQL: NONE, Method.MAJORITY: ALL}) for n in range(2)]
    same = [made(f"s{n}", answers={Method.EVOSQL: ALL, Method.MAJORITY: ALL}) for n in range(12)]
    outcomes = [*better, *worse, *same]
    found = difference(outcomes, Method.EVOSQL, Method.MAJORITY, Metric.STRICT, stream(1, "t"))
    assert found is not None
    assert found.value == pytest.approx(4 / 20)
    values = np.array([1] * 6 + [-1] * 2 + [0] * 12)
    drawn = np.random.default_rng(5).choice(values, size=(10_000, 20)).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.051)  # one step of the distribution is 1/20
    assert found.high == pytest.approx(high, abs=0.051)
    again = difference(outcomes, Method.EVOSQL, Method.MAJORITY, Metric.STRICT, stream(1, "t"))
    assert again == found


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_a_difference_lies_within_its_interval_unless_no_resample_can_move_it(pairs: list[tuple[bool, bool]]) -> None:
    outcomes = [
        made(str(n), answers={Method.EVOSQL: ALL if first else NONE, Method.MAJORITY: ALL if other else NONE})
        for n, (first, other) in enumerate(pairs)
    ]
    found = difference(outcomes, Method.EVOSQL, Method.MAJORITY, Metric.BIRD, stream(2, "t"))
    assert found is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    if len({first - other for first, other in pairs}) == 1:
        assert found.low == found.high == found.value
