"""The runner's side of its children: one job each, killed at a deadline, and one of them always ready in advance."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from execution import overdue
from frames import PREFIX, Frame, ProtocolError, check_sizes, decode, encode
from limits import Limits

SPARE_CPU_SHARE = 0.25
SPARE_CPU_SECONDS = 0.25
"""What a child may compute beyond its limit before it is ended from outside, and never more than the share of its
limit: it stops by itself where it can."""
_CHUNK = 1 << 18
_CPU_CLOCK_OF_A_PROCESS = 2
"""Third of the kernel's clocks of a process: the time it has run (CPUCLOCK_SCHED)."""


Work = Callable[[int, int], NoReturn]


@dataclass(frozen=True, slots=True)
class Failure:
    """A job whose child gave no answer."""

    status: str
    """`timeout` or `killed`."""
    message: str


@dataclass(frozen=True, slots=True)
class _Child:
    """The runner's ends of one child."""

    pid: int
    jobs: int
    """Descriptor that its job is written to; does not block."""
    answers: int
    """Descriptor that its answer is read from; does not block."""


class _Ended(Exception):
    """The child closed its pipe, or broke the framing."""


class Children:
    """Forks children, one after the other; not thread-safe."""

    def __init__(self, work: Work, limits: Limits) -> None:
        """Fork the first one.

        Args:
            work: What a child does with its descriptors for its job and its answer; it does not return.
            limits: How long it may take.

        Raises:
            OSError: The kernel refuses another process.
        """
        self._work = work
        self._limits = limits
        gc.collect()
        gc.freeze()  # keeps collections in a child from touching, and so duplicating, the shared pages
        self._spare = self._fork()

    def close(self) -> None:
        """End the one in waiting."""
        _bury(self._spare)

    def ask(self, head: Mapping[str, Any], body: bytes = b"") -> Frame | Failure:
        """Let a fresh child do one job, and have the next one get ready meanwhile.

        Returns:
            What it answered, in the form of a frame and otherwise unchecked, or how it ended without an answer.

        Raises:
            OSError: The kernel refuses another process.
        """
        asked = self._spare
        began = time.monotonic()
        try:
            pending = _write(asked, memoryview(encode(Frame(head, body))))
            self._spare = self._fork()
            return self._await(asked, pending, began)
        finally:
            _bury(asked)

    def _await(self, asked: _Child, pending: memoryview, began: float) -> Frame | Failure:
        limits = self._limits
        spare = min(SPARE_CPU_SECONDS, SPARE_CPU_SHARE * limits.query_seconds)
        received = bytearray()
        try:
            while True:
                cpu_left = limits.query_seconds + spare - _cpu_seconds(asked.pid)
                wall_left = began + limits.wall_seconds - time.monotonic()
                if cpu_left <= 0:
                    return Failure("timeout", overdue(limits.query_seconds, "processor"))
                if wall_left <= 0:
                    return Failure("timeout", overdue(limits.wall_seconds, "wall"))
                if not _ready(asked, min(cpu_left, wall_left), is_writing=bool(pending)):
                    continue
                pending = _write(asked, pending)
                frame = _read(asked, received)
                if frame is not None:
                    return frame
        except (_Ended, ProtocolError):
            return self._ending(asked)

    def _ending(self, asked: _Child) -> Failure:
        """How a child ended that gave no answer, or garbage."""
        _kill(asked.pid)  # a child that only closed its pipe ends now
        ended = os.waitid(os.P_PID, asked.pid, os.WEXITED | os.WNOWAIT)
        if ended is None or ended.si_code == os.CLD_EXITED:
            return Failure("killed", "its process ended without an answer")
        if ended.si_status == signal.SIGXCPU:
            return Failure("timeout", overdue(self._limits.query_seconds, "processor"))
        return Failure("killed", f"its process was ended by signal {ended.si_status}")

    def _fork(self) -> _Child:
        jobs_read, jobs_write = os.pipe()
        answers_read, answers_write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            for descriptor in (jobs_read, jobs_write, answers_read, answers_write):
                os.close(descriptor)
            raise
        if pid == 0:
            try:
                self._work(jobs_read, answers_write)
            finally:
                os._exit(1)
        os.close(jobs_read)
        os.close(answers_write)
        os.set_blocking(jobs_write, False)
        os.set_blocking(answers_read, False)
        return _Child(pid, jobs_write, answers_read)


def _write(asked: _Child, pending: memoryview) -> memoryview:
    """Write what the pipe takes; returns the rest."""
    try:
        return pending[os.write(asked.jobs, pending) :] if pending else pending
    except BlockingIOError:
        return pending
    except BrokenPipeError:
        return pending[:0]  # it is gone; reading tells


def _read(asked: _Child, received: bytearray) -> Frame | None:
    """Read what is there; the frame once it is whole.

    Raises:
        _Ended: The pipe is closed.
        ProtocolError: What came is no frame, or more than one.
    """
    try:
        part = os.read(asked.answers, _CHUNK)
    except BlockingIOError:
        return None
    if not part:
        raise _Ended
    received += part
    if len(received) < PREFIX.size:
        return None
    head_bytes, body_bytes = PREFIX.unpack_from(received)
    check_sizes(head_bytes, body_bytes)
    return decode(bytes(received)) if len(received) >= PREFIX.size + head_bytes + body_bytes else None


def _ready(asked: _Child, seconds: float, *, is_writing: bool) -> bool:
    poll = select.poll()
    poll.register(asked.answers, select.POLLIN)
    if is_writing:
        poll.register(asked.jobs, select.POLLOUT)
    return bool(poll.poll(max(1, math.ceil(1000 * seconds))))


def _cpu_seconds(pid: int) -> float:
    """What a child has computed so far, by the kernel's count."""
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS)
    except OSError:
        return 0.0  # it has ended; reading tells


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _bury(ended: _Child) -> None:
    os.close(ended.jobs)
    os.close(ended.answers)
    _kill(ended.pid)
    os.waitpid(ended.pid, 0)
