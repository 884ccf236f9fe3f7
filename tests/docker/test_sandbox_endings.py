"""Hostile programs and scripts in real containers: each gets its proper ending in time, and nothing stays behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MIB, Purpose
from orchestrator.errors import Cancelled, SandboxError
from orchestrator.ports import SessionRequest
from orchestrator.runtime.workers import spawn
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from tests.docker.redteam.hostility import CHANNEL
from tests.this_run import RUN

pytestmark = pytest.mark.docker

Run = Callable[..., Any]


def cpu_quota(engine: Engine, container: str) -> Path | None:
    """Where a container's share of the processors is set; None: version 2 of control groups, or another machine."""
    pid = (engine.inspect(container) or {})["State"]["Pid"]
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    group = next((line.split(":", 2)[2] for line in lines if "cpu" in line.split(":")[1].split(",")), "none")
    quota = Path("/sys/fs/cgroup/cpu") / group.lstrip("/") / "cpu.cfs_quota_us"
    return quota if os.access(quota, os.W_OK) else None


@pytest.fixture(autouse=True)
def _nothing_is_left(sandbox: DockerSandbox) -> Any:
    yield
    assert sandbox.live_containers(RUN) == 0


# Programs that end, or do not, without saying how


def test_an_honest_program_is_ok(load: Run) -> None:
    ended = load("a = 1\n")
    assert [frame.type for frame in ended.frames] == ["inspected", "loaded"]
    assert ended.ending is Ending.OK
    assert ended.outcome.memory_peak_bytes > MIB


def test_a_program_that_raises_is_an_error(load: Run) -> None:
    assert load("1 / 0\n").ending is Ending.ERROR


@pytest.mark.parametrize(
    ("code", "ending"), [(0, Ending.NO_RESULT), (1, Ending.ERROR), (137, Ending.KILLED), (139, Ending.KILLED)]
)
def test_s13_an_exit_without_a_result_is_never_ok(load: Run, code: int, ending: Ending) -> None:
    ended = load(f"import os\nos._exit({code})\n")
    assert ended.ending is ending
    assert ended.outcome.exit_code == code


def test_s13_leaving_through_sys_exit_is_not_ok(load: Run) -> None:
    assert load("import sys\nsys.exit(0)\n").ending is not Ending.OK


@pytest.mark.parametrize("target", ["os.getpid()", "-1", "os.getppid()"])
def test_r20_a_program_that_kills_what_it_can_is_killed_or_goes_on_and_never_a_success(load: Run, target: str) -> None:
    program = f"import os, time\nos.kill({target}, 9)\ntime.sleep(0.3)\nos._exit(0)\n"
    assert load(program).ending in (Ending.KILLED, Ending.NO_RESULT)


def test_r20_pid_1_cannot_be_killed_from_inside(load: Run) -> None:
    assert load("import os\nos.kill(1, 9)\n").ending in (Ending.OK, Ending.ERROR)


def test_r8_a_program_that_sleeps_and_ignores_signals_ends_at_its_deadline(load: Run) -> None:
    program = "import signal, time\nfor n in (2, 14, 15):\n    signal.signal(n, signal.SIG_IGN)\ntime.sleep(9e5)\n"
    start = time.monotonic()
    ended = load(program, wall_seconds=1.5)
    assert ended.ending is Ending.TIMEOUT
    assert "wall_seconds" in ended.outcome.detail
    assert 1.5 <= ended.outcome.wall_seconds < 1.5 + 2
    assert time.monotonic() - start < 1.5 + 2 + 3  # start-up and removal included


def compute_without_a_processor(sandbox: DockerSandbox, engine: Engine, request: SessionRequest) -> None:
    table, body = pack_blobs({"program.py": b"while True:\n    pass\n"})
    with sandbox.session(request) as session:
        quota = cpu_quota(engine, session._container.id)
        if quota is None:
            pytest.skip("the control groups of containers cannot be written here")
        functions = {"f": {"arguments": [], "returns": {"dtype": "float64"}}}  # without any it would end by itself
        session.send(Frame({"type": "start", "blobs": table, "entry": "program.py", "functions": functions}, body))
        quota.write_text("1000")  # of 100,000 microseconds: as if others took the processors
        while session.receive() is not None:
            pass
        session.finish(Ending.NO_RESULT)


