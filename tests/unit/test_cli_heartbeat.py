"""Where stderr is no terminal, a command is never silent for long, and says no more than it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bootstrap.places import find_places
from orchestrator.cli.heartbeat import SILENCE_SECONDS, Heartbeat, duration
from orchestrator.cli.progress import ProgressLines, Qualities
from orchestrator.cli.terminal import Terminal
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import load_task
from orchestrator.methods.agentic_evolve import Event, Progress, Settings


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(tmp_path: Path, clock: Clock) -> ProgressLines:
    return ProgressLines(Terminal(), Qualities(find_places(tmp_path / "home", None)), clock)


def progress(island: int, event: Event = Event.REQUEST, **fields: int) -> Progress:
    from orchestrator.domain.conversation import Usage  # noqa: PLC0415

    counts = {"commits": 0, "analyses": 0, "requests": 0, **fields}
    return Progress(event=event, island=island, subject="", best_id=None, best_fitness=None, usage=Usage(), **counts)


def test_only_a_silence_is_broken(clock: Clock) -> None:
    said: list[str] = []
    heartbeat = Heartbeat(said.append, clock)
    clock.now += SILENCE_SECONDS - 1
    heartbeat.beat(lambda: "x")
    assert said == []
    heartbeat.said()
    clock.now += SILENCE_SECONDS - 1
    heartbeat.beat(lambda: "x")
    assert said == []
    clock.now += 1
    for _ in range(3):
        heartbeat.beat(lambda: "still there")
    assert said == ["after 59 s: still there"]
    clock.now += SILENCE_SECONDS
    heartbeat.beat(lambda: "still there")
    assert said[1:] == ["after 1 min 29 s: still there"]


def test_a_run_says_what_each_island_does(
    lines: ProgressLines, clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def beaten() -> str:
        clock.now += SILENCE_SECONDS
        lines.beat()
        lines.beat()
        return capsys.readouterr().err

    assert beaten() == "after 30 s: preparing\n"
    lines.start("0123", Settings(islands=2, commits_per_island=4), load_task(new_task(tmp_path, "small_task")))
    capsys.readouterr()
    assert beaten() == "after 1 min 00 s: evaluating the initial program\n"
    lines.event(progress(0, commits=1, analyses=2))
    lines.event(progress(1, analyses=3))
    clock.now -= 10
    lines.work("i1-c01", "evaluation")
    clock.now += 10
    assert beaten() == (
        "after 1 min 30 s: 1 of 8 commits, 5 analyses; island 0 last request, island 1 evaluation for 40 s\n"
    )
    for island in range(2):
        lines.event(progress(island, Event.STOP, commits=4))
    assert "measuring the initial program and the best" in beaten()


def test_what_is_said_of_commits_counts_as_a_sign_of_life(
    lines: ProgressLines, clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.start("0123", Settings(islands=1), load_task(new_task(tmp_path, "small_task")))
    clock.now += SILENCE_SECONDS - 1
    lines.event(progress(0, Event.COMMIT, commits=1))
    clock.now += SILENCE_SECONDS - 1
    capsys.readouterr()
    lines.beat()
    assert capsys.readouterr().err == ""


def test_times_are_said_as_people_do() -> None:
    assert [duration(0.9), duration(59.9), duration(60), duration(3725)] == ["0 s", "59 s", "1 min 00 s", "62 min 05 s"]
