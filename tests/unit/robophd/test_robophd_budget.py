"""A budget that is spent ends a run for good, with a champion, whatever else is under way; it never ends it wrongly."""

from __future__ import annotations

import threading

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.methods.robophd.results import Ending
from orchestrator.search.replay import Mode
from tests.evolution_lab import TURNS, EvolutionLab, cheaper, small, tiny, without_focus
from tests.evolution_world import World
from tests.scripted_evolver import made, skilled_package


def test_a_budget_that_is_spent_ends_the_run_for_good_with_a_champion(world: World) -> None:
    undisturbed = tiny(world)
    whole = undisturbed.run()
    assert whole.ending is Ending.ITERATIONS
    total = undisturbed.ledger.snapshot().spent.requests
    for requests in range(total):
        lab = cheaper(tiny(world), requests)
        result = lab.run()
        assert result.ending is Ending.BUDGET
        assert lab.record("run/end") == {
            "ending": "budget",
            "champion": result.champion,
            "selected": list(result.selection),
        }
        bill, before = lab.ledger.snapshot(), dict(lab.journal.entries)
        assert bill.spent.requests == requests
        lab.light(0)
        for budget in (Budget(requests=requests), Budget()):  # a higher one comes too late
            lab.budget = budget
            assert lab.run() == result
            assert lab.journal.entries == before
            assert lab.ledger.snapshot() == bill


def test_a_budget_that_just_suffices_is_no_ending(world: World) -> None:
    undisturbed = tiny(world)
    expected = undisturbed.run()
    lab = cheaper(tiny(world), undisturbed.ledger.snapshot().spent.requests)
    assert lab.run() == expected


@pytest.mark.parametrize("missing", ["demo/d2.q0", "demo/d2.q1"])
def test_what_is_recorded_of_a_contest_is_charged_before_anything_new_is_asked_for(world: World, missing: str) -> None:
    """Of several workers, one may have been killed before it asked, while the others had spent the budget."""
    whole = EvolutionLab(world, {}, small(iterations=1))
    whole.run()
    lab = EvolutionLab(world, {}, small(iterations=1))
    lab.journal.blobs = whole.journal.blobs
    of_contest = [
        key for key in whole.state if not key.startswith(("it/01/end", "select/", "run/end")) and ":s" not in key
    ]
    lab.journal.entries = {
        key: whole.journal.entries[key] for key in of_contest if missing.replace("/", ":") not in key
    }
    spent = sum("/request/" in key for key in lab.journal.entries)
    result = cheaper(lab, spent).run()
    assert spent == 11
    assert result.ending is Ending.BUDGET
    assert lab.ledger.snapshot().spent.requests == spent


@pytest.mark.parametrize("requests", [3, 9, 14, 20, 26, 31, 37, 45, 60, 71])
@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_budget_that_is_spent_while_many_work_ends_the_run_all_the_same(
    world: World, requests: int, is_repeatable: bool
) -> None:
    def begun() -> EvolutionLab:
        initial = {"one": skilled_package("a"), "two": skilled_package("b")}
        settings = small(iterations=3, answers={"corrections": 2, "hybrid_requests": 2})
        lab = EvolutionLab(world, TURNS, settings, initial=initial, is_repeatable=is_repeatable)
        lab.answerer.before = lambda _: threading.Event().wait(0.001)
        return cheaper(lab, requests)

    lab = begun()
    lab.workers = 4
    result = lab.run()
    assert result.ending is Ending.BUDGET
    assert result.champion in {member.id for member in result.members}
    bill, before = lab.ledger.snapshot(), dict(lab.journal.entries)
    assert bill.spent.requests <= requests
    lab.light(0)
    for mode in (Mode.PERFORM, Mode.REPLAY):
        for workers in (4, 1):
            lab.mode, lab.workers, lab.budget = mode, workers, Budget()
            assert lab.run() == result
            assert lab.journal.entries == before
            assert lab.ledger.snapshot() == bill


def test_where_a_tool_fails_a_spent_budget_begins_no_other_tool_afterwards(world: World) -> None:
    files = {**skilled_package("a").tree, "tools/analyze.py": b"raise ValueError('no')\n"}
    broken = type(skilled_package()).load(files)
    lab = cheaper(EvolutionLab(world, {}, small(iterations=1), initial={"broken": broken}), 0)
    result = lab.run()
    assert (result.ending, result.champion, len(lab.tools.asked)) == (Ending.BUDGET, "broken", 1)
    lab.light(0)
    for mode in (Mode.PERFORM, Mode.REPLAY):
        lab.mode, lab.workers, lab.budget = mode, 4, Budget()
        assert lab.run() == result


def test_without_a_score_on_selection_the_best_rated_that_was_in_a_contest_is_champion(world: World) -> None:
    turns = {2: [made("a")], 3: [made("a", "b")]}
    whole = EvolutionLab(world, turns, without_focus(small(iterations=3)), initial={"bad": skilled_package()})
    whole.run()
    requests = [key for key in whole.journal.entries if "/request/" in key]
    third = requests.index("it/03/evolve/request/0001") + 1  # the newcomer stands, with the start rating
    lab = EvolutionLab(world, turns, without_focus(small(iterations=3)), initial={"bad": skilled_package()})
    result = cheaper(lab, third).run()
    assert [member.id for member in result.members] == ["bad", "p02", "p03"]
    assert result.champion == "p02"
    assert result.ratings["p02"] > result.ratings["p03"] == 1500.0
    lab = EvolutionLab(world, turns, without_focus(small(iterations=3)), initial={"bad": skilled_package()})
    lost = cheaper(lab, third)
    lost.gold = {**world.gold, **{name: world.gold["demo/d0.q0"] for name in world.gold if "/d" in name}}
    assert lost.run().champion == "bad"  # equal ratings: the older


def test_a_budget_reaches_the_best_rated_first(world: World) -> None:
    turns = {2: [made("a", "b")]}
    whole = EvolutionLab(world, turns, without_focus(small(iterations=2)))
    whole.run()
    total = whole.ledger.snapshot().spent.requests
    lab = cheaper(EvolutionLab(world, turns, without_focus(small(iterations=2))), total - 1)
    result = lab.run()
    assert (result.ending, result.champion, dict(result.selection)) == (Ending.BUDGET, "p02", {"p02": (6, 8)})
