"""A machine without room is told from code that waits, and code cannot pretend."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.policies import Grant, Limits, Purpose
from orchestrator.sandbox.meters import CgroupMeter
from orchestrator.sandbox.settings import Blueprint
from orchestrator.sandbox.starvation import Starvation, wall_remedy


def after(samples: list[tuple[float, float, bool]], cpus: float = 1.0) -> bool:
    starvation = Starvation(cpus)
    for now, cpu_seconds, wants_cpu in samples:
        starvation.sample(now, cpu_seconds, wants_cpu=wants_cpu)
    return starvation.was_starved


def test_more_wall_time_is_to_be_granted_by_whoever_grants_the_least() -> None:
    policy = Limits(wall_seconds=1800)
    for purpose, mine, place in (
        (
            Purpose.CANDIDATE,
            Limits(wall_seconds=150),
            "`limits.candidate.wall_seconds` in the task's task.yaml (the",
        ),
        (Purpose.CANDIDATE, policy, "`purposes.candidate.limits.wall_seconds` in the policy, and no less for"),
        (Purpose.EVALUATOR, policy, "`purposes.evaluator.limits.wall_seconds` in the policy"),
    ):
        grant = Grant(image="python", limits=policy)
        blueprint = Blueprint(purpose=purpose, run_id="r", image_digest="sha256:0", grant=grant, limits=mine)
        assert wall_remedy(blueprint).startswith(f"raise {place}")


def test_wanting_a_processor_and_getting_none_is_starvation() -> None:
    assert after([(0, 0, True), (10, 0.5, True)])


def test_sleeping_is_no_starvation() -> None:
    assert not after([(0, 0, False), (10, 0, False)])


def test_computing_is_no_starvation() -> None:
    assert not after([(0, 0, True), (10, 9.5, True)])


def test_a_small_share_is_measured_against_what_the_limit_grants() -> None:
    assert not after([(0, 0, True), (10, 0.5, True)], cpus=0.1)


def test_nothing_is_said_of_what_was_not_watched() -> None:
    assert not after([])
    assert not after([(5, 1, True)])


def test_half_of_the_time_decides() -> None:
    assert after([(0, 0, True), (5, 0, True), (10, 0, False)])
    assert not after([(0, 0, True), (4, 0, True), (10, 0, False)])


@given(st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.2, 1)), min_size=1))
def test_who_gets_a_fifth_of_its_share_is_never_starved(steps: list[tuple[float, float]]) -> None:
    samples, now, cpu = [(0.0, 0.0, True)], 0.0, 0.0
    for passed, share in steps:
        now, cpu = now + passed, cpu + passed * share * 1.001
        samples.append((now, cpu, True))
    assert not after(samples)


@pytest.fixture
def busy() -> Iterator[int]:
    code = "print('busy', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # while an interpreter starts, it waits for its files
        yield process.pid
        process.kill()


def test_a_busy_process_wants_a_processor(busy: int, tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{busy}\n")
    assert CgroupMeter({"": tmp_path}).wants_cpu() is True


def test_a_sleeping_or_ended_process_wants_none(tmp_path: Path) -> None:
    stat = tmp_path / "7" / "task" / "7" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("7 (R) R) S 1 7 7 0")  # a name may look like the state
    (tmp_path / "cgroup.procs").write_text("7\n8\n")
    meter = CgroupMeter({"pids": tmp_path}, processes=tmp_path)
    assert meter.wants_cpu() is False
    stat.write_text("7 (S) S) R 1 7 7 0")
    assert meter.wants_cpu() is True


def test_nothing_is_known_of_a_group_that_is_gone(tmp_path: Path) -> None:
    assert CgroupMeter({"": tmp_path / "gone"}).wants_cpu() is None
