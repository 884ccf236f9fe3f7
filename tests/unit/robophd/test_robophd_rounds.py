"""Rounds of other kinds, strategies by weight, and branches that go on from another run's iterations."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.errors import InputError
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.schedule import draw_strategy, plan_iteration
from orchestrator.methods.robophd.settings import ScheduleSettings, Settings, Strategy
from orchestrator.methods.robophd.standings import Standings
from orchestrator.search.streams import stream
from orchestrator.search.tournament import RoundKind, choose_competitors
from tests.evolution_lab import EvolutionLab, small, without_focus
from tests.evolution_world import World
from tests.memory_journal import MemoryJournal
from tests.scripted_evolver import iteration_of, made, skilled_package


def exploring(kind: str, **schedule: Any) -> Settings:
    """From iteration 3 on, every round is of this kind."""
    fields = {"late_stage": 3, "challenger": 0.0, "none": 0.0, kind: 1.0, **schedule}
    return without_focus(small(iterations=4, schedule=fields))


def many(count: int) -> dict[str, Any]:
    return {f"i{n}": skilled_package("a", note=str(n)) for n in range(count)}


@pytest.mark.parametrize("kind", ["challenger", "none"])
def test_late_rounds_without_evolution_make_nothing_and_take_four(world: World, kind: str) -> None:
    lab = EvolutionLab(world, {n: [made("b", note=str(n))] for n in (2, 3, 4)}, exploring(kind), initial=many(5))
    result = lab.run()
    assert [contest.kind for contest in result.contests] == ["standard", "standard", kind, kind]
    assert [len(contest.right) for contest in result.contests] == [3, 3, 4, 4]
    assert [member.id for member in result.members][-1] == "p02"
    assert {len(lab.evolver.conversations)} == {1}
    for iteration in (3, 4):
        assert lab.record(f"it/{iteration:02d}/plan")["strategy"] is None
        assert lab.journal.get(f"it/{iteration:02d}/evolve/end") is None


def test_competitors_are_those_that_the_standings_before_their_contest_give(world: World) -> None:
    turns = {
        n: [made(*skills)] for n, skills in ((2, ["b"]), (3, ["a", "b"]), (4, ["c"]), (5, ["a", "b", "c"]), (6, []))
    }
    lab = EvolutionLab(world, turns, without_focus(small(iterations=6)), initial=many(3))
    result = lab.run()
    table = Standings(elo=lab.settings.elo)
    initial, made_later = result.members[:3], result.members[3:]
    for member in initial:
        table.join(member)
    table.apply(result.contests[0])
    for member in made_later:
        table.join(member)
        contest = result.contests[member.iteration - 1]
        assert tuple(contest.right) == choose_competitors(
            RoundKind.STANDARD,
            table.for_choice,
            slots=3,
            start=1500.0,
            seed=lab.settings.seed,
            iteration=member.iteration,
            newcomer=member.id,
            pending_winners=table.contests[-1].winners,
        )
        table.apply(contest)
    assert len({contest.winners for contest in result.contests}) > 2


def test_challengers_are_those_over_the_start_rating_that_were_tested_least(world: World) -> None:
    initial = {**many(3), "best": skilled_package("a", "b", "c")}
    lab = EvolutionLab(
        world, {2: [made("b", "c", note="x")]}, exploring("challenger", exploration_agents=2), initial=initial
    )
    result = lab.run()
    ratings = lab.record("it/02/end")["ratings"]
    tests = Counter(name for contest in result.contests[:2] for name in contest.right)
    above = sorted((n for n in ratings if ratings[n] > 1500), key=lambda n: (tests[n], -ratings[n]))
    assert len(above) >= 1
    assert list(result.contests[2].right)[: len(above)] == above[:2]


def test_before_the_late_stage_every_round_is_a_standard_one() -> None:
    settings = small(schedule={"late_stage": 5, "challenger": 0.5, "none": 0.5})
    evolve = {"d": (question("q"),)}
    kinds = [plan_iteration(settings, evolve, n).kind for n in range(1, 60)]
    assert set(kinds[:4]) == {RoundKind.STANDARD}
    assert set(kinds[4:]) == {RoundKind.CHALLENGER, RoundKind.NONE}
    slots = {plan_iteration(settings, evolve, n).kind: plan_iteration(settings, evolve, n).slots for n in range(1, 60)}
    assert slots == {RoundKind.STANDARD: 3, RoundKind.CHALLENGER: 4, RoundKind.NONE: 4}


def question(id_: str) -> QuestionView:
    return QuestionView(id=id_, database="d", text="?")


def test_strategies_are_drawn_by_their_weight_from_a_stream_of_their_own() -> None:
    weights = {Strategy.CROSS_POLLINATION: 3.0, Strategy.REFINEMENT: 1.0, Strategy.ERROR_FOCUSED: 0.0}
    settings = small(schedule={"strategies": weights})
    drawn = [draw_strategy(settings, n) for n in range(1, 2001)]
    counts = Counter(drawn)
    assert set(counts) == {Strategy.CROSS_POLLINATION, Strategy.REFINEMENT}
    assert 0.70 < counts[Strategy.CROSS_POLLINATION] / 2000 < 0.80
    for iteration, strategy in enumerate(drawn[:50], 1):
        below = stream(3, "strategy", iteration).random() * 4 < 3
        assert (strategy is Strategy.CROSS_POLLINATION) is below
    swapped = small(schedule={"strategies": dict(reversed(list(weights.items())))})
    assert [draw_strategy(swapped, n) for n in range(1, 200)] == drawn[:199]


def test_no_weight_at_all_and_research_without_papers_are_refused() -> None:
    with pytest.raises(ValidationError, match="weights of the strategies are all 0"):
        ScheduleSettings(strategies={Strategy.REFINEMENT: 0.0})
    with pytest.raises(ValidationError, match="needs papers"):
        small(schedule={"strategies": {"research-driven": 0.1, "refinement": 1}})
    with pytest.raises(ValidationError, match="more than 1 together"):
        ScheduleSettings(challenger=0.6, none=0.6)
    assert small(schedule={"strategies": {"research-driven": 0, "refinement": 1}}).papers == ()


# Branches


def copied(source: EvolutionLab, first_new: int) -> MemoryJournal:
    """The journal of a branch: what was known when an iteration began, and all answers there are."""
    target = MemoryJournal()
    target.blobs = dict(source.journal.blobs)
    for key, record in source.journal.entries.items():
        numbered = re.match(r"it/(\d+)/", key)
        is_known = (
            int(numbered[1]) < first_new
            if numbered
            else key.startswith(("tool/", "hybrid/", "answer/"))
            or (key.startswith("package/") and source.record(key)["iteration"] < first_new)
        )
        if is_known:
            target.entries[key] = record
    return target


TURNS = {2: [made("a")], 3: [made("b")], 4: [made("a", "b")]}


def branched(world: World, source: EvolutionLab, first_new: int, **changes: Any) -> EvolutionLab:
    settings = source.settings.model_copy(update=changes)
    lab = EvolutionLab(world, {**TURNS, 3: [made("c")], 4: [made("a", "c")], 5: [made("a", "b", "c")]}, settings)
    lab.journal = copied(source, first_new)
    lab.earlier = ((first_new - 1, source.settings),)
    return lab


def test_a_branch_takes_over_what_was_before_it_and_goes_on_by_its_own_seed(world: World) -> None:
    source = EvolutionLab(world, TURNS, without_focus(small(iterations=4)))
    before = source.run()
    lab = branched(world, source, 3, seed=77, iterations=5)
    after = lab.run()
    assert after.contests[:2] == before.contests[:2]
    assert after.members[:2] == before.members[:2]
    assert [member.id for member in after.members] == ["naive", "p02", "p03", "p04", "p05"]
    assert after.members[2].package.digest != before.members[2].package.digest
    for key in ("it/01/plan", "it/01/end", "it/02/plan", "it/02/evolve/request/0001", "it/02/end", "package/p02"):
        assert lab.journal.entries[key] == source.journal.entries[key]
    plans = ["it/03/plan", "it/04/plan"]
    assert [lab.record(key) for key in plans] != [source.record(key) for key in plans]
    for iteration in (3, 4, 5):
        expected = plan_iteration(lab.settings, lab.data.evolve, iteration).record
        assert lab.record(f"it/{iteration:02d}/plan") == expected
    assert [iteration_of(conversation) for conversation in lab.evolver.conversations] == [3, 4, 5]


def test_a_branch_pays_for_what_it_takes_over_once_and_asks_for_nothing_of_it(world: World) -> None:
    source = EvolutionLab(world, TURNS, without_focus(small(iterations=4)))
    source.run()
    lab = branched(world, source, 5, iterations=4)
    lab.run()
    assert lab.evolver.conversations == []
    assert lab.answerer.asked == []
    assert lab.ledger.snapshot() == source.ledger.snapshot()
    assert {key: record for key, record in lab.journal.entries.items() if key != "run"} == {
        key: record for key, record in source.journal.entries.items() if key != "run"
    }


def test_a_branch_of_the_same_seed_and_evolver_comes_to_the_same(world: World) -> None:
    source = EvolutionLab(world, TURNS, without_focus(small(iterations=4)))
    before = source.run()
    lab = branched(world, source, 3)
    lab.evolver.turns = TURNS
    assert lab.run() == before
    assert lab.state == source.state


def test_a_branch_of_a_branch_has_the_seeds_of_both_behind_it(world: World) -> None:
    source = EvolutionLab(world, TURNS, without_focus(small(iterations=4)))
    source.run()
    middle = branched(world, source, 3, seed=77)
    between = middle.run()
    lab = branched(world, middle, 4, seed=99)
    lab.earlier = (*middle.earlier, (3, middle.settings))
    after = lab.run()
    assert after.contests[:3] == between.contests[:3]
    assert lab.record("it/04/plan") == plan_iteration(lab.settings, lab.data.evolve, 4).record


@pytest.mark.parametrize("changes", [{"answers": {"corrections": 1}}, {"elo": {"k": 16}}])
def test_a_branch_keeps_what_its_beginning_rests_on(world: World, changes: dict[str, Any]) -> None:
    source = EvolutionLab(world, TURNS, without_focus(small(iterations=2)))
    source.run()
    lab = branched(world, source, 2)
    lab.settings = without_focus(small(iterations=2, **changes))
    with pytest.raises(InputError, match="a branch keeps the settings 'answers' and 'elo'"):
        lab.run()
