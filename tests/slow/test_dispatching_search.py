"""The offline engine on the job shop, as users start it: what experiments are worth, on two sets of unseen jobs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from tests.command_line import COMMAND, CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.docker]

SEARCH = ("run", "dynamic_job_shop", "--public-seed", "--seed", "1", "--islands", "2", "--commits", "3", "--json")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of its own that shares the images of all tests."""
    home = writable_home(find_places(None, None))
    with Engine.connect() as engine:
        ImageStore(engine, home).build()
    return CommandLine.beside(home, tmp_path_factory.mktemp("search")).home


def search(place: Path, *options: str) -> dict[str, Any]:
    """The final object of a search."""
    environment = {**os.environ, "EVOLVARIUM_HOME": str(place)}
    done = subprocess.run(
        [*COMMAND, *SEARCH, *options], env=environment, capture_output=True, text=True, timeout=3500, check=True
    )
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def ratios(document: dict[str, Any]) -> list[float]:
    """Tardiness of the best program over the reference rule's: on the hidden set, and on the fresh one."""
    best = document["best"]
    fresh = [verdict for verdict in document["final"] if verdict["split"] == "fresh" and verdict["id"] == best["id"]]
    assert len(fresh) == 1
    return [best["metrics"]["tardiness_ratio"], fresh[0]["metrics"]["tardiness_ratio"]]


def test_experiments_reach_nine_tenths_of_the_reference_and_beat_blind_steps(place: Path) -> None:
    measured, blind = ratios(search(place)), ratios(search(place, "--no-analysis"))
    assert max(measured) <= 0.90
    assert all(with_them < without - 0.05 for with_them, without in zip(measured, blind, strict=True))
