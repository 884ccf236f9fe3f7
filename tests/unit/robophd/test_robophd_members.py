"""The population as a journal keeps it, and the standings that follow from contests, whatever comes in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.members import Member, load_member, load_members, member_key, member_record
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.schedule import plan_iteration
from orchestrator.methods.robophd.settings import EloSettings, Settings
from orchestrator.methods.robophd.standings import ContestResult, Standings, contest_from_record, contest_record
from tests.memory_journal import MemoryJournal
from tests.scripted_evolver import skilled_package

MEMBER = Member(id="p02", package=skilled_package("a"), iteration=2, parents=("naive",), description="one line")
NAMES = ("a", "b", "c", "d")
MEMBERS = [Member(id=name, package=MEMBER.package, iteration=number) for number, name in enumerate(NAMES)]


def kept(**changes: Any) -> MemoryJournal:
    journal = MemoryJournal()
    journal.put(member_key("p02"), {**member_record(MEMBER, journal), **changes})
    return journal


def test_a_package_comes_back_as_it_was() -> None:
    assert load_member("p02", kept()) == MEMBER
    assert load_members(kept(written_by="a later version")) == (MEMBER,)


def test_a_package_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(RunStateError, match="the run has no package 'p09'; there are p02"):
        load_member("p09", kept())
    with pytest.raises(RunStateError, match="there are none yet"):
        load_member("p09", MemoryJournal())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"digest": "sha256:" + "0" * 64}, "was recorded with digest sha256:0000.*, its files give"),
        ({"digest": "x"}, "the record of 'package/p02' is damaged"),
        ({"iteration": "2"}, "damaged"),
        ({"parents": None}, "damaged"),
        ({"files": {}}, "damaged.*has no 'agent.json'"),
    ],
)
def test_a_damaged_record_is_said_to_be_one(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RunStateError, match=told):
        load_member("p02", kept(**changes))


@st.composite
def contests(draw: st.DrawFn) -> list[ContestResult]:
    """Some contests of the same four packages."""
    found = []
    for iteration in range(1, draw(st.integers(1, 4)) + 1):
        questions = {"x": ("x1", "x2"), "y": ("y1",)}
        asked = [question for ids in questions.values() for question in ids]
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
        right = {name: frozenset(draw(st.lists(st.sampled_from(asked)))) for name in names}
        found.append(ContestResult(iteration=iteration, kind="standard", questions=questions, right=right))
    return found


def standings(held: list[ContestResult]) -> Standings:
    made = Standings(elo=EloSettings())
    for member in MEMBERS:
        made.join(member)
    for contest in held:
        made.apply(contest)
    return made


@given(contests())
def test_a_contest_comes_back_from_its_record_as_it_was(held: list[ContestResult]) -> None:
    for contest in held:
        record = json.loads(json.dumps(contest_record(contest, {})))
        assert contest_from_record(contest.iteration, record) == contest
        assert list(contest_from_record(contest.iteration, record).right) == list(contest.right)


@given(contests())
def test_standings_count_what_was_asked_and_conserve_the_sum_of_ratings(held: list[ContestResult]) -> None:
    table = standings(held).table
    assert sum(row.rating for row in table) == pytest.approx(4 * 1500)
    assert sum(row.tests for row in table) == sum(len(contest.right) for contest in held)
    assert sum(row.questions for row in table) == sum(3 * len(contest.right) for contest in held)
    ranks = [(-row.rating, row.member.iteration) for row in table]
    assert ranks == sorted(ranks)
    for row in table:
        assert (row.accuracy is None) == (row.tests == 0)


@given(contests(), st.randoms(use_true_random=False))
def test_the_order_in_which_competitors_stand_changes_no_rating(held: list[ContestResult], chance: Any) -> None:
    shuffled = []
    for contest in held:
        names = list(contest.right)
        chance.shuffle(names)
        right = {name: contest.right[name] for name in names}
        shuffled.append(
            ContestResult(iteration=contest.iteration, kind="standard", questions=contest.questions, right=right)
        )
    assert standings(shuffled).ratings == standings(held).ratings


@given(st.permutations([f"d{n}" for n in range(6)]), st.integers(0, 2**40), st.integers(1, 40))
def test_a_plan_does_not_depend_on_the_order_of_databases(names: list[str], seed: int, iteration: int) -> None:
    def evolve(ordered: list[str]) -> dict[str, tuple[QuestionView, ...]]:
        return {n: tuple(QuestionView(id=f"{n}.{q}", database=n, text="?") for q in range(3)) for n in ordered}

    settings = Settings(seed=seed, databases_per_contest=2, questions_per_database=2)
    plan = plan_iteration(settings, evolve(names), iteration)
    assert plan.record == plan_iteration(settings, evolve(sorted(names)), iteration).record
    assert list(plan.sample) == sorted(plan.sample)
    assert [len(questions) for questions in plan.sample.values()] == [2, 2]
