"""A run from beginning to end: contests, newcomers, ratings and the champion, on databases and tools that are real."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import pytest

from orchestrator.errors import InputError, RunStateError
from orchestrator.methods.robophd.events import Event
from orchestrator.methods.robophd.members import load_members
from orchestrator.methods.robophd.naive import NAIVE, naive_package
from orchestrator.methods.robophd.questions import DataView
from orchestrator.methods.robophd.results import Ending, RunResult
from orchestrator.methods.robophd.settings import EloSettings, Settings
from orchestrator.methods.robophd.standings import contest_from_record
from orchestrator.search.ratings import Order, update
from orchestrator.search.replay import Mode
from orchestrator.search.sampling import sample_contest
from tests.evolution_lab import EvolutionLab, small, without_focus
from tests.evolution_world import World
from tests.scripted_evolver import (
    call,
    calls,
    finish,
    first_sections,
    made,
    naive_text,
    skilled_package,
)

SAME = calls(finish("as before"))
CLIMB = {
    2: [calls(call("read_package", id="naive", file="agent.json")), made("a"), SAME],
    3: [calls(call("read_package", id="p02", file="eval_instructions.md")), made("a", "b"), SAME],
    4: [made("c"), SAME],
}
"""Each newcomer reads some, writes everything, and keeps it after Deep Focus."""


@pytest.fixture(scope="module")
def lab(world: World) -> EvolutionLab:
    return EvolutionLab(world, CLIMB)


@pytest.fixture(scope="module")
def result(lab: EvolutionLab) -> RunResult:
    return lab.run()


def by_hand(result: RunResult, settings: EloSettings) -> dict[str, float]:
    ratings = {member.id: settings.start for member in result.members}
    for contest in result.contests:
        right = {name: len(found) for name, found in contest.right.items()}
        ratings = update(ratings, right, k=settings.k, scale=settings.scale, order=settings.order)
    return ratings


def test_every_iteration_makes_a_package_and_the_best_on_selection_is_the_champion(result: RunResult) -> None:
    assert result.ending is Ending.ITERATIONS
    assert [member.id for member in result.members] == [NAIVE, "p02", "p03", "p04"]
    assert [member.iteration for member in result.members] == [0, 2, 3, 4]
    assert [member.parents for member in result.members] == [(), (NAIVE,), ("p02",), ()]
    assert result.failures == {}
    assert result.selection == {"naive": (2, 8), "p02": (4, 8), "p03": (6, 8), "p04": (4, 8)}
    assert result.champion == "p03"


def test_the_tool_of_the_naive_package_really_ran_on_the_database(lab: EvolutionLab, result: RunResult) -> None:
    assert result.ending is Ending.ITERATIONS
    asked = [conversation.system for _, conversation, _ in lab.answerer.asked]
    assert any("CREATE TABLE item2 (id INTEGER PRIMARY KEY, name TEXT, price INTEGER);" in system for system in asked)


def test_a_contest_asks_everybody_the_same_questions_of_the_databases_that_the_seed_draws(
    lab: EvolutionLab, result: RunResult
) -> None:
    for number, contest in enumerate(result.contests, 1):
        sample = sample_contest(lab.world.evolve, lab.settings.seed, number, databases=3, per_database=30)
        assert contest.questions == {name: tuple(q.id for q in questions) for name, questions in sample.items()}
        assert contest.total == 12
        plan = lab.record(f"it/{number:02d}/plan")
        assert plan["questions"] == {name: [[q.id, q.group] for q in asked] for name, asked in sample.items()}
    assert len({tuple(contest.questions) for contest in result.contests}) > 1


def test_accuracies_follow_from_what_packages_can_do(result: RunResult) -> None:
    share = {"naive": 0.25, "p02": 0.5, "p03": 0.75, "p04": 0.5}
    for contest in result.contests:
        assert {name: contest.accuracy(name) for name in contest.right} == {name: share[name] for name in contest.right}


def test_newcomers_compete_at_once_beside_the_winners_of_the_contest_before(result: RunResult) -> None:
    first, *others = result.contests
    assert list(first.right) == [NAIVE]
    for before, contest in zip(result.contests, others, strict=False):
        assert f"p{contest.iteration:02d}" in contest.right
        assert before.winners <= set(contest.right)
        assert len(contest.right) == min(3, contest.iteration)
    assert result.contests[3].winners == {"p03"}


def test_ratings_are_those_of_the_contests_one_after_the_other(lab: EvolutionLab, result: RunResult) -> None:
    assert result.ratings == by_hand(result, lab.settings.elo)
    assert sum(result.ratings.values()) == pytest.approx(4 * 1500)
    ratings = dict.fromkeys(result.ratings, 1500.0)
    for contest in result.contests:  # the formula itself, without our code
        change = dict.fromkeys(ratings, 0.0)
        for a, b in combinations(contest.right, 2):
            expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
            gained = 32 * (
                (1 + (contest.accuracy(a) > contest.accuracy(b)) - (contest.accuracy(a) < contest.accuracy(b))) / 2
                - expected
            )
            change[a] += gained
            change[b] -= gained
        ratings = {name: rating + change[name] for name, rating in ratings.items()}
    assert result.ratings == pytest.approx(ratings)


def test_the_sequential_order_of_the_published_code_can_be_chosen(world: World) -> None:
    settings = small(elo=EloSettings(order=Order.SEQUENTIAL), evolver={"deep_focus": 0})
    lab = EvolutionLab(world, CLIMB, settings)
    result = lab.run()
    assert result.ratings == by_hand(result, settings.elo)
    assert result.ratings != by_hand(result, EloSettings())


def test_the_journal_has_every_contest_and_every_package(lab: EvolutionLab, result: RunResult) -> None:
    for contest in result.contests:
        record = lab.record(f"it/{contest.iteration:02d}/end")
        assert contest_from_record(contest.iteration, record) == contest
        assert record["analyses"][NAIVE if NAIVE in contest.right else "p02"]
    ratings = lab.record("it/04/end")["ratings"]
    assert ratings == {name: round(rating, 6) for name, rating in result.ratings.items()}
    assert load_members(lab.journal) == result.members
    assert lab.record("run/end") == {
        "ending": "iterations",
        "champion": "p03",
        "selected": sorted(result.selection, key=lambda name: -result.ratings[name]),
    }
    assert lab.record("it/02/evolve/end") == {"package": "p02", "failure": None, "requests": 3, "drafts": 1}


def test_an_answer_is_asked_for_once_however_often_it_is_needed(lab: EvolutionLab, result: RunResult) -> None:
    asked = [(conversation.system, request.sections["Question"]) for request, conversation, _ in lab.answerer.asked]
    assert len(asked) == len(set(asked))
    in_contests = sum(len(contest.right) * contest.total for contest in result.contests)
    assert len(asked) < in_contests + 4 * 8


def test_what_happens_is_told_in_order(lab: EvolutionLab, result: RunResult) -> None:
    told = [event for event in lab.events if event.event not in {Event.ANSWER, Event.ANALYSIS, Event.REQUEST}]
    assert [(event.event.value, event.subject) for event in told[:8]] == [
        ("iteration", "standard"),
        ("contest", "standard"),
        ("iteration", "standard"),
        ("focus", "p02.0"),
        ("package", "p02"),
        ("contest", "standard"),
        ("iteration", "standard"),
        ("focus", "p03.0"),
    ]
    assert told[-1].subject == result.champion
    answers = [event for event in lab.events if event.event is Event.ANSWER and event.iteration == 1]
    assert [(event.subject, event.done, event.total) for event in answers] == [(NAIVE, n, 12) for n in range(1, 13)]
    selected = [event for event in told if event.event is Event.SELECT]
    assert {event.subject: event.figures[event.subject] for event in selected} == {
        name: right / total for name, (right, total) in result.selection.items()
    }


def test_of_equals_on_selection_the_higher_rated_is_champion_and_then_the_older(world: World) -> None:
    twins = {"old": skilled_package("a", note="one"), "new": skilled_package("a", note="two")}
    lab = EvolutionLab(world, {}, small(iterations=1), initial=twins)
    result = lab.run()
    assert result.ratings == {"old": 1500.0, "new": 1500.0}
    assert result.champion == "new"  # both were there from the beginning, so the name decides
    lab = EvolutionLab(world, {2: [made("b")]}, without_focus(small(iterations=2)), initial={"old": twins["old"]})
    result = lab.run()
    assert result.selection["old"] == result.selection["p02"]
    assert result.ratings["old"] == result.ratings["p02"]
    assert result.champion == "old"


def test_who_was_never_in_a_contest_is_not_scored_on_selection(world: World) -> None:
    initial = {f"i{n}": skilled_package("a", note=str(n)) for n in range(5)}
    lab = EvolutionLab(world, {}, small(iterations=1), initial=initial)
    result = lab.run()
    assert set(result.selection) == set(result.contests[0].right) == {"i0", "i1", "i2"}


def test_databases_that_nothing_is_asked_of_are_not_opened(world: World) -> None:
    lab = EvolutionLab(world, {}, small(iterations=1))
    lab.data = DataView(evolve={**world.evolve, "demo/d9": ()}, select={**world.select, "demo/s9": ()})
    lab.run()
    assert set(lab.databases.opened) == {*lab.record("it/01/plan")["questions"], "demo/s0", "demo/s1"}


def test_an_analysis_over_the_token_budget_is_told_and_answers_nothing(world: World) -> None:
    long = skilled_package("a", "b", "c", note="word " * 2000)
    settings = small(iterations=2, answers={"token_budget": 1200, "corrections": 0}, evolver={"deep_focus": 0})
    lab = EvolutionLab(world, {2: [made("a")]}, settings, initial={"long": long, "naive": naive_package()})
    result = lab.run()
    assert result.selection["long"] == (0, 8)
    cells = json.loads(first_sections(lab.conversation(2))["Last iteration"])["databases"][0]["agents"]
    assert (cells["long"]["over_budget"], cells["long"]["accuracy"]) == (True, 0.0)
    assert cells["naive"]["over_budget"] is False
    assert lab.record("it/01/end")["analyses"]["long"]["demo/d2"]["over_budget"] is True


def test_a_tool_that_fails_is_made_up_for_by_a_model_and_the_record_says_so(world: World) -> None:
    files = {**skilled_package("a").tree, "tools/analyze.py": b"raise ValueError('no')\n"}
    broken = type(naive_package()).load(files)
    lab = EvolutionLab(world, {}, small(iterations=1), initial={"broken": broken})
    lab.run()
    analyses = lab.record("it/01/end")["analyses"]["broken"]
    assert {(one["source"], one["failure"]) for one in analyses.values()} == {("hybrid", "error")}
    assert lab.ledger.snapshot().by_role["hybrid"].requests == 5  # three databases of the contest, two of selection


# What is refused


def test_a_run_goes_on_only_with_what_it_was_begun_with(world: World) -> None:
    lab = EvolutionLab(world, {}, small(iterations=1))
    lab.run()
    lab.settings = small(iterations=1, elo={"k": 16})
    with pytest.raises(RunStateError, match=r"started with settings\.elo\.k '32\.0', now it is '16\.0'"):
        lab.run()
    lab.settings = small(iterations=1)
    lab.answerer.name = "fake/other"
    with pytest.raises(RunStateError, match=r"started with models\.answerer 'fake/answerer', now it is 'fake/other'"):
        lab.run()
    lab.answerer.name = "fake/answerer"
    lab.initial = {NAIVE: skilled_package("a")}
    with pytest.raises(RunStateError, match=r"started with initial\.naive 'sha256:"):
        lab.run()


def test_a_question_that_has_changed_is_noticed(world: World) -> None:
    lab = EvolutionLab(world, {}, small(iterations=1))
    lab.run()
    fewer = {name: questions[:3] for name, questions in world.evolve.items()}
    lab.data = DataView(evolve=fewer, select=world.select)
    with pytest.raises(RunStateError, match="it/01/plan"):
        lab.run()


@pytest.mark.parametrize(
    ("initial", "told"),
    [
        ({}, "at least one package"),
        ({"p02": ("a",)}, "no name for an initial package"),
        ({"Naive!": ("a",)}, "no name for an initial package"),
        ({"one": ("a",), "two": ("a",)}, "'one' and 'two' are the same"),
    ],
)
def test_packages_that_no_run_can_begin_with_are_refused(
    world: World, initial: dict[str, tuple[str, ...]], told: str
) -> None:
    lab = EvolutionLab(world, {})
    lab.initial = {name: skilled_package(*skills) for name, skills in initial.items()}
    with pytest.raises(InputError, match=told):
        lab.run()
    assert lab.journal.entries == {}


@pytest.mark.parametrize("part", ["evolve", "select"])
def test_data_without_questions_are_refused(world: World, part: str) -> None:
    lab = EvolutionLab(world, {})
    lab.data = replace(lab.data, **{part: {"demo/empty": ()}})
    with pytest.raises(InputError, match=f"no question is left for {part}"):
        lab.run()


def test_a_replay_of_what_never_began_says_so(world: World) -> None:
    lab = EvolutionLab(world, {})
    lab.mode = Mode.REPLAY
    with pytest.raises(RunStateError, match="'run' is not in the journal"):
        lab.run()


def test_the_naive_package_is_small_and_names_nothing_of_any_database() -> None:
    package = naive_package()
    assert len(naive_text("tools/analyze.py").splitlines()) <= 50
    assert len(package.instructions.splitlines()) <= 20
    assert Settings().iterations == 30
