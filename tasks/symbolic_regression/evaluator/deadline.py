"""Work that may never end, in a process that does."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

TIMEOUT = "timeout"
_FORK = multiprocessing.get_context("fork")


class Unfinished(Exception):
    """There is no answer; the message is `timeout`, or how the process ended."""


def within(cpu_seconds: int, wall_seconds: float, work: Callable[[], str]) -> str:
    """What `work` returns, which runs in a child process with all that is loaded here.

    Args:
        cpu_seconds: It is killed after, so that the load of the machine hardly matters.
        wall_seconds: Likewise, whatever it waits for.
        work: Gives a text.

    Raises:
        Unfinished: It was killed, or raised; its traceback is on stderr.
    """
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_answer, args=(sender, cpu_seconds, work))
    process.start()
    sender.close()
    try:
        if not receiver.poll(wall_seconds):
            raise Unfinished(TIMEOUT)
        return receiver.recv_bytes().decode()
    except EOFError:
        process.join()
        was_killed = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        raise Unfinished(TIMEOUT if was_killed else f"exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
        receiver.close()


def _answer(sender: Connection, cpu_seconds: int, work: Callable[[], str]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    sender.send_bytes(work().encode())
