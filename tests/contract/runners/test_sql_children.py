"""The children of the answering service: what they give up, how they are watched, and that they are replaced."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.sql import QueryStatus
from tests.sql_service import SqlService

if TYPE_CHECKING:
    from conftest import Launch, Run


ASK = """
import json, os, time
from channel import Channel
from children import Children, Failure
from limits import Limits

def ask(work, seconds=0.2, body=b""):
    limits = Limits.parse({**LIMITS, "query_seconds": seconds})
    children = Children(work, limits)
    began = time.monotonic()
    answer = children.ask({"type": "query", "reverse": False}, body)
    took = time.monotonic() - began
    children.close()
    kind = [answer.status, answer.message] if isinstance(answer, Failure) else [dict(answer.head), len(answer.body)]
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return [*kind, took]
    return "a child is left"
"""
GARBAGE = {
    "nothing": "",
    "the end": "os.close(writing); time.sleep(60)",
    "no frame": "os.write(writing, b'x' * 100)",
    "a head that is no JSON": "os.write(writing, struct.pack('>II', 4, 0) + b'nope')",
    "a head that is too long": "os.write(writing, struct.pack('>II', 1 << 31, 0)); time.sleep(60)",
    "a body that is too long": "os.write(writing, struct.pack('>II', 2, 1 << 31) + b'{}'); time.sleep(60)",
    "a frame cut short": "os.write(writing, encode(Frame({'type': 'answer'}, b'xxx'))[:-1])",
    "two frames": "os.write(writing, 2 * encode(Frame({'type': 'answer'})))",
    "its death": "os.kill(os.getpid(), 11)",
}


@pytest.mark.parametrize("what", list(GARBAGE))
def test_a_child_that_sends_garbage_is_killed_and_said_to_be(run_in_runner: Run, what: str) -> None:
    work = f"import os, struct, time\nfrom frames import Frame, encode\n{ASK}\n"
    work += f"def work(reading, writing):\n    {GARBAGE[what] or 'pass'}\n    os._exit(0)\n"
    status, message, seconds = run_in_runner(f"{work}print(json.dumps(ask(work, 20)))")
    assert status == "killed"
    assert message.startswith("its process ")
    assert seconds < 20


def test_a_child_that_computes_or_sleeps_is_ended_from_outside(run_in_runner: Run) -> None:
    computing = f"{ASK}\ndef work(reading, writing):\n    while True:\n        pass\nprint(json.dumps(ask(work, 0.2)))"
    assert run_in_runner(computing)[0] == "timeout"
    sleeping = f"{ASK}\ndef work(reading, writing):\n    time.sleep(60)\nprint(json.dumps(ask(work, 0.2)))"
    assert run_in_runner(sleeping)[:2] == ["timeout", "stopped after 2 s of wall time"]


def test_the_kernel_ends_what_the_runner_does_not(run_in_runner: Run) -> None:
    code = f"{ASK}\nimport resource\ndef work(reading, writing):\n    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n"
    code += "    while True:\n        pass\nprint(json.dumps(ask(work, 20)))"
    assert run_in_runner(code)[:2] == ["timeout", "stopped after 20 s of processor time"]


def test_jobs_and_answers_larger_than_a_pipe_pass(run_in_runner: Run) -> None:
    code = f"{ASK}\ndef work(reading, writing):\n    channel = Channel(reading, writing)\n"
    code += "    channel.send({'type': 'answer'}, 5 * channel.receive().body)\n    os._exit(0)\n"
    assert run_in_runner(f"{code}print(json.dumps(ask(work, 20, b'x' * 1_000_000)))")[:2] == [
        {"type": "answer"},
        5_000_000,
    ]


def test_a_job_that_nobody_reads_is_overdue_and_blocks_nothing(run_in_runner: Run) -> None:
    code = f"{ASK}\ndef work(reading, writing):\n    time.sleep(60)\n"
    assert run_in_runner(f"{code}print(json.dumps(ask(work, 0.1, b'x' * 10_000_000)))")[0] == "timeout"


CHECK = """
import json
from answering import checked
from frames import Frame
good = {"type": "answer", "status": "ok", "message": "", "columns": ["a"], "rows": 1, "truncated": False}
changes = [
    {}, {"status": "fine"}, {"status": None}, {"message": "x" * 501}, {"message": "a\\nb"}, {"message": 1},
    {"columns": ["a"] * 501}, {"columns": [1]}, {"columns": None}, {"rows": -1}, {"rows": 11}, {"rows": True},
    {"truncated": 1}, {"type": "result"}, {"status": "error"},
]
heads = [checked(Frame({**good, **change, "extra": 1}, b"N"), 10, 10)[0] for change in changes]
print(json.dumps([heads, checked(Frame(good, b"N" * 11), 10, 10)[0]]))
"""


def test_what_a_child_says_is_kept_only_in_the_form_that_is_due(run_in_runner: Run) -> None:
    heads, too_long = run_in_runner(CHECK)
    assert heads[0] == {"status": "ok", "message": "", "columns": ["a"], "rows": 1, "truncated": False}
    assert {head["status"] for head in [*heads[1:], too_long]} == {"killed"}
    assert {head["rows"] for head in [*heads[1:], too_long]} == {0}


CONFINE = """
import ctypes, json, os, platform, resource, socket
import syscalls
from confinement import confine
from limits import Limits

