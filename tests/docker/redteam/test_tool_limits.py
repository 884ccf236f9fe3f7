# ruff: noqa: S608, ISC004 - the SQL, the paths and the programs of these tests are their own
"""T: analysis tools that use everything up, refuse to end, talk too much, or kill; each ends as it should."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hostile_tools import OUTPUT, WRITE
from hostility import RUN

from orchestrator.domain.policies import MIB, Policy, Purpose
from orchestrator.domain.tool_runs import ToolFailure, ToolRun
from orchestrator.sandbox.adapter import DockerSandbox

pytestmark = pytest.mark.docker

Use = Callable[..., ToolRun]
LATE_SECONDS = 2.0
"""A run past its deadline is gone by then."""
OWN_GROWTH_BYTES = 32 * MIB


@pytest.mark.probe("T5", "fork, and a fork bomb (R4)")
def test_processes_are_counted(use: Use, expected: Mapping[str, Any]) -> None:
    few = use(f"import os\nfor _ in range(3):\n    if os.fork() == 0:\n        os._exit(0)\n{WRITE}('x')\n")
    assert few.text == "x"
    assert few.observation is not None
    assert few.observation.events["os.fork"] >= 2
    bomb = use(
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n", wall_seconds=10
    )
    assert bomb.failure in {ToolFailure(ending.value) for ending in expected["bomb-endings"]}, bomb.detail
    assert bomb.outcomes[0].wall_seconds < 10 + LATE_SECONDS


@pytest.mark.probe("T6", "print 10 GB: to stdout, to stderr, past the runner (R11)")
@pytest.mark.parametrize("place", ["/proc/self/fd/1", "/proc/self/fd/2", "/proc/1/fd/2", "print"])
def test_a_flood_ends_the_tool_and_costs_us_nothing(use: Use, place: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    put = "print" if place == "print" else f"open({place!r}, 'w').write"
    result = use(f"piece = 'x' * 1000000\nfor _ in range(10000):\n    {put}(piece)\n{WRITE}('x')\n", output=OUTPUT)
    if place.startswith("/proc") and result.failure is ToolFailure.ERROR:
        assert "Permission" in result.detail  # its own descriptors are closed to it, since it cannot be looked into
    else:
        assert result.failure is ToolFailure.OUTPUT_LIMIT, result.detail
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < OWN_GROWTH_BYTES


@pytest.mark.probe("T7", "write a huge output file: until the disk is full, with holes, just too long (R10)")
def test_an_output_is_bounded(use: Use, policy: Policy) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    space = policy.purposes[Purpose.TOOL].limits.tmpfs_bytes
    many = f"for _ in range({2 * space // MIB}):\n        file.write(bytes({MIB}))\n"
    full = use(f"with open({OUTPUT!r}, 'wb') as file:\n    {many}")
    assert full.failure is ToolFailure.DISK, full.detail
    holes = use(f"import os\n{WRITE}('x')\nos.truncate({OUTPUT!r}, 10**10)\n")
    assert holes.failure is ToolFailure.OUTPUT_LIMIT, holes.detail
    long = use(f"{WRITE}('x' * {(4 << 20) + 1})\n")
    assert (long.failure, long.detail) == (ToolFailure.OUTPUT_LIMIT, "its output has more than 4194304 bytes")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < OWN_GROWTH_BYTES


@pytest.mark.probe("T11", "leave a daemon behind (R9, R15)")
def test_nothing_outlives_a_tool(use: Use, sandbox: DockerSandbox) -> None:
    result = use(
        f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(9999)\n"
        f"    os._exit(0)\n{WRITE}('done')\n",
        wall_seconds=20,
    )
    assert result.text == "done"
    assert all(outcome.wall_seconds < 10 for outcome in result.outcomes)
    assert sandbox.live_containers(RUN) == 0


@pytest.mark.probe("T12", "kill the first process, its parent, everything (R20)")
@pytest.mark.parametrize("target", ["1", "os.getppid()", "-1", "os.getpid()"])
def test_a_killer_does_not_win(use: Use, target: str) -> None:
    result = use(f"import os\nos.kill({target}, 9)\n{WRITE}('alive')\n")
    if target == "1":
        assert result.text == "alive" or result.failure is ToolFailure.KILLED  # where the first process hears it
    else:
        assert result.failure in {ToolFailure.KILLED, ToolFailure.ERROR}, result
    assert result.observation is not None


SLEEP = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10**9)\n"
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


@pytest.mark.probe("T14", "sleep for ever, compute for ever, query for ever (R7, R8, Q10)")
@pytest.mark.parametrize(
    ("code", "limits"),
    [
        (SLEEP, {"wall_seconds": 3.0}),
        ("while True:\n    pass\n", {"cpu_seconds": 1.0}),
        (f"import sqlite3\nsqlite3.connect('database.sqlite').execute({ENDLESS!r}).fetchall()\n", {"cpu_seconds": 1.0}),
    ],
    ids=["sleep", "compute", "query"],
)
def test_a_tool_ends_in_time(use: Use, code: str, limits: Mapping[str, float]) -> None:
    result = use(code, **limits)
    assert result.failure is ToolFailure.TIMEOUT, result
    if "wall_seconds" in limits:
        assert result.outcomes[0].wall_seconds < limits["wall_seconds"] + LATE_SECONDS
    else:
        assert (result.outcomes[0].cpu_seconds or 0.0) < limits["cpu_seconds"] + 1


@pytest.mark.probe("T15", "allocate memory: objects, the heap of SQLite (R1)")
@pytest.mark.parametrize(
    "code",
    [
        f"taken = []\nwhile True:\n    taken.append(b'x' * {MIB})\n",
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('CREATE TABLE t (x)')\n"
        f"while True:\n    c.execute('INSERT INTO t VALUES (randomblob({MIB}))')\n",
    ],
    ids=["objects", "sqlite"],
)
def test_memory_is_bounded(use: Use, code: str) -> None:
    result = use(code, memory_bytes=96 * MIB)
    assert result.failure in {ToolFailure.MEMORY, ToolFailure.ERROR}, result
    peak = result.outcomes[0].memory_peak_bytes
    assert peak is None or peak <= 97 * MIB
