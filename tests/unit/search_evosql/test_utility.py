"""EvoSQL's equations (5) to (8), computed by hand and as properties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.memory import Entry, Evidence, Memory
from orchestrator.search.utility import (
    Weights,
    confidence_of,
    consistency_bonus,
    inherited_raw_score,
    raw_score,
    supporters,
    utilities,
)

CASE_STUDY = Weights(confidence=0.5, consistency=0.02)
scores = st.floats(0, 10)
weights = st.builds(
    Weights,
    discount=st.floats(0.1, 1),
    consistency=st.floats(0, 2),
    threshold=st.floats(0, 10),
    confidence=st.floats(0, 2),
    bonus_cap=st.none() | st.floats(0, 2),
)


def entry(
    confidence: float,
    *,
    key: str = "a",
    round: int = 0,  # noqa: A002 - the field's name
    index: int = 0,
    outcome: str = "r",
    evidence: Evidence | None = None,
) -> Entry[str]:
    by_confidence = {-1.0: Evidence.INVALID, 0.0: Evidence.EMPTY}
    return Entry(
        key=key,
        round=round,
        index=index,
        evidence=evidence or by_confidence.get(confidence, Evidence.SOUND),
        outcome=outcome,
        confidence=confidence,
        content=key,
    )


def memory_of(*entries: Entry[str]) -> Memory[str]:
    memory: Memory[str] = Memory()
    memory.add(entries)
    return memory


def rounds(*confidences: list[float]) -> Memory[str]:
    """A memory in which every valid entry of a confidence has one result, and no two entries are the same."""
    return memory_of(
        *(
            entry(c, key=f"{t}-{i}", round=t, index=i, outcome=f"r{c}")
            for t, of_round in enumerate(confidences)
            for i, c in enumerate(of_round)
        )
    )


memories = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), scores, st.sampled_from(Evidence)), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
).map(
    lambda found: memory_of(
        *(
            entry(confidence_of(e, c), key=k, round=t, index=i, outcome=k.replace("d", "c"), evidence=e)
            for t, of_round in enumerate(found)
            for i, (k, c, e) in enumerate(of_round)
        )
    )
)


def test_the_raw_score_is_the_mean_of_the_rubric_or_the_single_score() -> None:
    assert raw_score([7.0]) == 7.0
    assert raw_score([10, 8, 6, 4]) == 7.0
    for wrong in ([], [1.0, math.nan]):
        with pytest.raises(ValueError, match="at least one score"):
            raw_score(wrong)


def test_execution_overrides_the_critic() -> None:
    assert [confidence_of(evidence, 9.5) for evidence in Evidence] == [-1.0, 0.0, 9.5]


def test_the_utility_by_hand() -> None:
    memory = memory_of(
        entry(9.0, key="a", outcome="x"),
        entry(8.0, key="b", index=1, outcome="x"),
        entry(6.0, key="c", index=2, outcome="x"),
        entry(-1.0, key="d", index=3, outcome="error"),
        entry(0.0, key="e", index=4, outcome="none"),
        entry(10.0, key="f", round=1, outcome="y"),
    )
    assert supporters(memory, 8.0) == {"x": 2, "y": 1}
    assert utilities(memory, Weights()) == pytest.approx(
        [
            0.9 * 9 + 0.3 * math.log(3),
            0.9 * 8 + 0.3 * math.log(3),
            0.9 * 6 + 0.3 * math.log(3),  # it agrees with two confident ones without being one
            -0.9,
            0.0,
            10 + 0.3 * math.log(2),
        ]
    )


def test_the_case_study_of_table_7_comes_out_with_its_own_weights() -> None:
    first = rounds([-1.0] * 16)
    assert utilities(first, CASE_STUDY) == (-1.0,) * 16
    second = rounds([-1.0] * 16, [10.0] * 11 + [4.0] + [-1.0] * 4)
    assert max(utilities(second, CASE_STUDY)) == pytest.approx(5.0497, abs=5e-5)
    third = rounds([-1.0] * 16, [10.0] * 11 + [4.0] + [-1.0] * 4, [10.0] * 14 + [-1.0] * 2)
    assert supporters(third, 8.0) == {"r10.0": 25}
    assert max(utilities(third, CASE_STUDY)) == pytest.approx(5.0652, abs=5e-5)


def test_every_copy_of_a_candidate_is_as_fresh_as_the_latest_and_keeps_its_own_confidence() -> None:
    memory = memory_of(entry(6.0), entry(4.0, key="b", index=1), entry(7.0, round=1), entry(5.0, key="c", round=2))
    plain = Weights(consistency=0.0)
    assert utilities(memory, plain) == pytest.approx([0.9 * 6, 0.81 * 4, 0.9 * 7, 5])


def test_a_weight_scales_what_the_critic_said_and_nothing_else() -> None:
    memory = memory_of(entry(-1.0), entry(0.0, key="b", index=1), entry(8.0, key="c", index=2, evidence=Evidence.SOUND))
    assert utilities(memory, Weights(confidence=0.5, consistency=0)) == (-1.0, 0.0, 4.0)


def test_a_cap_bounds_the_bonus() -> None:
    assert consistency_bonus(0, Weights()) == 0
    assert consistency_bonus(15, Weights()) == pytest.approx(0.3 * math.log(16))
    assert consistency_bonus(15, Weights(bonus_cap=0.5)) == 0.5
    assert consistency_bonus(1, Weights(bonus_cap=0.5)) == pytest.approx(0.3 * math.log(2))


@pytest.mark.parametrize(
    "wrong", [{"discount": 0.0}, {"discount": 1.1}, {"consistency": -0.1}, {"confidence": math.inf}, {"bonus_cap": -1}]
)
def test_weights_out_of_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="weights lie from 0 on"):
        Weights(**wrong)


def test_a_memory_only_grows() -> None:
    memory = memory_of(entry(5.0), entry(5.0, round=1))
    for late in (entry(5.0, index=1), entry(5.0, round=1)):
        with pytest.raises(ValueError, match="a memory only grows"):
            memory.add([late])
    with pytest.raises(ValueError, match="confidence is nan"):
        memory.add([entry(math.nan, round=2)])
    assert (len(memory), memory.now, memory.latest_round("a"), Memory().now) == (2, 1, 1, -1)


def test_who_was_not_judged_inherits_from_the_same_query_then_from_the_same_result() -> None:
    memory = memory_of(entry(9.0), entry(3.0, key="b", index=1), entry(7.0, round=1), entry(-1.0, key="z", round=2))
    assert inherited_raw_score(memory, "a", "r", default=5) == 7.0
    assert inherited_raw_score(memory, "new", "r", default=5) == pytest.approx((9 + 3 + 7) / 3)
    assert inherited_raw_score(memory, "new", "other", default=5) == 5
    assert inherited_raw_score(memory, "z", "other", default=5) == 5  # an invalid one was not judged


@given(memories, weights, scores)
def test_a_confident_entry_that_agrees_lowers_nobodys_utility(
    memory: Memory[str], constants: Weights, score: float
) -> None:
    last = memory.entries[-1]
    confident = max(score, constants.threshold)
    before = utilities(memory, constants)
    memory.add([entry(confident, key="new", round=last.round, index=last.index + 1, evidence=Evidence.SOUND)])
    after = utilities(memory, constants)
    assert all(b <= a for b, a in zip(before, after[:-1], strict=True))


@given(memories, weights)
def test_utilities_are_finite_and_age_takes_at_most_the_confidence(memory: Memory[str], constants: Weights) -> None:
    for value, found in zip(utilities(memory, constants), memory.entries, strict=True):
        assert math.isfinite(value)
        most = constants.consistency * math.log1p(len(memory)) + max(found.confidence, 0) * max(constants.confidence, 1)
        assert -1 <= value <= most + 1e-9


@given(memories, st.data())
def test_within_a_round_the_order_of_the_candidates_changes_no_utility(memory: Memory[str], data: Any) -> None:
    first = [e for e in memory.entries if e.round == 0]
    order = data.draw(st.permutations(range(len(first))))
    shuffled = memory_of(
        *(replace(first[place], index=n) for n, place in enumerate(order)),
        *(e for e in memory.entries if e.round > 0),
    )
    original, moved = utilities(memory, Weights()), utilities(shuffled, Weights())
    assert [original[place] for place in order] == list(moved[: len(first)])
    assert original[len(first) :] == moved[len(first) :]
