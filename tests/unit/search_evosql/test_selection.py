"""EvoSQL's equations (9) and (10): drawing payloads, agreement, the answer; and the baselines over samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.agreement import Rules, TieBreak, agreement, answer, assess, top_k
from orchestrator.search.memory import Entry, Evidence, Memory
from orchestrator.search.repeated_sampling import average_at_k, majority, pass_at_k, pass_hat_k
from orchestrator.search.selection import draw_payload, eligible, softmax
from orchestrator.search.streams import stream
from orchestrator.search.utility import Weights

finite = st.floats(-1e6, 1e6)


def entries_of(*found: tuple[str, float], start: int = 0, round_number: int = 0) -> list[Entry[str]]:
    """(outcome, confidence) pairs as entries with keys of their own."""
    by_confidence = {-1.0: Evidence.INVALID, 0.0: Evidence.EMPTY}
    return [
        Entry(
            key=f"{round_number}-{n}",
            round=round_number,
            index=n,
            evidence=by_confidence.get(confidence, Evidence.SOUND),
            outcome=outcome,
            confidence=confidence,
            content=outcome,
        )
        for n, (outcome, confidence) in enumerate(found, start)
    ]


def memory_of(entries: Sequence[Entry[str]]) -> Memory[str]:
    memory: Memory[str] = Memory()
    memory.add(entries)
    return memory


def test_softmax_by_hand() -> None:
    assert softmax([0.0, math.log(3)], 1.0) == pytest.approx([0.25, 0.75])
    assert softmax([0.0, math.log(3)], 2.0) == pytest.approx(
        [1 / (1 + math.sqrt(3)), math.sqrt(3) / (1 + math.sqrt(3))]
    )
    assert softmax([5.0], 1.0) == pytest.approx([1.0])


def test_softmax_survives_utilities_and_temperatures_of_any_size() -> None:
    assert softmax([1e308, -1e308, 1e308], 1e-300) == pytest.approx([0.5, 0.0, 0.5])
    assert softmax([1000.0, 0.0], 1e6) == pytest.approx([0.5, 0.5], abs=1e-3)
    with np.errstate(all="raise"):
        assert softmax([3.0, 2.0], 1e-3)[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("values", "temperature"), [([], 1.0), ([math.nan], 1.0), ([math.inf, 0.0], 1.0)])
def test_softmax_refuses_what_is_not_finite(values: list[float], temperature: float) -> None:
    with pytest.raises(ValueError, match="all finite"):
        softmax(values, temperature)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_is_positive_and_finite(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature is positive"):
        softmax([1.0], temperature)


@given(st.lists(finite, min_size=1, max_size=20), st.floats(1e-3, 1e3), finite)
def test_probabilities_sum_to_one_follow_the_order_and_ignore_a_shift(
    values: list[float], temperature: float, shift: float
) -> None:
    probabilities = softmax(values, temperature)
    assert probabilities.sum() == pytest.approx(1)
    assert (probabilities >= 0).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(probabilities[order]) >= 0).all()
    small = [value / 1e6 for value in values]
    assert softmax([value + shift / 1e6 for value in small], 1.0) == pytest.approx(softmax(small, 1.0))


@given(st.lists(finite, min_size=1, max_size=10), st.data())
def test_a_permutation_of_utilities_permutes_the_probabilities(values: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(values))))
    moved = softmax([values[n] for n in order], 3.0)
    assert moved == pytest.approx(softmax(values, 3.0)[list(order)])


def test_invalid_entries_are_drawn_only_if_all_are_invalid() -> None:
    mixed = memory_of(entries_of(("error", -1.0), ("none", 0.0), ("x", 5.0), ("error", -1.0)))
    assert eligible(mixed) == (1, 2)
    assert eligible(memory_of(entries_of(("error", -1.0), ("other", -1.0)))) == (0, 1)
    drawn = {
        found.outcome
        for n in range(50)
        for found in draw_payload(mixed, [9.0, 0.0, 0.0, 9.0], stream(0, "t", n), count=4, temperature=1)
    }
    assert drawn == {"none", "x"}


def test_draws_follow_the_softmax() -> None:
    memory = memory_of(entries_of(("a", 5.0), ("b", 6.0), ("c", 7.0)))
    values = [0.0, math.log(2), math.log(5)]
    counts = Counter(
        draw_payload(memory, values, stream(1, "t", n), count=1, temperature=1)[0].outcome for n in range(4000)
    )
    assert [counts[name] / 4000 for name in "abc"] == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_copies_count_in_the_draw_and_leave_it_together() -> None:
    copy, other = entries_of(("x", 8.0), ("y", 8.0))
    twin = Entry(key=copy.key, round=0, index=2, evidence=Evidence.SOUND, outcome="x", confidence=8.0, content="twin")
    memory = memory_of([copy, other, twin])
    draws = [draw_payload(memory, [1.0] * 3, stream(2, "t", n), count=3, temperature=1) for n in range(1500)]
    assert all(len({found.key for found in drawn}) == len(drawn) == 2 for drawn in draws)
    assert sum(drawn[0].key == copy.key for drawn in draws) / 1500 == pytest.approx(2 / 3, abs=0.04)


def test_the_best_k_are_ranked_by_utility_then_round_then_index() -> None:
    entries = [*entries_of(("a", 5.0), ("b", 5.0)), *entries_of(("c", 5.0), ("d", 5.0), round_number=1)]
    values = [1.0, 1.0, 1.0, 2.0]
    assert [e.outcome for e in top_k(entries, values, 3)] == ["d", "a", "b"]
    assert [e.outcome for e in top_k(entries, values, 9, TieBreak.LATER)] == ["d", "c", "a", "b"]
    assert [e.outcome for e in top_k(entries[::-1], values[::-1], 3)] == ["d", "a", "b"]


def test_agreement_counts_confident_entries_and_divides_by_all() -> None:
    top = entries_of(("x", 9.0), ("x", 8.0), ("x", 7.9), ("y", 10.0), ("error", -1.0))
    assert agreement(top, 8.0) == ("x", 2 / 5)
    assert agreement(top, 9.5) == ("y", 1 / 5)
    assert agreement(entries_of(("x", 7.0)), 8.0) == (None, 0.0)
    assert agreement([], 8.0) == (None, 0.0)


@pytest.mark.parametrize(("confident", "stops"), [(14, False), (15, True), (16, True)])
def test_fifteen_of_sixteen_are_enough_to_stop_at_nine_tenths(confident: int, stops: bool) -> None:
    memory = memory_of(entries_of(*[("x", 8.0)] * confident, *[("x", 7.0)] * (16 - confident)))
    assert assess(memory, Rules()).is_stable is stops


def test_the_share_is_of_the_entries_there_are() -> None:
    nine_of_ten = memory_of(entries_of(*[("x", 8.0)] * 9, ("y", 3.0)))
    assert assess(nine_of_ten, Rules()).share == 0.9
    assert assess(nine_of_ten, Rules()).is_stable


def test_only_the_best_k_of_a_longer_memory_decide_about_stopping() -> None:
    memory = memory_of([*entries_of(*[("x", 2.0)] * 16), *entries_of(*[("y", 9.0)] * 16, round_number=1)])
    found = assess(memory, Rules())
    assert (found.outcome, found.share, found.is_stable, found.answer.outcome) == ("y", 1.0, True, "y")
    assert len(found.top) == 16
    assert len(found.utilities) == 32


def test_the_answer_is_the_best_entry_of_the_largest_cluster_confident_or_not() -> None:
    top = entries_of(("y", 9.5), ("x", 6.0), ("x", 5.0), ("y", 4.0), ("x", 1.0))
    assert answer(top) is top[1]


def test_of_equally_large_clusters_the_better_ranked_one_gives_the_answer() -> None:
    top = entries_of(("y", 9.0), ("x", 8.0), ("x", 8.0), ("y", 8.0))
    assert answer(top) is top[0]


def test_invalid_entries_answer_only_if_there_are_no_others() -> None:
    top = entries_of(("error", -1.0), ("error", -1.0), ("none", 0.0))
    assert answer(top) is top[2]
    assert answer(top[:2]) is top[0]
    with pytest.raises(ValueError, match="no candidate"):
        answer([])


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([-1.0, 0.0, 3.0, 8.0, 10.0])), min_size=1, max_size=24),
    st.sampled_from(TieBreak),
)
def test_an_assessment_holds_together(found: list[tuple[str, float]], tie_break: TieBreak) -> None:
    memory = memory_of(entries_of(*((f"{o}{c < 0}{c == 0}", c) for o, c in found)))
    rules = Rules(tie_break=tie_break, top=8, weights=Weights())
    assessed = assess(memory, rules)
    assert len(assessed.top) == min(8, len(memory))
    assert assessed.answer in assessed.top
    assert (assessed.answer.evidence is Evidence.INVALID) == all(e.evidence is Evidence.INVALID for e in assessed.top)
    assert 0 <= assessed.share <= 1
    assert assessed.is_stable == (assessed.share >= 0.9)
    best = max(assessed.utilities)
    assert assessed.utilities[memory.entries.index(assessed.top[0])] == best


def test_majority_is_the_first_of_the_largest_cluster_and_ties_go_to_the_lowest_place() -> None:
    assert majority(["a", "b", None, "b"]) == 1
    assert majority(["a", "b", "b", "a"]) == 0
    assert majority([None, None, "b", "a"]) == 2
    assert majority([None, None]) == 0
    with pytest.raises(ValueError, match="at least one sample"):
        majority([])


def test_measures_over_samples_by_hand() -> None:
    some, every, none = [True, False, False, True], [True, True], [False]
    assert [average_at_k(c) for c in (some, every, none)] == [0.5, 1.0, 0.0]
    assert [pass_at_k(c) for c in (some, every, none, [])] == [True, True, False, False]
    assert [pass_hat_k(c) for c in (some, every, none, [])] == [False, True, False, False]
    with pytest.raises(ValueError, match="at least one sample"):
        average_at_k([])


@given(st.lists(st.booleans(), min_size=1, max_size=16))
def test_no_sample_is_never_better_than_all_and_the_average_lies_between(correct: list[bool]) -> None:
    assert pass_hat_k(correct) <= average_at_k(correct) <= pass_at_k(correct)


@given(st.lists(st.none() | st.sampled_from("abc"), min_size=1, max_size=16))
def test_a_majority_has_the_largest_cluster(outcomes: list[str | None]) -> None:
    chosen = outcomes[majority(outcomes)]
    valid = [outcome for outcome in outcomes if outcome is not None]
    assert (chosen is None) == (not valid)
    if valid:
        assert valid.count(chosen) == max(map(valid.count, valid))
        assert outcomes.index(chosen) == majority(outcomes)
