"""X: what a run leaves for the next (nothing), and what an instance can leave for the next in the same evaluation."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hostility import RUN, attack, hostile

from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Purpose
from orchestrator.domain.verdicts import Verdict
from orchestrator.ports import AnalysisResult, SessionRequest
from orchestrator.runtime.workers import spawn
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine

pytestmark = pytest.mark.docker

Analyse = Callable[..., AnalysisResult]
Evaluate = Callable[..., Verdict]
LEAVE = attack("leave")
LOOK = attack("look")


@pytest.fixture
def marker() -> str:
    return f"m{secrets.token_hex(12)}"


@pytest.mark.probe("X1", "write a marker to every writable place; the next run looks")
def test_no_file_is_left_for_the_next_run(analyse: Analyse, marker: str) -> None:
    assert int(analyse(LEAVE.replace("MARKER", marker)).output) >= 2
    assert analyse(LOOK.replace("MARKER", marker)).output == b"[] True\n"


@pytest.mark.probe("X2", "leave a process running")
def test_no_process_is_left(analyse: Analyse, engine: Engine, audit: Any, marker: str) -> None:
    analyse(LEAVE.replace("MARKER", marker))
    assert engine.inspect(audit.records[-1].container_id) is None
    assert engine.containers({"evolvarium.run": RUN}) == []


@pytest.mark.probe("X5", "change the image or the volume that the next run uses")
def test_the_next_run_gets_the_same_image_and_data(analyse: Analyse, audit: Any, public_text: bytes) -> None:
    spoil = (
        "import os\nfor place in ('data/public.txt', '/work/data/public.txt', '/opt/evolvarium/runner/script.py'):\n"
        "    try:\n        open(place, 'w').write('spoilt')\n    except OSError as error:\n        print(error.errno)\n"
    )
    assert len(analyse(spoil).output.split()) == 3
    assert analyse("print(open('data/public.txt').read(), end='')").output == public_text
    first, second = (record for record in audit.records[-2:] if record.purpose == "analysis")
    assert (first.image_digest, first.mounts) == (second.image_digest, second.mounts)


@pytest.mark.probe("X6", "get a container from the pool that somebody has touched")
def test_a_pool_hands_out_each_container_once(sandbox: DockerSandbox) -> None:
    request = SessionRequest(purpose=Purpose.ANALYSIS, run_id=f"{RUN}-pool", attempt_id="probe")
    sandbox.warm(request, 1)
    seen = []
    try:
        for _ in range(3):
            with sandbox.session(request) as session:
                table, body = pack_blobs(
                    {"analysis.py": b"import os\nprint(os.listdir('/tmp'))\nopen('/tmp/x', 'w')\n"}
                )
                session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))
                frame = session.receive()
                seen.append((b"" if frame is None else frame.body, session.finish(Ending.OK).ending))
    finally:
        sandbox.warm(request, 0)
    assert seen == [(b"[]\n", Ending.OK)] * 3


@pytest.mark.probe("X7", "collide with or guess another container's name, user or folder")
def test_names_and_users_are_of_their_own(sandbox: DockerSandbox, engine: Engine) -> None:
    request = SessionRequest(purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="probe")
    with sandbox.session(request), sandbox.session(request):
        found = [engine.inspect(str(container["Id"])) or {} for container in engine.containers({"evolvarium.run": RUN})]
        assert len(found) == 2
        assert len({one["Name"] for one in found}) == 2
        assert all(len(one["Name"].rpartition("-")[2]) >= 16 for one in found)  # 64 random bits
        assert len({one["Config"]["User"] for one in found}) == 2


CARRY = """
import mmap, os
page = mmap.mmap(-1, 4096)
def priority(item, bins):
    seen = int.from_bytes(page[:8], "little") + 1
    page[:8] = seen.to_bytes(8, "little")
    if seen == 1000:
        print("this page has seen", seen, "calls")
    return item - bins.astype("float64")
"""


@pytest.mark.probe("X8", "carry state from instance to instance by a shared mapping, then to the next evaluation")
def test_what_a_hostile_program_carries_ends_with_its_evaluation(
    evaluate: Evaluate, best_fit: Mapping[str, float], marker: str
) -> None:
    verdict = evaluate(hostile(CARRY + LEAVE.replace("MARKER", marker)))
    assert verdict.metrics is not None, verdict.failure
    assert b"this page has seen 1000 calls" in verdict.outcome.output  # 120 items an instance: so it is carried
    assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]
    after = evaluate(hostile(LOOK.replace("MARKER", marker)))
    assert after.metrics is not None
    assert after.outcome.output.startswith(b"[] True\n"), after.outcome.output


COUNT = """
calls = 0
first = []
def priority(item, bins):
    global calls
    calls += 1
    first.append(item)
    if calls != len(first) or calls > 120:
        raise RuntimeError
    return (item if calls == len(first) else -item) - bins.astype("float64")
"""


@pytest.mark.probe("X9", "an honest program counts and remembers, and meets every instance afresh")
def test_honest_state_does_not_cross_instances(evaluate: Evaluate, best_fit: Mapping[str, float]) -> None:
    verdict = evaluate(hostile(COUNT))
    assert verdict.metrics is not None, verdict.failure
    assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]


@pytest.mark.probe("X10", "meet a container of another run that is alive: processes, memory, IPC, abstract sockets")
def test_two_live_runs_see_nothing_of_each_other(analyse: Analyse, marker: str) -> None:
    stay = (
        "import ctypes, mmap, os, socket, sys, time\nsys.argv.append('MARKER')\n"
        "own = socket.socket(socket.AF_UNIX)\nown.bind('\\0MARKER')\nown.listen()\n"
        "open('/dev/shm/MARKER', 'w').write('MARKER')\nprint('ready', flush=True)\ntime.sleep(5)\n"
    ).replace("MARKER", marker)
    ready = threading.Event()
    staying = spawn("staying", lambda: (ready.set(), analyse(stay))[1])
    assert ready.wait(10)
    looks = [analyse(LOOK.replace("MARKER", marker)).output for _ in range(2)]
    assert staying.join(60)
    assert staying.result().output == b"ready\n"
    assert looks == [b"[] True\n"] * 2


@pytest.mark.probe("X11", "evaluations side by side: hostile beside honest")
def test_an_honest_program_scores_the_same_beside_a_hostile_one(
    evaluate: Evaluate, best_fit: Mapping[str, float], task: Any
) -> None:
    burn = "import os\nfor _ in range(3):\n    os.fork()\nwhile True:\n    pass\n"
    beside = spawn("hostile", lambda: evaluate(hostile(burn), load_cpu_seconds=4.0))
    assert evaluate(task.initial).metrics == best_fit
    assert beside.join(120)
    failure = beside.result().failure
    assert failure is not None
    assert failure.ending in {Ending.TIMEOUT, Ending.PROCESSES}
