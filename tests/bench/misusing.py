"""What code that does its worst can take: memory of this process, and time past its deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Purpose
from orchestrator.errors import PrerequisiteError, SandboxError
from orchestrator.evaluation.analyst import SCRIPT, SandboxAnalyst
from orchestrator.ports import Session
from tests.bench.figures import Figure
from tests.bench.workbench import Workbench

GROWTH_MIB = 32.0
OVERRUN_SECONDS = 2.0
_WALL_SECONDS = 2.0
_UNREAD_SECONDS = 8.0  # longer than a channel waits for a reader
_PROC = Path("/proc/self")

_FLOOD = b"import os\nblock = b'x' * 65536\nwhile True:\n    os.write(1, block)\n"
_DRIP = b"import os\nwhile True:\n    os.write(2, b'x')\n"
_PRINTING = b"while True:\n    print('x' * 65536)\n\ndef priority(item, bins):\n    return bins * 1.0\n"

_OVERRUNNERS = {
    "deaf": b"import signal, time\nfor number in (1, 2, 14, 15):\n    signal.signal(number, 1)\ntime.sleep(10**6)\n",
    "busy": b"import os\nos.fork()\nwhile True:\n    pass\n",
    "detached": b"import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 99)\ntime.sleep(10**6)\n",
    "talking": b"import time\nwhile True:\n    print('x' * 1000, flush=True)\n    time.sleep(0.001)\n",
}


def memory_growth(bench: Workbench) -> Figure:
    """The most this process grows while code floods each of its outputs, read and unread; the first thing to measure.

    Raises:
        PrerequisiteError: The kernel does not tell the peak.
        SandboxError: A flood ended in another way than it must.
    """
    _analyse(bench, b"print(1)\n")  # what is loaded at the first use is no growth
    floods: dict[str, Callable[[], Ending]] = {
        "analysis": lambda: _analyse(bench, _FLOOD),
        "single bytes": lambda: _analyse(bench, _DRIP),
        "unread": lambda: _unread(bench),
        "candidate": lambda: _load(bench),
    }
    before = _reset_peak()
    growth, endings = 0.0, []
    for name, flood in floods.items():
        ending = flood()
        if ending not in {Ending.OUTPUT_LIMIT, Ending.TIMEOUT}:
            msg = f"the flood {name!r} ended with {ending.value}"
            raise SandboxError(msg)
        grown = max(0.0, _status_mib("VmHWM") - before)
        growth = max(growth, grown)
        endings.append(f"{name} {grown:.1f}")
    return Figure(
        what="growth of our own memory under floods of output",
        value=growth,
        unit="MiB",
        at_most=GROWTH_MIB,
        detail=f"peak over {before:.0f} MiB, MiB after each flood: {', '.join(endings)}",
    )


def deadline_overrun(bench: Workbench) -> Figure:
    """Time from the deadline until the run is over and its container is gone, for code that will not stop.

    Raises:
        SandboxError: A run ended in another way than by its deadline.
    """
    overruns = {name: _overrun(bench, name, script) for name, script in _OVERRUNNERS.items()}
    return Figure(
        what="a run past its deadline",
        value=max(overruns.values()),
        unit="s",
        at_most=OVERRUN_SECONDS,
        detail="the longest of " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in overruns.items()),
    )


def _overrun(bench: Workbench, name: str, script: bytes) -> float:
    with bench.sandbox.session(bench.request(Purpose.ANALYSIS, wall_seconds=_WALL_SECONDS)) as session:
        began = time.monotonic()
        _start(session, script)
        while session.receive() is not None:
            pass
        outcome = session.finish()
        seconds = time.monotonic() - began - _WALL_SECONDS
    if outcome.ending is not Ending.TIMEOUT:
        msg = f"the run {name!r} ended with {outcome.ending.value} instead of its deadline: {outcome.detail}"
        raise SandboxError(msg)
    return seconds


def _analyse(bench: Workbench, script: bytes) -> Ending:
    analyst = SandboxAnalyst(bench.sandbox, bench.task)
    tree = FileTree({SCRIPT: script})
    return analyst.analyse(tree, run_id=bench.run_id, attempt_id="bench").outcome.ending


def _unread(bench: Workbench) -> Ending:
    """Nobody takes what comes."""
    with bench.sandbox.session(bench.request(Purpose.ANALYSIS)) as session:
        _start(session, _FLOOD)
        time.sleep(_UNREAD_SECONDS)
        return session.finish(Ending.NO_RESULT).ending


def _load(bench: Workbench) -> Ending:
    functions = bench.task.functions()
    table, body = pack_blobs({"program.py": _PRINTING})
    with bench.sandbox.session(bench.request(Purpose.CANDIDATE)) as session:
        session.send(Frame({"type": "start", "blobs": table, "entry": "program.py", "functions": functions}, body))
        while session.receive() is not None:
            pass
        return session.finish(Ending.NO_RESULT).ending


def _start(session: Session, script: bytes) -> None:
    table, body = pack_blobs({SCRIPT: script})
    session.send(Frame({"type": "start", "blobs": table, "script": SCRIPT}, body))


def _reset_peak() -> float:
    """Forget the peak of the resident set; returns what is resident now, in MiB."""
    try:
        (_PROC / "clear_refs").write_text("5")
    except OSError as error:
        msg = f"this kernel does not reset the peak of a process's memory: {error.strerror}; measure on another one"
        raise PrerequisiteError(msg) from error
    return _status_mib("VmRSS")


def _status_mib(field: str) -> float:
    lines = (_PROC / "status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024
