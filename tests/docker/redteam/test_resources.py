"""R: use everything up, refuse to end, talk too much; each ends as it should, in time, and the host stays as it was."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostility import RUN

from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MIB, Policy, Purpose, Runtime
from orchestrator.ports import AnalysisResult, SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine

pytestmark = pytest.mark.docker

Analyse = Callable[..., AnalysisResult]
LATE_SECONDS = 2.0
"""A run past its deadline is gone by then."""
OWN_GROWTH_BYTES = 32 * MIB
"""What a program prints may cost us no more memory than this."""


def free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


@pytest.mark.probe("R1", "allocate ten times the limit")
def test_memory_beyond_the_limit_is_refused_and_the_host_keeps_its_own(analyse: Analyse, policy: Policy) -> None:
    limit = policy.purposes[Purpose.ANALYSIS].limits.memory_bytes // 8
    before = free_bytes()
    result = analyse(f"print(len(bytearray({10 * limit})))", memory_bytes=limit)
    assert result.outcome.ending in {Ending.MEMORY, Ending.ERROR}
    greedy = f"taken = []\nfor _ in range({10 * limit // MIB}):\n    taken.append(b'x' * {MIB})\nprint('took it all')\n"
    result = analyse(greedy, memory_bytes=limit)
    assert result.outcome.ending is Ending.MEMORY
    assert b"took it all" not in result.output
    assert before - free_bytes() < 5 * limit


@pytest.mark.probe("R4", "fork bomb")
def test_a_fork_bomb_ends_at_once(analyse: Analyse, expected: Mapping[str, Any]) -> None:
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    result = analyse(bomb, wall_seconds=10)
    assert result.outcome.ending in expected["bomb-endings"]
    assert result.outcome.wall_seconds < expected["bomb-seconds"]


@pytest.mark.probe("R5", "thread bomb")
def test_a_thread_bomb_ends_at_once(analyse: Analyse, expected: Mapping[str, Any]) -> None:
    bomb = (
        "import threading, time\nwhile True:\n    try:\n"
        "        threading.Thread(target=time.sleep, args=(999,)).start()\n    except RuntimeError:\n        pass\n"
    )
    result = analyse(bomb, wall_seconds=10)
    assert result.outcome.ending in expected["bomb-endings"]
    assert result.outcome.wall_seconds < 10 + LATE_SECONDS


@pytest.mark.probe("R7", "busy loops on every processor")
def test_busy_loops_use_the_granted_processor_time_and_no_more(analyse: Analyse, expected: Mapping[str, Any]) -> None:
    burn = "import os\nfor _ in 'ab':\n    os.fork()\nwhile True:\n    pass\n"
    granted = 2.0
    result = analyse(burn, cpu_seconds=granted, cpus=1)
    assert result.outcome.ending is Ending.TIMEOUT
    if expected["cpu-is-counted"]:
        assert result.outcome.cpu_seconds is not None
        assert granted <= result.outcome.cpu_seconds < granted + 1
        assert result.outcome.wall_seconds > granted / 1.5  # one processor's worth, not four


@pytest.mark.probe("R8", "sleep for ever and ignore every signal")
def test_ignored_signals_do_not_delay_the_end(analyse: Analyse) -> None:
    deaf = (
        "import signal, time\nfor n in range(1, signal.NSIG):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "time.sleep(10**9)\n"
    )
    result = analyse(deaf, wall_seconds=2)
    assert result.outcome.ending is Ending.TIMEOUT
    assert 2 <= result.outcome.wall_seconds < 2 + LATE_SECONDS


@pytest.mark.probe("R9", "close stdout and sleep; leave a daemon behind and exit 0")
def test_a_daemon_does_not_outlive_its_parent(analyse: Analyse, sandbox: DockerSandbox) -> None:
    quiet = analyse("import os, time\nos.closerange(0, 256)\ntime.sleep(999)\n", wall_seconds=2)
    assert quiet.outcome.ending is Ending.TIMEOUT
    daemon = "import os, time\nif os.fork() == 0:\n    os.closerange(0, 256)\n    time.sleep(999)\nprint('done')\n"
    left = analyse(daemon, wall_seconds=20)
    assert left.output == b"done\n"
    assert left.outcome.ending is Ending.OK
    assert left.outcome.wall_seconds < 10
    assert sandbox.live_containers(RUN) == 0


@pytest.mark.probe("R15", "fork twice, new sessions, other process groups")
def test_what_leaves_its_session_ends_all_the_same(analyse: Analyse, sandbox: DockerSandbox) -> None:
    escape = (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            os.setpgid(0, 0)\n            while True:\n                time.sleep(1)\n        os._exit(0)\n"
        "print('done')\n"
    )
    result = analyse(escape, wall_seconds=20)
    assert (result.outcome.ending, result.output) == (Ending.OK, b"done\n"), result.outcome
    assert sandbox.live_containers(RUN) == 0


FLOODS = {
    "one endless line": "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n",
    "single bytes": "import os\nwhile True:\n    os.write(1, b'x')\n",
    "stderr": "import os\nwhile True:\n    os.write(2, b'y\\n' * 32768)\n",
    "both in turn": "import os\nwhile True:\n    os.write(1, b'x' * 4096)\n    os.write(2, b'y' * 4096)\n",
}


@pytest.mark.probe("R11", "floods: no line end, single bytes, stderr, both in turn")
def test_a_flood_is_cut_and_ended_and_costs_us_nothing(analyse: Analyse, policy: Policy) -> None:
    limits = policy.purposes[Purpose.ANALYSIS].limits
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for name, flood in FLOODS.items():
        most = 20_000 if name == "single bytes" else limits.output_kill_bytes
        result = analyse(flood, output_kill_bytes=most)
        assert result.outcome.ending is Ending.OUTPUT_LIMIT, name
        assert len(result.output) <= limits.output_bytes
        assert result.omitted_bytes > 0 or most < limits.output_bytes
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < OWN_GROWTH_BYTES


@pytest.mark.probe("R12", "flood a reader that has stopped reading, then be killed")
def test_the_engine_answers_while_and_after_a_flood_that_nobody_reads(sandbox: DockerSandbox, engine: Engine) -> None:
    table, body = pack_blobs({"analysis.py": FLOODS["one endless line"].encode()})
    with sandbox.session(SessionRequest(purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="probe")) as session:
        session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))
        time.sleep(3)
        asked = time.monotonic()
        engine.info()
        assert time.monotonic() - asked < 5
        stopping = time.monotonic()
        session.finish(Ending.NO_RESULT)
        assert time.monotonic() - stopping < 5
    asked = time.monotonic()
    engine.info()
    assert time.monotonic() - asked < 5


@pytest.mark.probe("R17", "clock games: patched clocks, a set clock, a stopped clock")
def test_time_is_measured_where_it_cannot_be_changed(analyse: Analyse) -> None:
    liar = (
        "import time, ctypes\nreal = time.sleep\ntime.time = time.monotonic = lambda: 0.0\n"
        "try:\n    time.clock_settime(time.CLOCK_REALTIME, 0)\n    print('set')\nexcept OSError as error:\n"
        "    print(error.errno)\nwhile True:\n    real(0.1)\n"
    )
    result = analyse(liar, wall_seconds=2)
    assert result.output == b"1\n"
    assert result.outcome.ending is Ending.TIMEOUT
    assert 2 <= result.outcome.wall_seconds < 2 + LATE_SECONDS


@pytest.mark.probe("R20", "kill(1), kill(-1), kill the runner, kill itself")
@pytest.mark.parametrize("target", ["1", "-1", "os.getppid()", "os.getpid()"])
def test_a_killer_is_never_a_success(analyse: Analyse, target: str, runtime: Runtime) -> None:
    result = analyse(f"import os, time\nos.kill({target}, 9)\ntime.sleep(1)\nos._exit(3)\n", wall_seconds=20)
    assert result.outcome.ending in {Ending.KILLED, Ending.NO_RESULT, Ending.ERROR}, (runtime, result.outcome)
