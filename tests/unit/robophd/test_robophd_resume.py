"""Nothing lost, nothing paid twice: whatever interrupts a run, it comes to the same journal, champion and spending."""

from __future__ import annotations

import random
import threading
from decimal import Decimal

import pytest

from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.results import RunResult
from orchestrator.search.replay import Mode
from tests.evolution_lab import TURNS, EvolutionLab, small, tiny
from tests.evolution_world import World
from tests.memory_journal import Killed


def in_flight(lab: EvolutionLab) -> list[str]:
    """Requests that were cut off."""
    entries = lab.journal.entries
    return [key for key in entries if key.endswith("/sent") and key.removesuffix("/sent") not in entries]


def killed(lab: EvolutionLab, touches: int) -> bool:
    """Whether the process came to its end before the run did."""
    lab.light(touches)
    try:
        lab.run()
    except Killed:
        return True
    finally:
        lab.light(None)
    return False


def comes_to_the_same(lab: EvolutionLab, undisturbed: EvolutionLab, expected: RunResult) -> None:
    """Resumed, and then resumed again."""
    lost = in_flight(lab)
    assert len(lost) <= (0 if lab.evolver.is_repeatable else lab.workers)
    price = sum((Decimal(str(lab.record(key)["reserved"]["usd"])) for key in lost), Decimal(0))
    bill = undisturbed.ledger.snapshot()
    for _ in range(2):
        assert lab.run() == expected
        assert lab.state == undisturbed.state
        again = lab.ledger.snapshot()
        assert again.lost_count == len(lost)
        assert again.spent.requests == bill.spent.requests + len(lost)
        assert again.spent.usage.usd == (bill.spent.usage.usd or Decimal(0)) + price
        if not lost:
            assert again == bill


@pytest.mark.parametrize("part", range(4))
def test_killed_at_every_single_point_and_resumed_it_comes_to_the_same(world: World, part: int) -> None:
    model = {"is_repeatable": part % 2 == 0, "is_priced": part < 2}
    undisturbed = tiny(world, **model)
    undisturbed.light(1_000_000)
    expected = undisturbed.run()
    points = 1_000_000 - undisturbed.journal.fuse.left
    assert points > 150
    assert undisturbed.ledger.snapshot().by_role.keys() == {"answerer", "evolver", "hybrid"}
    for touches in range(part, points, 4):  # every point is met under one of the four kinds of models
        lab = tiny(world, **model)
        assert killed(lab, touches)
        comes_to_the_same(lab, undisturbed, expected)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_killed_at_random_with_several_workers_it_comes_to_the_same(world: World, is_repeatable: bool) -> None:
    undisturbed = EvolutionLab(world, TURNS, small(iterations=3), is_repeatable=is_repeatable)
    undisturbed.light(1_000_000)
    expected = undisturbed.run()
    points = 1_000_000 - undisturbed.journal.fuse.left
    for touches in random.Random(5).sample(range(points), 5):  # noqa: S311 - any five will do
        lab = EvolutionLab(world, TURNS, small(iterations=3), is_repeatable=is_repeatable)
        lab.workers = 4
        killed(lab, touches)
        comes_to_the_same(lab, undisturbed, expected)


def test_the_order_in_which_answers_are_completed_changes_nothing(world: World) -> None:
    one = EvolutionLab(world, TURNS, small(iterations=3))
    expected = one.run()
    lab = EvolutionLab(world, TURNS, small(iterations=3))
    lab.workers = 4
    waiting: list[threading.Event] = []
    lock = threading.Lock()

    def newest_first(_: object) -> None:
        """The first of two waits for the second, where there is one."""
        with lock:
            if waiting:
                waiting.pop().set()
                return
            own = threading.Event()
            waiting.append(own)
        own.wait(0.02)
        with lock:
            if own in waiting:
                waiting.remove(own)

    lab.answerer.before = newest_first
    assert lab.run() == expected
    assert lab.state == one.state
    assert list(lab.journal.entries) != list(one.journal.entries)
    assert lab.ledger.snapshot() == one.ledger.snapshot()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_replay_performs_nothing(world: World, workers: int) -> None:
    lab = tiny(world, is_repeatable=False)
    expected, bill, before = lab.run(), lab.ledger.snapshot(), dict(lab.journal.entries)
    lab.mode, lab.workers = Mode.REPLAY, workers
    lab.light(0)  # whatever is asked of models, tools or the journal's writing ends the process
    assert lab.run() == expected
    assert lab.journal.entries == before
    assert lab.ledger.snapshot() == bill


def test_a_replay_of_what_is_unfinished_says_so(world: World) -> None:
    lab = tiny(world)
    lab.run()
    lab.mode, lab.workers = Mode.REPLAY, 3
    entries = list(lab.journal.entries.items())
    for kept in range(0, len(entries), 3):
        lab.journal.entries = dict(entries[:kept])
        with pytest.raises(RunStateError, match="a replay performs nothing"):
            lab.run()
        assert dict(entries[:kept]) == lab.journal.entries
