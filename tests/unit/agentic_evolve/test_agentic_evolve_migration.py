"""Migration: what is shown, when, and that waiting for each other can neither dead-lock nor change a result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import EvolvariumError
from orchestrator.methods.agentic_evolve.exchange import Exchange
from orchestrator.runtime.workers import CancelToken, spawn


def attempts(kit: Any, *points: tuple[int, int]) -> list[Any]:
    return [kit.try_out(x, y, f"{x} and {y}") for x, y in points]


def shown(lab: Any, island: int) -> list[list[str]]:
    return [[line["id"] for line in f["migration"]] for f in lab.feedbacks(island) if "migration" in f]


def test_after_every_interval_the_best_quarter_of_the_neighbours_elites_is_shown_with_its_island(kit: Any) -> None:
    scripts = {
        0: attempts(kit, (5, 5), (15, 15)),
        1: attempts(kit, (65, 20), (25, 25)),
        2: attempts(kit, (30, 60), (60, 20)),
    }
    lab = kit.Lab(kit.scripted(islands=scripts), migration_interval=2)
    lab.run()
    first, second = lab.feedbacks(0)
    assert "migration" not in first
    assert second["migration"] == [
        {
            "id": "i1-c01",
            "island": 1,
            "metrics": {"fitness": 95.0, "size": 0.65, "shape": 0.2, "excess": 0.3333},
            "description": "65 and 20",
        }
    ]  # one of four: the initial program, which all have, is not among them
    assert list(second)[-3:] == ["migration", "budget", "notice"]
    assert shown(lab, 1) == [["i2-c02"]]
    assert shown(lab, 2) == [["i1-c01"]]
    assert [(m.island, m.migration, m.ids) for m in lab.history.migrations] == [
        (0, 1, ("i1-c01",)),
        (1, 1, ("i2-c02",)),
        (2, 1, ("i1-c01",)),
    ]


def test_candidates_are_shown_once_only_and_can_be_read_from_then_on(kit: Any) -> None:
    read = kit.say("", kit.call("read_commit", id="i1-c01"))
    scripts = {
        0: [read, *attempts(kit, (5, 5)), read, *attempts(kit, (6, 15), (7, 25))],
        1: attempts(kit, (70, 20), (11, 35), (12, 45)),
    }
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=1, migration_fraction=0.01)
    lab.run()
    assert shown(lab, 0) == [["i1-c01"], [], []]
    assert lab.answers(0)[0].startswith("error: there is no commit 'i1-c01'")
    assert "x = 70\ny = 20\n" in lab.answers(0)
    assert [entry.candidate.parents for entry in lab.history.commits if entry.id == "i0-c02"] == [("i0-c01", "i1-c01")]


def test_duplicates_do_not_bring_a_migration_nearer(kit: Any) -> None:
    scripts = {
        0: attempts(kit, (5, 5), (5, 5), (5, 5), (6, 15)),
        1: attempts(kit, (70, 20), (11, 35)),
    }
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=2)
    lab.run()
    assert ["migration" in feedback for feedback in lab.feedbacks(0)] == [False, False, False, True]


def test_a_neighbour_that_stopped_earlier_contributes_its_final_elites(kit: Any) -> None:
    scripts = {0: attempts(kit, *[(n, 5) for n in range(0, 60, 10)]), 1: attempts(kit, (70, 20))}
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=3, idle_turns=1)
    result = lab.run()
    assert result.stops == {0: "idle", 1: "idle"}
    assert shown(lab, 0) == [["i1-c01"], []]


def test_an_island_sees_the_neighbour_as_of_its_own_kth_migration_however_far_that_one_is(kit: Any) -> None:
    late_best = {0: attempts(kit, (5, 5), (6, 15)), 1: attempts(kit, (11, 35), (12, 45), (70, 20))}
    lab = kit.Lab(kit.scripted(islands=late_best), islands=2, migration_interval=2, migration_fraction=1.0)
    lab.bench.delays = {"i0-c02": 0.3}  # island 1 has found its best long before island 0 migrates
    lab.run()
    assert shown(lab, 0) == [["i1-c01", "i1-c02"]]


def test_asynchronous_islands_take_what_is_there(kit: Any) -> None:
    scripts = {0: attempts(kit, (5, 5), (6, 15)), 1: attempts(kit, (11, 35), (70, 20))}
    lab = kit.Lab(
        kit.scripted(islands=scripts), islands=2, migration_interval=2, migration_fraction=1.0, async_islands=True
    )
    lab.bench.delays = {"i0-c02": 0.3, "i1-c02": 1.0}
    lab.run()
    assert shown(lab, 0) == [["i1-c01"]]
    assert shown(lab, 1) == [["i0-c02", "i0-c01"]]
    before = dict(lab.journal.entries)
    lab.bench.delays = {}
    asked = list(lab.model.asked)
    lab.run()
    assert lab.journal.entries == before
    assert lab.model.asked == asked


def test_one_island_alone_has_no_migration(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(*attempts(kit, (5, 5), (6, 15))), islands=1, migration_interval=1)
    lab.run()
    assert all("migration" not in feedback for feedback in lab.feedbacks(0))


def test_a_neighbour_that_is_too_slow_pauses_the_run_and_a_resume_finishes_it(kit: Any) -> None:
    scripts = {0: attempts(kit, (5, 5)), 1: attempts(kit, (70, 20))}
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=1, migration_wait_seconds=0.2)
    lab.bench.delays = {"i1-c01": 1.0}
    with pytest.raises(EvolvariumError, match=r"migration 1 waited 0\.2 s for island 1"):
        lab.run()
    assert lab.journal.get("run/end") is None
    lab.bench.delays = {}
    assert lab.run().best_id == "i1-c01"
    assert lab.bench.performed.count("i1-c01") == 1


def test_waiting_ends_when_somebody_asks_to_stop() -> None:
    token = CancelToken()
    exchange = Exchange(token, wait_seconds=60)
    waiter = spawn("waiter", lambda: exchange.at((1, 2), 1))
    exchange.publish(1, [], migration=1)
    assert not waiter.join(0.05)
    token.cancel("enough")
    assert waiter.join(5)
    assert str(waiter.error) == "enough"


def test_the_final_elites_stand_for_every_migration_that_was_not_reached() -> None:
    exchange: Any = Exchange(CancelToken(), wait_seconds=60)
    exchange.publish(1, ["a"], migration=1)
    exchange.stop(1, ["a", "b"])
    assert exchange.at((1,), 1) == ["a"]
    assert exchange.at((1,), 2) == ["a", "b"]
    assert exchange.now((0, 1)) == ["a", "b"]


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 7), min_size=2, max_size=5),
    interval=st.integers(1, 4),
    delays=st.lists(st.sampled_from([0.0, 0.002, 0.01]), min_size=5, max_size=5),
)
def test_islands_of_any_lengths_and_speeds_end_and_show_the_same(
    lengths: list[int], interval: int, delays: list[float]
) -> None:
    kit = _KIT[0]
    scripts = {
        island: attempts(kit, *[((7 * island + 11 * n) % 97, (5 * island + 13 * n) % 97) for n in range(length)])
        for island, length in enumerate(lengths)
    }

    def run(waits: dict[str, float]) -> Any:
        lab = kit.Lab(
            kit.scripted(islands=scripts), islands=len(lengths), migration_interval=interval,
            idle_turns=1, migration_wait_seconds=30.0,
        )  # fmt: skip
        lab.bench.delays = waits
        lab.run()
        return lab

    plain, delayed = run({}), run({f"i{island}-": seconds for island, seconds in enumerate(delays)})
    assert plain.journal.entries == delayed.journal.entries


_KIT: list[Any] = []


@pytest.fixture(autouse=True)
def _remember_the_kit(kit: Any) -> None:
    _KIT[:] = [kit]
