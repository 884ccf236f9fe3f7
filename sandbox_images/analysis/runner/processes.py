"""Whatever an experiment leaves behind is found and ended; `prctl.adopt_orphans` has made all of it our children's."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

KILL_SECONDS = 2.0
"""How long to go on killing; a script that forks faster than that meets the container's own end."""


def kill_children() -> None:
    """Kill and reap every process below this one.

    Killing a child makes its children ours, so the loop ends when there are none. Only processes below this one are
    touched: `kill(-1)` would end whatever else runs where this is not a container of its own.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def _children() -> list[int]:
    own = os.getpid()
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in processes if _parent(pid) == own]


def _parent(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None  # it ended meanwhile
    return int(text.rpartition(")")[2].split()[1])  # the name before it may hold anything, also brackets
