"""Kinds of rounds, who competes, and the champion: each rule by hand, and what holds of every choice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.tournament import RoundKind, Standing, champion, choose_competitors, round_kind, winners


def archive(**agents: tuple[float, int, int]) -> dict[str, Standing]:
    """Agents by name: rating, tests and place in the order of making."""
    return {name: Standing(rating=rating, tests=tests, born=born) for name, (rating, tests, born) in agents.items()}


def chosen(
    standings: Mapping[str, Standing],
    *,
    kind: RoundKind = RoundKind.STANDARD,
    slots: int = 3,
    newcomer: str | None = None,
    winners: Collection[str] = (),
    iteration: int = 7,
) -> tuple[str, ...]:
    return choose_competitors(
        kind,
        standings,
        slots=slots,
        start=1500.0,
        seed=3,
        iteration=iteration,
        newcomer=newcomer,
        pending_winners=winners,
    )


def kinds(count: int, *, late_stage: int, challenger: float, none: float, seed: int = 1) -> list[RoundKind]:
    return [
        round_kind(seed, iteration, late_stage=late_stage, challenger=challenger, none=none)
        for iteration in range(1, count + 1)
    ]


def test_every_round_before_the_late_stage_is_a_standard_one() -> None:
    drawn = kinds(40, late_stage=12, challenger=0.5, none=0.5)
    assert drawn[:11] == [RoundKind.STANDARD] * 11
    assert set(drawn[11:]) == {RoundKind.CHALLENGER, RoundKind.NONE}


def test_late_rounds_are_of_each_kind_as_often_as_their_probability_says() -> None:
    counts = Counter(kinds(20_000, late_stage=1, challenger=0.15, none=0.15))
    assert counts[RoundKind.STANDARD] / 20_000 == pytest.approx(0.70, abs=0.01)
    assert counts[RoundKind.CHALLENGER] / 20_000 == pytest.approx(0.15, abs=0.01)
    assert counts[RoundKind.NONE] / 20_000 == pytest.approx(0.15, abs=0.01)


def test_a_probability_of_one_or_zero_is_certain() -> None:
    assert set(kinds(200, late_stage=1, challenger=1, none=0)) == {RoundKind.CHALLENGER}
    assert set(kinds(200, late_stage=1, challenger=0, none=1)) == {RoundKind.NONE}
    assert set(kinds(200, late_stage=1, challenger=0, none=0)) == {RoundKind.STANDARD}


def test_the_kind_follows_from_seed_and_iteration_alone() -> None:
    one = kinds(100, late_stage=2, challenger=0.3, none=0.3)
    assert one == kinds(100, late_stage=2, challenger=0.3, none=0.3)
    assert one != kinds(100, late_stage=2, challenger=0.3, none=0.3, seed=2)


def test_kinds_and_draws_are_the_same_on_every_machine() -> None:
    late = kinds(20, late_stage=12, challenger=0.15, none=0.15, seed=0)[11:]
    assert [kind.value[0] for kind in late] == list("sncsssscc")
    agents = archive(**{f"p{n:02}": (1500.0 + n, 1, n) for n in range(1, 8)})
    drawn = choose_competitors(RoundKind.NONE, agents, slots=4, start=1500.0, seed=0, iteration=1)
    assert drawn == ("p03", "p02", "p01", "p07")


@pytest.mark.parametrize(("challenger", "none"), [(-0.1, 0.2), (0.2, -0.1), (0.6, 0.5), (math.nan, 0.1)])
def test_probabilities_that_are_none_are_refused(challenger: float, none: float) -> None:
    with pytest.raises(ValueError, match="probabilities are at least 0"):
        round_kind(1, 20, late_stage=12, challenger=challenger, none=none)


def test_only_standard_rounds_make_an_agent() -> None:
    assert [kind for kind in RoundKind if kind.has_evolution] == [RoundKind.STANDARD]


def test_winners_are_all_who_share_the_best_count() -> None:
    assert winners({"a": 62, "b": 65, "c": 65}) == {"b", "c"}
    assert winners({"a": 0, "b": 0}) == {"a", "b"}
    assert winners({}) == frozenset()


MANY = archive(
    naive=(1480.0, 4, 1),
    p02=(1560.0, 3, 2),
    p03=(1600.0, 2, 3),
    p04=(1530.0, 2, 4),
    p05=(1490.0, 1, 5),
    p06=(1500.0, 0, 6),
)


def test_the_winner_the_newcomer_and_one_of_the_two_best_others_compete() -> None:
    tested = {**MANY, "p05": Standing(rating=1490.0, tests=1, born=5)}
    drawn = Counter(chosen(tested, newcomer="p06", winners=["p05"], iteration=n) for n in range(2, 202))
    assert {trio[:2] for trio in drawn} == {("p05", "p06")}
    thirds = Counter({trio[2]: count for trio, count in drawn.items()})
    assert set(thirds) == {"p03", "p02"}
    assert min(thirds.values()) > 70  # of 200: evenly


def test_two_free_slots_are_drawn_from_the_four_best_others() -> None:
    tested = {name: standing for name, standing in MANY.items() if standing.tests} | archive(p07=(1700.0, 0, 7))
    pairs = {frozenset(chosen(tested, newcomer="p07", iteration=n)[1:]) for n in range(2, 202)}
    best = ["p03", "p02", "p04", "p05"]
    assert pairs == {frozenset({a, b}) for a in best for b in best if a < b}


def test_agents_never_tested_come_before_the_draw() -> None:
    standings = {**MANY, "p07": Standing(rating=1500.0, tests=0, born=7)}
    assert chosen(standings, newcomer="p07", winners=["p02"]) == ("p02", "p07", "p06")


def test_surplus_agents_never_tested_stay_out_by_rating_then_by_age() -> None:
    standings = archive(old=(1500.0, 0, 1), new=(1500.0, 0, 5), mid=(1500.0, 0, 3), high=(1510.0, 0, 6))
    assert chosen(standings, slots=3) == ("high", "old", "mid")


def test_surplus_winners_stay_out_by_rating_then_by_age() -> None:
    tied = ["naive", "p02", "p03", "p04"]
    assert chosen(MANY, newcomer="p06", winners=tied) == ("p03", "p02", "p06")
    equal = archive(a=(1550.0, 2, 4), b=(1550.0, 2, 2), c=(1550.0, 2, 3), n=(1500.0, 0, 5))
    assert chosen(equal, newcomer="n", winners=["a", "b", "c"]) == ("b", "c", "n")


def test_all_tied_winners_compete_where_there_is_room() -> None:
    assert chosen(MANY, newcomer="p06", winners=["naive", "p05"]) == ("p05", "naive", "p06")


def test_without_a_newcomer_its_slot_is_free() -> None:
    tested = {name: standing for name, standing in MANY.items() if standing.tests}
    assert chosen(tested, winners=["naive", "p02", "p05", "p04"]) == ("p02", "p04", "p05")
    trio = chosen(tested, winners=["naive"])
    assert trio[0] == "naive"
    assert len(trio) == 3


def test_the_newcomer_has_the_only_slot_there_is() -> None:
    assert chosen(MANY, slots=1, newcomer="p06", winners=["p02"]) == ("p06",)


def test_a_newcomer_among_the_winners_competes_once() -> None:
    found = chosen(MANY, newcomer="p06", winners=["p06", "p02"])
    assert found[:2] == ("p02", "p06")
    assert len(set(found)) == 3


def test_fewer_agents_than_slots_all_compete() -> None:
    alone = archive(naive=(1500.0, 0, 1))
    for kind in RoundKind:
        assert chosen(alone, kind=kind) == ("naive",)
        assert sorted(chosen(MANY, kind=kind, slots=9)) == sorted(MANY)
        assert chosen({}, kind=kind) == ()


def test_challengers_are_the_least_tested_above_the_start_rating() -> None:
    standings = archive(
        often=(1700.0, 9, 1),
        twice_low=(1510.0, 2, 2),
        twice_high=(1520.0, 2, 3),
        once=(1500.1, 1, 4),
        at_start=(1500.0, 0, 5),
        below=(1400.0, 1, 6),
    )
    found = chosen(standings, kind=RoundKind.CHALLENGER, slots=4, winners=["below"])
    assert found == ("once", "twice_high", "twice_low", "often")
    assert chosen(standings, kind=RoundKind.CHALLENGER, slots=2) == ("once", "twice_high")


def test_equal_challengers_are_taken_by_age() -> None:
    standings = archive(b=(1550.0, 1, 3), a=(1550.0, 1, 9), c=(1550.0, 1, 2))
    assert chosen(standings, kind=RoundKind.CHALLENGER, slots=2) == ("c", "b")


def test_missing_challengers_are_made_up_by_rating() -> None:
    standings = archive(up=(1510.0, 5, 1), at=(1500.0, 0, 2), low=(1450.0, 1, 3), lower=(1400.0, 0, 4))
    assert chosen(standings, kind=RoundKind.CHALLENGER, slots=3) == ("up", "at", "low")


def test_none_rounds_draw_evenly_from_all() -> None:
    counts = Counter(
        name for n in range(600) for name in chosen(MANY, kind=RoundKind.NONE, slots=4, iteration=n, winners=["p02"])
    )
    assert set(counts) == set(MANY)
    assert all(count == pytest.approx(400, abs=50) for count in counts.values())


@pytest.mark.parametrize("kind", [RoundKind.CHALLENGER, RoundKind.NONE])
def test_rounds_without_evolution_know_no_newcomer(kind: RoundKind) -> None:
    with pytest.raises(ValueError, match=f"a {kind} round makes no agent, got the newcomer 'p06'"):
        chosen(MANY, kind=kind, newcomer="p06")


def test_agents_without_a_standing_are_an_error() -> None:
    with pytest.raises(ValueError, match="'p99' has no standing"):
        chosen(MANY, newcomer="p99")
    with pytest.raises(ValueError, match="'p98' has no standing"):
        chosen(MANY, winners=["p02", "p98"])
    with pytest.raises(ValueError, match="at least one slot, got 0"):
        chosen(MANY, slots=0)
    with pytest.raises(ValueError, match="a rating is finite, got nan"):
        archive(a=(math.nan, 0, 1))


standings_of_any_kind = st.dictionaries(
    st.sampled_from([f"p{n:02}" for n in range(12)]),
    st.builds(
        Standing,
        rating=st.sampled_from([1440.0, 1500.0, 1516.0]) | st.floats(1000, 2000),
        tests=st.integers(0, 3),
        born=st.integers(1, 5),
    ),
    min_size=1,
)


@st.composite
def choices(draw: st.DrawFn) -> tuple[RoundKind, dict[str, Standing], int, str | None, list[str]]:
    standings = draw(standings_of_any_kind)
    members = st.sampled_from(sorted(standings))
    kind = draw(st.sampled_from(list(RoundKind)))
    newcomer = draw(st.none() | members) if kind.has_evolution else None
    return kind, standings, draw(st.integers(1, 6)), newcomer, draw(st.lists(members, unique=True, max_size=4))


@given(choices(), st.randoms(use_true_random=False))
def test_every_choice_keeps_the_rules(
    choice: tuple[RoundKind, dict[str, Standing], int, str | None, list[str]], shuffler: Random
) -> None:
    kind, standings, slots, newcomer, pending = choice
    found = chosen(standings, kind=kind, slots=slots, newcomer=newcomer, winners=pending)
    assert len(set(found)) == len(found) == min(slots, len(standings))
    assert set(found) <= set(standings)
    assert newcomer is None or newcomer in found
    if kind is RoundKind.STANDARD:
        room = slots - (newcomer is not None and newcomer not in pending)
        assert len(set(pending) & set(found)) >= min(len(pending), room)
        unlucky = {name for name in standings if standings[name].tests == 0} - set(found)
        assert not unlucky or set(found) <= {*pending, newcomer} | {n for n in found if standings[n].tests == 0}
    members, again = list(standings.items()), list(pending)
    shuffler.shuffle(members)
    shuffler.shuffle(again)
    assert chosen(dict(members), kind=kind, slots=slots, newcomer=newcomer, winners=again) == found


def test_the_champion_has_the_highest_accuracy_as_an_exact_fraction() -> None:
    ratings = {"a": 1400.0, "b": 1600.0}
    born = {"a": 2, "b": 1}
    assert champion({"a": (61, 90), "b": (60, 90)}, ratings, born) == "a"
    assert champion({"a": (2, 3), "b": (60, 90)}, ratings, born) == "b"  # equal, so by rating
    large = 10**17  # as floats both would be 1 / 3
    assert champion({"a": (large + 1, 3 * large), "b": (large, 3 * large)}, ratings, born) == "a"


def test_equally_accurate_agents_go_by_rating_then_by_age() -> None:
    scores = {"a": (60, 90), "b": (60, 90), "c": (60, 90)}
    born = {"a": 3, "b": 2, "c": 1}
    assert champion(scores, {"a": 1500.0, "b": 1520.0, "c": 1510.0}, born) == "b"
    assert champion(scores, {"a": 1520.0, "b": 1520.0, "c": 1510.0}, born) == "b"
    assert champion(scores, dict.fromkeys("abc", 1500.0), dict.fromkeys("abc", 1)) == "a"
    backwards = dict(reversed(scores.items()))
    assert champion(backwards, dict.fromkeys("abc", 1500.0), dict.fromkeys("abc", 1)) == "a"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "no agent to choose"),
        ({"a": (1, 0)}, "'a' cannot have 1 of 0"),
        ({"a": (0, 0)}, "'a' cannot have 0 of 0"),
        ({"a": (4, 3)}, "'a' cannot have 4 of 3"),
        ({"a": (-1, 3)}, "'a' cannot have -1 of 3"),
        ({"b": (1, 3)}, "'b' has a score, but no finite rating"),
        ({"c": (1, 3)}, "'c' has a score, but no finite rating"),
        ({"d": (1, 3)}, "'d' has a score, but no finite rating"),
    ],
)
def test_a_champion_needs_scores_ratings_and_ages(scores: dict[str, tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        champion(scores, {"a": 1500.0, "c": 1500.0, "d": math.nan}, {"a": 1, "b": 2, "d": 3})