def test_a_program_that_got_no_processor_is_not_blamed_for_the_time(
    sandbox: DockerSandbox, engine: Engine, request_for: Callable[..., SessionRequest]
) -> None:
    with pytest.raises(SandboxError, match="no processor to run on"):
        compute_without_a_processor(sandbox, engine, request_for(Purpose.CANDIDATE, wall_seconds=4.0))


def test_r7_a_busy_loop_ends_at_its_cpu_limit(load: Run) -> None:
    ended = load("while True:\n    pass\n", cpu_seconds=1.0, wall_seconds=30)
    assert ended.ending is Ending.TIMEOUT
    assert "cpu_seconds" in ended.outcome.detail
    assert 1.0 <= ended.outcome.cpu_seconds < 2.0


def test_cpu_time_is_counted_over_forks(load: Run) -> None:
    program = (
        "import os, time\nfor _ in 'abc':\n    if os.fork() == 0:\n        while 1:\n            pass\ntime.sleep(99)"
    )
    ended = load(program, cpu_seconds=1.0, wall_seconds=30)
    assert ended.ending is Ending.TIMEOUT
    assert "cpu_seconds" in ended.outcome.detail


def test_a_cap_on_cpu_time_holds_until_it_is_raised(sandbox: DockerSandbox, request_for: Run, start_of: Run) -> None:
    program = start_of("while True:\n    pass\n")
    with sandbox.session(request_for(Purpose.CANDIDATE, wall_seconds=30)) as session:
        session.cap_cpu(0.5)
        session.send(program)
        while session.receive() is not None:
            pass
        outcome = session.finish(Ending.NO_RESULT)
    assert outcome.ending is Ending.TIMEOUT
    assert outcome.cpu_seconds is not None
    assert 0.5 <= outcome.cpu_seconds < 1.5


# Memory and processes


def test_r1_a_program_out_of_memory_is_memory(load: Run) -> None:
    ended = load("x = bytearray(1 << 30)\n", memory_bytes=64 * MIB)
    assert ended.ending is Ending.MEMORY


def test_r1_a_child_out_of_memory_is_memory_although_its_parent_goes_on(load: Run) -> None:
    program = "import os\nif os.fork() == 0:\n    x = bytearray(1 << 30)\n    os._exit(0)\nos.wait()\n"
    assert load(program, memory_bytes=64 * MIB).ending is Ending.MEMORY


def test_r3_memory_in_files_is_charged(analyse: Run) -> None:
    script = "import os\nfor place in ('/tmp/x', '/work/x'):\n    open(place, 'wb').write(bytes(30 << 20))\n"
    assert analyse(script, memory_bytes=48 * MIB).ending is Ending.MEMORY


def test_r4_a_fork_bomb_ends_within_a_second_as_processes(load: Run) -> None:
    program = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    ended = load(program, pids=64)
    assert ended.ending is Ending.PROCESSES
    assert ended.outcome.wall_seconds < 2


def test_r5_a_thread_bomb_is_processes(load: Run) -> None:
    program = "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(99,)).start()\n"
    assert load(program, pids=64).ending is Ending.PROCESSES


def test_r15_processes_in_sessions_of_their_own_die_with_the_container(load: Run) -> None:
    program = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 256)\n    time.sleep(999)\n"
    assert load(program).ending is Ending.OK


def test_r10_a_full_tmpfs_is_enospc_inside_and_harmless(analyse: Run) -> None:
    script = (
        "try:\n    open('/tmp/x', 'wb').write(bytes(99 << 20))\nexcept OSError as error:\n    print(error.strerror)\n"
    )
    assert analyse(script, tmpfs_bytes=8 * MIB).printed == b"No space left on device\n"


# Output


