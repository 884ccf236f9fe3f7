"""A journal alone tells everything about a run, also about one that is not finished."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import RunStateError
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.methods.agentic_evolve.statistics import CrossIslandReads, best_so_far, cross_island_reads
from orchestrator.storage.journal import SqliteJournal
from tests.memory_journal import Killed

SMALL = {"commits_per_island": 6, "migration_interval": 2, "requests_per_island": 20}


def test_the_history_agrees_with_what_the_agents_saw_and_the_ledger_charged(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    result = lab.run()
    history, spent = lab.history, lab.ledger.snapshot()
    assert history.result("run-1") == result
    assert len(history.paid) == spent.spent.commits == result.evaluations
    assert sum(result.endings.values()) == result.evaluations
    for island, grid in history.grids().items():
        last = lab.feedbacks(island)[-1]
        assert [entry.id for entry in grid.elites] == [line["id"] for line in last["grid"]]
        assert grid.best.occupant.id == last["island_best"]["id"]
        used, charged = history.consumption[island], spent.by_island[island]
        assert (used.requests, used.analyses, used.usage) == (charged.requests, charged.analyses, charged.usage)
    shown = {(m.island, entry_id) for m in history.migrations for entry_id in m.ids}
    told = {
        (island, line["id"])
        for island in range(3)
        for feedback in lab.feedbacks(island)
        for line in feedback.get("migration", [])
    }
    assert shown == told
    assert best_so_far(history)[-1].best.verdict.metrics["fitness"] == result.best_metrics["fitness"]


def test_the_curve_has_a_point_per_paid_evaluation_and_never_falls(kit: Any) -> None:
    failing = kit.say("", kit.call("write", file="program.py", content="raise"), kit.call("commit", description="f"))
    lab = kit.Lab(
        kit.scripted(kit.try_out(50, 20), kit.try_out(20, 20), kit.try_out(50, 20), failing, kit.try_out(70, 20)),
        islands=1,
    )
    lab.run()
    points = best_so_far(lab.history)
    assert [(point.evaluations, point.best.id) for point in points] == [
        (0, "initial"), (1, "i0-c01"), (2, "i0-c01"), (3, "i0-c01"), (4, "i0-c05"),
    ]  # fmt: skip
    assert [point.usage.usd for point in points] == [Decimal(cents) / 100 for cents in (0, 1, 2, 4, 5)]
    assert [point.cpu_seconds for point in points] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_cross_island_reads_are_counted_as_in_the_paper(kit: Any) -> None:
    read = kit.say("", kit.call("read_commit", id="i1-c01"), kit.call("read_commit", id="i0-c01"))
    scripts = {
        0: [kit.try_out(5, 5), read, kit.try_out(65, 20), kit.try_out(70, 20), read, kit.try_out(66, 21)],
        1: [kit.try_out(65, 20), kit.say("", kit.call("read_commit", id="i0-c01"))],
    }
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=1, migration_fraction=0.01)
    lab.run()
    assert cross_island_reads(lab.history) == CrossIslandReads(
        offered=1,  # island 1 was shown i0-c01, but made no commit after that
        offered_and_read=1,
        commits_after_a_read=2,
        improved_island_best=1,
        improved_run_best=0,
        identical_to_a_read=1,
    )


def test_a_read_that_beats_everything_improves_island_and_run(kit: Any) -> None:
    read = kit.say("", kit.call("read_commit", id="i1-c01"))
    scripts = {0: [kit.try_out(5, 5), read, kit.try_out(70, 20)], 1: [kit.try_out(65, 20)]}
    lab = kit.Lab(kit.scripted(islands=scripts), islands=2, migration_interval=1)
    lab.run()
    reads = cross_island_reads(lab.history)
    assert (reads.improved_island_best, reads.improved_run_best, reads.identical_to_a_read) == (1, 1, 0)


def test_calls_in_an_agents_last_words_are_no_reads(kit: Any) -> None:
    read = kit.say("", kit.call("read_commit", id="i1-c01"))
    scripts = {0: [kit.try_out(5, 5), kit.try_out(6, 15), read], 1: [kit.try_out(65, 20), kit.try_out(64, 20)]}
    lab = kit.Lab(
        kit.scripted(islands=scripts), islands=2, migration_interval=1, migration_fraction=0.01, commits_per_island=2
    )
    lab.run()
    reads = cross_island_reads(lab.history)
    assert (reads.offered, reads.offered_and_read) == (2, 0)


def test_an_unfinished_run_has_a_history(kit: Any) -> None:
    lab = kit.Lab(**SMALL)
    with pytest.raises(RunStateError, match="holds no run"):
        read_history(lab.journal)
    lab.light(90)
    with pytest.raises(Killed):
        lab.run()
    history = lab.history
    assert history.initial is not None
    assert history.stops == {}
    assert len(best_so_far(history)) == len(history.paid) + 1
    assert cross_island_reads(history).offered >= 0


def test_a_run_in_a_file_is_the_run_in_memory_also_when_it_is_killed_on_the_way(kit: Any, tmp_path: Path) -> None:
    in_memory = kit.Lab(**SMALL)
    result = in_memory.run()
    lab = kit.Lab(**SMALL)
    for touches in (20, 60, None):
        with SqliteJournal(tmp_path / "run.sqlite") as journal:
            lab.journal = journal
            lab.bench.fuse = lab.model.fuse = kit.Fuse(touches)
            if touches is None:
                assert lab.run() == result
            else:
                with pytest.raises(Killed):
                    lab.run()
    with SqliteJournal(tmp_path / "run.sqlite", read_only=True) as journal:
        assert read_history(journal).result("run-1") == result
        assert {entry.id: entry for entry in read_history(journal).commits} == {
            entry.id: entry for entry in in_memory.history.commits
        }
    assert lab.ledger.snapshot() == in_memory.ledger.snapshot()