secret = os.open("/dev/null", os.O_RDONLY)
os.dup2(secret, 40)
os.set_inheritable(40, True)
reading, writing = os.pipe()
runner = os.getpid()
libc = ctypes.CDLL(None, use_errno=True)

def tried(what):
    try:
        what()
    except OSError as error:
        return error.errno
    return 0

def called(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def look():
    confine((writing,), Limits.parse(LIMITS))
    found = {
        "descriptors": [number for number in range(1024) if tried(lambda: os.fstat(number)) == 0],
        "null": [os.readlink(f"/proc/self/fd/{n}") for n in range(3)],
        "limits": [resource.getrlimit(which) for which in (
            resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_AS)],
        "dumpable": libc.prctl(3, 0, 0, 0, 0),
    }
    syscalls.forbid_the_rest()
    found["tried"] = {
        "open": tried(lambda: open("/etc/passwd")),
        "memory": tried(lambda: os.open(f"/proc/{runner}/mem", os.O_RDONLY)),
        "environment": tried(lambda: os.open(f"/proc/{runner}/environ", os.O_RDONLY)),
        "descriptor": tried(lambda: os.open(f"/proc/{runner}/fd/0", os.O_RDONLY)),
        "fork": tried(os.fork),
        "exec": tried(lambda: os.execv("/bin/true", ["true"])),
        "kill": tried(lambda: os.kill(runner, 0)),
        "socket": tried(socket.socket),
    }
    if platform.machine() == "x86_64":
        found["tried"] |= {
            "vfork": tried(lambda: called(58)),
            "ptrace": tried(lambda: called(101, 16, runner, 0, 0)),
            "prctl": tried(lambda: called(157, 15, b"x")),
            "prlimit64": tried(lambda: called(302, 0, 0, 0, 0)),
            "pidfd_open": tried(lambda: called(434, runner, 0)),
            "getpid of the x32 ABI": tried(lambda: called(0x40000000 | 39)),
        }
    return found

if os.fork() == 0:
    try:
        os.write(writing, json.dumps(look()).encode())
    except BaseException as error:
        os.write(writing, json.dumps(repr(error)).encode())
    os._exit(0)
print(os.read(reading, 1 << 16).decode())
"""


def test_a_child_has_nothing_left_to_reach_out_with(run_in_runner: Run) -> None:
    found = run_in_runner(CONFINE)
    assert isinstance(found, dict), found
    assert len(found["descriptors"]) == 4  # three times /dev/null, and the one that is to be kept
    assert set(found["null"]) == {"/dev/null"}
    assert found["limits"] == [[0, 0], [0, 0], [12, 13], [512 << 20, 512 << 20]]
    assert found["dumpable"] == 0
    assert set(found["tried"].values()) == {1}, found["tried"]  # EPERM


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_killed_child_is_the_querys_ending_and_the_next_one_is_fresh(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "database.sqlite").touch()
    runner = launch("sql", "--database", str(tmp_path / "database.sqlite"))
    service = SqlService(lambda frame: runner.send(frame.head, frame.body), runner.receive)
    service.open()
    before = set(children(runner.process.pid))
    assert len(before) == 2  # the one that watches the channel, and the child in waiting
    spare = max(before)
    os.kill(spare, signal.SIGKILL)
    answered = service.query("SELECT 1")
    assert (answered.status, answered.message) == (QueryStatus.KILLED, "its process was ended by signal 9")
    after = set(children(runner.process.pid))
    assert len(after) == 2
    assert spare not in after
    assert service.query("SELECT 1").value == 1
    assert after != set(children(runner.process.pid))  # a query has a child of its own


def test_children_end_with_their_runner(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "database.sqlite").touch()
    runner = launch("sql", "--database", str(tmp_path / "database.sqlite"))
    service = SqlService(lambda frame: runner.send(frame.head, frame.body), runner.receive)
    service.open()
    assert service.query("SELECT 1").value == 1
    left = children(runner.process.pid)
    runner.process.kill()
    runner.process.wait()
    deadline = time.monotonic() + 10
    while any(is_running(pid) for pid in left):
        assert time.monotonic() < deadline
    assert len(left) == 2


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