def test_r11_a_flood_of_stderr_is_cut_and_killed(load: Run) -> None:
    ended = load("import os\nwhile True:\n    os.write(2, b'x' * 65536)\n", output_bytes=10_000, output_kill_bytes=MIB)
    assert ended.ending is Ending.OUTPUT_LIMIT
    assert ended.outcome.output_truncated
    assert len(ended.outcome.output) <= 10_000


def test_r11_what_is_printed_is_kept_whole_below_the_limit_and_is_no_frame(load: Run) -> None:
    ended = load("print('a line without a frame')\n")
    assert ended.ending is Ending.OK
    assert ended.outcome.output == b"a line without a frame\n"
    assert not ended.outcome.output_truncated


def test_r11_one_byte_writes_are_cut_too(load: Run) -> None:
    ended = load("import os\nwhile True:\n    os.write(2, b'x')\n", output_kill_bytes=20_000, cpu_seconds=30)
    assert ended.ending is Ending.OUTPUT_LIMIT


def test_r11_a_flood_of_frames_ends_at_channel_bytes(analyse: Run) -> None:
    ended = analyse("import os\nwhile True:\n    os.write(1, b'x' * 65536)\n", channel_bytes=4 * MIB)
    assert ended.ending is Ending.OUTPUT_LIMIT
    assert len(ended.printed) <= 4 * MIB


def test_r12_a_flood_that_nobody_reads_ends_and_can_be_killed(sandbox: DockerSandbox, request_for: Run) -> None:
    table, body = pack_blobs({"analysis.py": b"import os\nwhile True:\n    os.write(1, b'x' * 65536)\n"})
    with sandbox.session(request_for(Purpose.ANALYSIS)) as session:
        session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))
        time.sleep(2)  # frames pile up until our side stops reading
        start = time.monotonic()
        outcome = session.finish(Ending.NO_RESULT)
        assert time.monotonic() - start < 3
    assert outcome.ending is Ending.NO_RESULT


# Forged and broken frames


def test_s7_a_forged_frame_is_only_a_claim_and_the_exit_after_it_counts(load: Run) -> None:
    program = CHANNEL + 'frame(b\'{"type":"loaded"}\')\nos._exit(1)\n'
    ended = load(program)
    assert ended.frames[-1].type == "loaded"
    assert ended.ending in (Ending.OK, Ending.ERROR)  # OK when the end came after ours


@pytest.mark.parametrize(
    "data",
    [
        "b'\\xff' * 4096",
        "struct.pack('>II', 1 << 20, 0)",
        "struct.pack('>II', 2, 1 << 30)",
        "struct.pack('>II', 2, 0) + b'[]'",
        'struct.pack(\'>II\', 21, 0) + b\'{"type":1,"type":"a"}\'',
        'struct.pack(\'>II\', 20, 0) + b\'{"type":"a","x":NaN}\'',
        "struct.pack('>II', 900, 0) + b'{\"type\":\"a\",\"x\":' + b'[' * 884",
    ],
)
def test_s9_broken_frames_are_an_invalid_result(load: Run, data: str) -> None:
    ended = load(CHANNEL + f"put({data})\nimport time\ntime.sleep(30)\n")
    assert ended.ending is Ending.INVALID_RESULT


def test_a_frame_that_never_ends_is_a_timeout(load: Run) -> None:
    program = CHANNEL + "put(struct.pack('>II', 20, 0) + b'{')\nimport time\ntime.sleep(99)\n"
    assert load(program, wall_seconds=1.5).ending is Ending.TIMEOUT


def test_a_frame_cut_off_by_the_end_is_an_invalid_result(load: Run) -> None:
    assert load(CHANNEL + "put(struct.pack('>II', 20, 0) + b'{')\nos._exit(0)\n").ending is Ending.INVALID_RESULT


def test_an_endless_body_does_not_grow_our_memory_past_one_frame(load: Run) -> None:
    program = CHANNEL + 'frame(b\'{"type":"x"}\', bytes(17 << 20))\nimport time\ntime.sleep(30)\n'
    assert load(program).ending is Ending.INVALID_RESULT


