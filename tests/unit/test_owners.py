"""Who may sweep what, and how resources are read from the kernel's and the engine's accounts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.policies import Purpose
from orchestrator.sandbox.meters import CgroupMeter, Reading, reading_of
from orchestrator.sandbox.owners import LEASE, OWNER, PROCESS, Owner, Process, may_be_swept, start_ticks
from orchestrator.sandbox.uids import UidPool

HERE = Process.current()
NOW = 1_000_000.0


def labels(process: Process, lease_until: float = NOW + 60) -> dict[str, str]:
    return Owner("owner-1", process).container_labels("run", Purpose.CANDIDATE, lease_until)


def dead_process() -> Process:
    """A process of this machine that has ended."""
    with subprocess.Popen(["sleep", "60"]) as child:
        ticks = start_ticks(child.pid)
        child.kill()
    assert ticks is not None
    return Process(child.pid, ticks, HERE.boot_id, HERE.pid_namespace)


def test_what_a_living_owner_of_this_machine_made_stays_even_after_its_lease() -> None:
    assert not may_be_swept(labels(HERE, NOW - 1), {}, here=HERE, now=NOW)


def test_what_a_dead_owner_of_this_machine_left_goes_at_once() -> None:
    assert may_be_swept(labels(dead_process()), {"owner-1": NOW + 60}, here=HERE, now=NOW)


def test_a_later_process_of_the_same_pid_is_not_the_owner() -> None:
    earlier = Process(os.getpid(), HERE.start_ticks - 1, HERE.boot_id, HERE.pid_namespace)
    assert may_be_swept(labels(earlier), {}, here=HERE, now=NOW)


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert start_ticks(child.pid) is None


@pytest.mark.parametrize(
    "foreign",
    [
        Process(HERE.pid, HERE.start_ticks, "another-boot", HERE.pid_namespace),
        Process(HERE.pid, HERE.start_ticks, HERE.boot_id, "4026539999"),
    ],
)
def test_a_foreign_owners_container_goes_only_after_its_lease(foreign: Process) -> None:
    assert not may_be_swept(labels(foreign, NOW + 1), {}, here=HERE, now=NOW)
    assert may_be_swept(labels(foreign, NOW - 1), {}, here=HERE, now=NOW)


def test_a_renewed_lease_of_a_foreign_owner_counts() -> None:
    foreign = Process(1, 1, "another-boot", "1")
    assert not may_be_swept(labels(foreign, NOW - 1), {"owner-1": NOW + 1}, here=HERE, now=NOW)
    assert may_be_swept(labels(foreign, NOW - 1), {"owner-2": NOW + 1}, here=HERE, now=NOW)


@given(st.text(max_size=40), st.text(max_size=20))
def test_labels_of_any_content_never_raise(process: str, lease: str) -> None:
    assert may_be_swept({PROCESS: process, LEASE: lease, OWNER: "x"}, {}, here=HERE, now=NOW) in (True, False)


def test_a_process_survives_its_label() -> None:
    assert Process.parse(str(HERE)) == HERE


def test_no_two_live_containers_have_the_same_uid() -> None:
    pool = UidPool(range(10_000, 10_008))
    drawn = {pool.draw() for _ in range(8)}
    assert drawn == set(range(10_000, 10_008))
    pool.give_back(10_003)
    assert pool.draw() == 10_003


def test_the_first_generation_of_control_groups_is_read(tmp_path: Path) -> None:
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    (tmp_path / "memory.max_usage_in_bytes").write_text("4096\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (tmp_path / "pids.events").write_text("max 3\n")
    groups = dict.fromkeys(("cpuacct", "memory", "pids", ""), tmp_path)
    assert CgroupMeter(groups).read() == Reading(
        cpu_seconds=1.5, memory_peak_bytes=4096, at_process_limit=True, out_of_memory=True
    )


def test_the_second_generation_of_control_groups_is_read(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.events").write_text("low 0\nmax 5\noom 0\noom_kill 0\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    assert CgroupMeter({"": tmp_path}).read() == Reading(
        cpu_seconds=2.5, memory_peak_bytes=None, at_process_limit=False, out_of_memory=False
    )
    (tmp_path / "memory.peak").write_text("8192\n")
    reading = CgroupMeter({"": tmp_path}).read()
    assert reading is not None
    assert reading.memory_peak_bytes == 8192


def test_the_groups_of_a_container_that_has_ended_give_no_reading(tmp_path: Path) -> None:
    assert CgroupMeter({"": tmp_path / "gone"}).read() is None


def test_the_engines_statistics_are_read() -> None:
    stats = {
        "cpu_stats": {"cpu_usage": {"total_usage": 2_000_000_000}},
        "memory_stats": {"max_usage": 100},
        "pids_stats": {"current": 4, "limit": 4},
    }
    assert reading_of(stats) == Reading(
        cpu_seconds=2.0, memory_peak_bytes=100, at_process_limit=True, out_of_memory=False
    )


def test_statistics_of_a_container_that_does_not_run_give_no_reading() -> None:
    empty = {"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}, "pids_stats": {}}
    assert reading_of(empty) is None
