"""The frame around every role: settle the interpreter, take the channel, say ready, serve, end with an exit code."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from channel import EXIT_PROTOCOL, Channel, ChannelClosed, complain
from frames import ProtocolError
from prctl import die_with_parent

PROTOCOL = 1
GRACE_SECONDS = 1.0
"""How long a runner may go on after its channel ended, before it is killed."""

_SETTLED = {
    "PYTHONHASHSEED": "0",  # sets and dicts of text iterate alike in every container, so that scores repeat
    "OPENBLAS_NUM_THREADS": "1",  # a process with threads cannot be forked safely
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def settle() -> None:
    """Start this interpreter again with a fixed hash seed and one thread, unless it runs so already.

    `python3 -I` ignores the environment, also a fixed `PYTHONHASHSEED`; without `-E` it counts. Called before NumPy is
    imported, which reads the number of threads once.
    """
    if sys.flags.hash_randomization:
        command = [sys.executable, "-s", "-P", "-B", *sys.argv]
        os.execve(sys.executable, command, {**os.environ, **_SETTLED})  # noqa: S606 - no shell is wanted


def parser() -> argparse.ArgumentParser:
    """Arguments that every role understands."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("--idle-seconds", type=float, required=True, help="End when no first frame comes in time.")
    return arguments


def serve(role: str, idle_seconds: float, handle: Callable[[Channel], int]) -> int:
    """Announce `role` on the channel of this process and let `handle` do the rest.

    Whatever shall be warm has been imported by now.

    Returns:
        The exit code: what `handle` returns, 0 at the channel's end, 75 after the idle deadline, 76 for a bad frame.
    """
    channel = Channel.take_over(idle_seconds=idle_seconds)
    _watch(channel)
    try:
        channel.send({"type": "ready", "protocol": PROTOCOL, "role": role})
        return handle(channel)
    except ChannelClosed as end:
        return end.exit_code
    except ProtocolError as error:
        complain(str(error))
        return EXIT_PROTOCOL


def _watch(channel: Channel) -> None:
    """Let a small process end this one soon after the channel has ended, whatever code is running here by then.

    A runner that waits for a frame sees the end by itself. One that runs somebody's loop does not, and a killed
    orchestrator must leave nothing running.
    """
    runner = os.getpid()
    if os.fork() == 0:
        try:
            _kill_at_the_end(runner, channel)
        finally:
            os._exit(0)


def _kill_at_the_end(runner: int, channel: Channel) -> NoReturn:
    die_with_parent()
    for descriptor in (0, 1, 2, channel.writing):  # or nobody would see the end of what the runner writes
        os.close(descriptor)
    hangup = select.poll()
    hangup.register(channel.reading, 0)  # no event but the hang-up, which is always reported
    hangup.poll()
    time.sleep(GRACE_SECONDS)
    if os.getppid() == runner:
        os.kill(runner, signal.SIGKILL)
    os._exit(0)