def test_a_container_that_does_not_read_is_a_timeout_for_whoever_sends(
    sandbox: DockerSandbox, request_for: Run, start_of: Run
) -> None:
    program = start_of("import time\ntime.sleep(999)\n")
    with sandbox.session(request_for(Purpose.CANDIDATE, wall_seconds=2)) as session:
        session.send(program)
        start = time.monotonic()
        session.send(Frame({"type": "call"}, bytes(32 * MIB)))
        assert time.monotonic() - start < 2 + 2
        assert session.receive() is None or session.receive() is None
        assert session.finish(Ending.NO_RESULT).ending is Ending.TIMEOUT


# Stopping


def test_cancel_from_another_thread_ends_a_waiting_session_at_once(
    sandbox: DockerSandbox, request_for: Run, start_of: Run, audit: Any
) -> None:
    program = start_of("import time\ntime.sleep(999)\n")
    start = time.monotonic()
    with pytest.raises(Cancelled), sandbox.session(request_for(Purpose.CANDIDATE)) as session:  # noqa: PT012 - one use
        session.send(program)
        spawn("cancel", lambda: (time.sleep(0.3), session.cancel()))
        while session.receive() is not None:
            pass
    assert time.monotonic() - start < 5
    assert audit.records[-1].ending == "cancelled"


def test_an_exception_in_the_block_destroys_the_container_and_is_what_is_raised(
    sandbox: DockerSandbox, request_for: Run, audit: Any
) -> None:
    with pytest.raises(ZeroDivisionError), sandbox.session(request_for(Purpose.CANDIDATE)):
        _ = 1 / 0
    assert sandbox.live_containers(RUN) == 0
    assert audit.records[-1].ending == "cancelled"
    assert "ZeroDivisionError" in audit.records[-1].detail


def test_every_run_leaves_one_record_that_tells_what_went_in_and_out(load: Run, audit: Any) -> None:
    before = len(audit.records)
    ended = load("a = 1\n")
    load("a = 2\n")
    first, second = audit.records[before:]
    assert first.ending == ended.ending == "ok"
    assert first.input_digest != second.input_digest
    assert first.output_digest == second.output_digest  # the same frames came back
    assert first.uid != second.uid
    assert first.image_digest.startswith("sha256:")
    assert first.limits["pids"] > 0


def test_eight_threads_get_eight_containers_and_leave_none(load: Run) -> None:
    endings: list[Ending] = []
    lock = threading.Lock()

    def work() -> None:
        ending = load("a = 1\n").ending
        with lock:
            endings.append(ending)

    workers = [spawn(f"load-{n}", work) for n in range(8)]
    assert all(worker.join(120) for worker in workers)
    assert endings == [Ending.OK] * 8


def test_a_session_that_was_never_used_ends_without_a_result(sandbox: DockerSandbox, request_for: Run) -> None:
    with sandbox.session(request_for(Purpose.CANDIDATE)) as session:
        pass
    assert session.finish().ending is Ending.NO_RESULT


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        ("/tmp", "f.write(b'x' * 100_000)"),  # noqa: S108 - in the container
        ("/tmp", "open(f'/tmp/{next(n)}', 'w').close()"),  # noqa: S108 - likewise
        ("/dev/shm", "f.write(b'x' * 100_000)"),  # noqa: S108 - likewise
    ],
)
def test_r10_a_script_that_fills_a_disk_is_told_from_one_that_breaks_the_runner(
    analyse: Run, place: str, fill: str
) -> None:
    script = (
        f"import itertools\nn = itertools.count()\nf = open('{place}/x', 'wb', 0)\n"
        f"try:\n    while True:\n        {fill}\nexcept OSError as error:\n    print(error.strerror)\n"
    )
    ended = analyse(script)
    assert ended.printed == b"No space left on device\n"
    assert ended.frames[-1].head == {"type": "done", "exit_code": 0, "signal": None, "disk_full": True}
    assert ended.ending is Ending.OK
