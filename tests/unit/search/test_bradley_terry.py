"""Bradley-Terry ratings: closed forms, an independent algorithm, known strengths, and intervals over groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.bradley_terry import Estimate, QuestionOutcome, fit
from orchestrator.search.streams import stream


def asked(group: object, right: Iterable[str] = (), wrong: Iterable[str] = ()) -> QuestionOutcome:
    return QuestionOutcome(group=str(group), right=frozenset(right), wrong=frozenset(wrong))


def fitted(outcomes: Sequence[QuestionOutcome], *, resamples: int = 20, prior: float = 1.0) -> dict[str, Estimate]:
    return fit(outcomes, generator=stream(1, "bradley-terry"), resamples=resamples, prior=prior)


def ratings(outcomes: Sequence[QuestionOutcome], *, prior: float = 1.0) -> dict[str, float]:
    return {name: found.rating for name, found in fitted(outcomes, resamples=1, prior=prior).items()}


def duel(wins: int, losses: int, both_right: int, both_wrong: int) -> list[QuestionOutcome]:
    """Questions that a and b were asked."""
    pairs = [("a", "b")] * wins + [("b", "a")] * losses + [("ab", "")] * both_right + [("", "ab")] * both_wrong
    return [asked(n, right, wrong) for n, (right, wrong) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("wins", "losses", "both_right", "both_wrong", "prior"),
    [(30, 10, 0, 0, 1.0), (30, 10, 14, 6, 1.0), (5, 0, 0, 0, 1.0), (0, 4, 2, 1, 0.25), (2000, 1, 0, 0, 0.5)],
)
def test_two_agents_have_a_closed_form(wins: int, losses: int, both_right: int, both_wrong: int, prior: float) -> None:
    found = ratings(duel(wins, losses, both_right, both_wrong), prior=prior)
    half = (both_right + both_wrong + prior) / 2
    gap = 400 * math.log10((wins + half) / (losses + half))
    assert found == pytest.approx({"a": 1500 + gap / 2, "b": 1500 - gap / 2}, abs=1e-6)


def test_start_and_scale_are_those_of_the_elo_ratings() -> None:
    found = fit(duel(19, 1, 0, 0), generator=stream(1, "b"), resamples=1, prior=2.0, start=1000.0, scale=200.0)
    assert found["a"].rating == pytest.approx(1000 + 100)  # odds of 20 to 2
    assert found["b"].rating == pytest.approx(1000 - 100)


def test_a_circle_of_wins_leaves_all_equal() -> None:
    circle = [asked(n, a, b) for n in range(7) for a, b in ("ab", "bc", "ca")]
    assert ratings(circle) == pytest.approx({"a": 1500, "b": 1500, "c": 1500})


def test_every_pair_of_a_contest_is_compared() -> None:
    together = [asked(n, "a", "bc") for n in range(9)] + [asked(n, "abc") for n in range(4)]
    found = ratings(together)
    assert found["b"] == pytest.approx(found["c"])
    pairs = [asked(n, "a", "b") for n in range(9)] + [asked(n, "ab") for n in range(4)]
    pairs += [asked(n, "a", "c") for n in range(9)] + [asked(n, "ac") for n in range(4)]
    pairs += [asked(n, "bc") for n in range(13)]
    assert ratings(pairs) == pytest.approx(found)


questions = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.booleans(), min_size=1, max_size=4), min_size=1, max_size=40
)


def outcomes_of(rows: Sequence[dict[str, bool]]) -> list[QuestionOutcome]:
    return [
        asked(n % 7, (name for name in row if row[name]), (name for name in row if not row[name]))
        for n, row in enumerate(rows)
    ]


def minorised(outcomes: Sequence[QuestionOutcome], prior: float) -> dict[str, float]:
    """Strengths relative to a, by the MM algorithm of Hunter 2004, equation 3, on linked agents."""
    names = sorted({name for outcome in outcomes for name in outcome.right | outcome.wrong})
    wins = {(a, b): 0.0 for a in names for b in names}
    for outcome in outcomes:
        for a in sorted(outcome.right | outcome.wrong):
            for b in sorted((outcome.right | outcome.wrong) - {a}):
                wins[a, b] += 0.5 * (1 + (a in outcome.right) - (b in outcome.right))
    met = {pair for pair in wins if wins[pair] + wins[pair[1], pair[0]] > 0}
    table = np.array([[wins[a, b] + (prior / 2 if (a, b) in met else 0) for b in names] for a in names])
    strengths = np.ones(len(names))
    for _ in range(20_000):
        before = strengths
        strengths = table.sum(axis=1) / ((table + table.T) / (strengths[:, None] + strengths[None, :])).sum(axis=1)
        strengths = strengths / strengths.sum()
        if np.abs(np.log(strengths / before)).max() < 1e-13:
            break
    return dict(zip(names, (400 * np.log10(strengths / strengths[0])).tolist(), strict=True))


@given(questions, st.sampled_from([0.1, 1.0, 3.0]))
def test_the_fit_is_that_of_the_mm_algorithm(rows: list[dict[str, bool]], prior: float) -> None:
    hub = [{"a": True, name: right} for name in "bcde" for right in (True, False)]  # links all of them
    outcomes = outcomes_of(rows + hub)
    found = ratings(outcomes, prior=prior)
    relative = {name: rating - found["a"] for name, rating in found.items()}
    assert relative == pytest.approx(minorised(outcomes, prior), abs=1e-5)
    assert sum(found.values()) == pytest.approx(5 * 1500)


@given(questions)
def test_neither_the_order_of_questions_nor_names_matter(rows: list[dict[str, bool]]) -> None:
    found = ratings(outcomes_of(rows))
    assert ratings(outcomes_of(rows)[::-1]) == pytest.approx(found, abs=1e-6)
    renamed = [{f"z{5 - 'abcde'.index(name)}": right for name, right in row.items()} for row in rows]
    assert sorted(ratings(outcomes_of(renamed)).values()) == pytest.approx(sorted(found.values()), abs=1e-6)


@given(questions)
def test_swapping_right_and_wrong_mirrors_the_ratings(rows: list[dict[str, bool]]) -> None:
    swapped = [{name: not right for name, right in row.items()} for row in rows]
    mirrored = {name: 3000 - rating for name, rating in ratings(outcomes_of(swapped)).items()}
    assert ratings(outcomes_of(rows)) == pytest.approx(mirrored, abs=1e-6)


KNOWN = {"a": 1380.0, "b": 1450.0, "c": 1500.0, "d": 1540.0, "e": 1630.0}


def simulated(rng: np.random.Generator, matches: int) -> list[QuestionOutcome]:
    """Decided questions between random pairs, won as the known strengths say."""
    outcomes = []
    for n in range(matches):
        a, b = (str(name) for name in rng.choice(sorted(KNOWN), 2, replace=False))
        is_won = rng.random() < 1 / (1 + 10 ** ((KNOWN[b] - KNOWN[a]) / 400))
        outcomes.append(asked(n, a, b) if is_won else asked(n, b, a))
    return outcomes


def test_known_strengths_are_recovered() -> None:
    found = ratings(simulated(stream(4, "matches"), 20_000))
    assert found == pytest.approx(KNOWN, abs=12)
    assert list(found) == ["e", "d", "c", "b", "a"]


def test_intervals_hold_known_strengths_about_as_often_as_they_say() -> None:
    rng = stream(6, "matches")
    held = 0
    for _ in range(40):
        for name, found in fit(simulated(rng, 400), generator=rng, resamples=120).items():
            assert found.low is not None
            assert found.high is not None
            held += found.low <= KNOWN[name] <= found.high
    assert 0.90 <= held / 200 <= 0.99


def width(outcomes: Sequence[QuestionOutcome]) -> float:
    found = fitted(outcomes, resamples=1500)["a"]
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.rating < found.high
    return found.high - found.low


def test_copies_of_a_question_are_no_further_evidence() -> None:
    once = duel(60, 40, 30, 30)
    copies = [outcome for outcome in once for _ in range(9)]
    independent = [asked(n, outcome.right, outcome.wrong) for n, outcome in enumerate(copies)]
    assert width(copies) == pytest.approx(width(once), rel=0.1)
    assert width(copies) / width(independent) == pytest.approx(3, rel=0.1)  # the root of nine


def test_a_thin_link_makes_wide_but_finite_intervals() -> None:
    linked = [*duel(60, 40, 0, 0), asked("link", "b", "c")]  # some resamples are without the link
    found = fitted(linked, resamples=300)
    assert {one.component for one in found.values()} == {0}
    assert all(one.low is not None and math.isfinite(one.low) for one in found.values())
    assert found["c"].low != found["c"].high


def test_a_chain_of_one_sided_results_has_a_closed_form_and_finite_intervals() -> None:
    chain = [asked(a, a, b) for a, b in ("ab", "bc", "cd", "de") for _ in range(1000)]  # resamples leave links out
    found = fitted(chain, resamples=200)
    gap = 400 * math.log10(1000.5 / 0.5)
    assert {name: one.rating for name, one in found.items()} == pytest.approx(
        {name: 1500 + gap * (2 - n) for n, name in enumerate("abcde")}, abs=1e-6
    )
    for one in found.values():
        assert one.low is not None
        assert one.high is not None
        assert 1500 - 3 * gap < one.low < one.high < 1500 + 3 * gap


# Wins of one agent over another. Newton's full steps overshoot on the first; on the second the gaps are so wide that
# the equations of a step lose their digits.
LOPSIDED = [
    (
        0.01,
        "ab3 ac2 ad6 ae8618 bc2 bd23 ca701 cb949 db13 ed1674",
    ),
    (
        0.001,
        "ba46 bc140 cd10 cf115 cg25 da1 df10 eb1 ed33 fh223 gf86 he123",
    ),
]


@pytest.mark.parametrize(("prior", "results"), LOPSIDED)
def test_lopsided_results_have_a_maximum_too(prior: float, results: str) -> None:
    wins = {(pair[0], pair[1]): int(pair[2:]) for pair in results.split()}
    outcomes = [asked(f"{a}{b}", a, b) for (a, b), count in wins.items() for _ in range(count)]
    found = ratings(outcomes, prior=prior)
    for a in found:
        surplus = [0.0]  # wins less those that the ratings let expect: nothing at the maximum
        for b in found:
            won, lost = wins.get((a, b), 0), wins.get((b, a), 0)
            if won + lost:
                expected = 1 / (1 + 10 ** ((found[b] - found[a]) / 400))
                surplus.append((won + prior / 2) * (1 - expected) - (lost + prior / 2) * expected)
        assert math.fsum(surplus) == pytest.approx(0, abs=1e-6)


def test_agents_that_no_contest_links_have_components_of_their_own() -> None:
    outcomes = [
        *(asked(n, "a", "b") for n in range(3)),
        *(asked(n, "x", "yz") for n in range(8)),
        asked("alone", "k"),
        asked("alone", [], "k"),
    ]
    found = fitted(outcomes)
    assert list(found) == ["x", "y", "z", "a", "b", "k"]
    assert {name: one.component for name, one in found.items()} == {"x": 0, "y": 0, "z": 0, "a": 1, "b": 1, "k": 2}
    assert found["a"].rating + found["b"].rating == pytest.approx(3000)
    assert found["x"].rating + found["y"].rating + found["z"].rating == pytest.approx(4500)
    assert found["k"] == Estimate(rating=1500.0, low=None, high=None, component=2)


def test_a_chain_of_contests_links() -> None:
    found = fitted([asked(1, "a", "b"), asked(2, "b", "c"), asked(3, "c", "d")])
    assert {one.component for one in found.values()} == {0}
    assert list(found) == ["a", "b", "c", "d"]


def test_equal_generators_give_equal_intervals() -> None:
    outcomes = simulated(stream(4, "matches"), 50)
    assert fitted(outcomes) == fitted(outcomes)


def test_without_questions_there_are_no_ratings() -> None:
    assert fitted([]) == {}
    assert fitted([asked(1)]) == {}


def test_nobody_is_right_and_wrong_at_once() -> None:
    with pytest.raises(ValueError, match=r"\['b'\] cannot be both right and wrong on a question of group 'g'"):
        asked("g", "ab", "bc")


@pytest.mark.parametrize("name", ["prior", "scale", "resamples"])
@pytest.mark.parametrize("value", [0, -1])
def test_numbers_that_mean_nothing_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is positive"):
        fit(duel(1, 0, 0, 0), generator=stream(1, "b"), **{name: value})
