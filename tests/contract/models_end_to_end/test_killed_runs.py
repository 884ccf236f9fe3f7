"""`kill -9` while a request is in flight: what was in flight counts as lost, once, and the run goes on."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import Provider
from orchestrator.runtime.workers import spawn
from orchestrator.storage.journal import SqliteJournal
from tests.contract.models_end_to_end import process
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.world import World, check_end, check_ledger, spending_of
from tests.model_servers.base import Answer, Trouble, Turn

ROOT = Path(__file__).parents[3]


@contextmanager
def running(world: World) -> Iterator[subprocess.Popen[bytes]]:
    """The run in a process of its own."""
    measured = world.folder / "measured.json"
    world.bench.save(measured)
    command = [sys.executable, process.__file__, world.provider.value, world.server.url, world.path, measured]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as started:
        yield started


def kill_after(seconds: float, started: subprocess.Popen[bytes]) -> None:
    time.sleep(seconds)
    started.kill()


@pytest.mark.parametrize(("seed", "provider"), [(1, Provider.ANTHROPIC), (2, Provider.OPENAI), (3, Provider.ANTHROPIC)])
def test_a_run_that_is_killed_with_a_request_in_flight_goes_on_and_counts_it_as_lost_once(
    seed: int, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's choice
    seconds = chance.uniform(0, 0.1)
    world = make_world(provider, first=chance.randint(2, 12))
    with running(world) as started:

        def kill(turn: Turn) -> Answer:
            spawn("killer", lambda: kill_after(seconds, started))
            return Trouble(stall_after=2, turn=turn)

        world.stage.fault = kill
        assert started.wait(60) == -9, started.stderr and started.stderr.read().decode()
    with SqliteJournal(world.path, read_only=True) as journal:
        before = spending_of(journal)
    assert 1 <= before.lost <= 2  # one for each island
    went = world.go()
    assert went.error is None
    assert went.candidates == undisturbed
    assert (went.spending.lost, went.spending.lost_usage) == (before.lost, before.lost_usage)
    asked = len(world.stage.taken)
    assert asked <= went.spending.requests + went.spending.lost <= asked + 1  # one may have been announced only
    reported = reported_once(world)
    assert replace(went.spending.usage, usd=reported.usd) == reported
    check_ledger(went)
    check_end(world, went)


def reported_once(world: World) -> Usage:
    """Of all requests that were answered as a whole; what a killed process did not live to read was asked again."""
    usages = {taken.body: taken.usage for taken in world.stage.taken if taken.outcome == "whole"}
    return sum(usages.values(), Usage())
