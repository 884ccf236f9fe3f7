"""The copies of a loaded program, one process per instance, forked from the state right after loading.

Forking is what makes the promise to honest programs cheap and exact: module state, NumPy's global generator and
whatever else the program made while loading are the same in every copy, and no copy sees another's changes.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import instance
from channel import write_all
from columns import Values
from frames import MAX_BODY_BYTES
from prctl import die_with_parent
from wire import INVALID, OK, REPLY, Wire

REAP_SECONDS = 1.0
"""How long a copy that closed its pipe may take to end."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The parent's end of one copy."""

    pid: int
    calls: int
    """Descriptor that calls are written to."""
    replies: int
    """Descriptor that replies are read from."""


Answer = bytes | Mapping[str, Any]
"""The elements of a reply, or the frame head of a failure without its instance."""


class Instances:
    """A generation of copies; `close` ends them."""

    def __init__(
        self,
        count: int,
        functions: Sequence[tuple[Wire, instance.Function]],
        files: Collection[str],
        leave_channel: Callable[[], None],
    ) -> None:
        """Fork the copies.

        Args:
            count: How many.
            functions: In the order of the `start` frame.
            files: The program's.
            leave_channel: Closes the runner's channel in a copy.

        Raises:
            OSError: The kernel refuses another process; no copy is left.
        """
        self._copies: list[Copy] = []
        self._functions = functions
        self._files = files
        self._leave_channel = leave_channel
        sys.stdout.flush()  # or every copy would print it again
        sys.stderr.flush()
        gc.collect()
        gc.freeze()  # keeps collections in a copy from touching, and so duplicating, the shared pages
        try:
            for _ in range(count):
                self._copies.append(self._fork())
        except OSError:
            self.close()
            raise
        finally:
            gc.unfreeze()

    def __len__(self) -> int:
        return len(self._copies)

    def call(self, wire: Wire, instances: Sequence[int], values: Sequence[Values]) -> list[Answer]:
        """Call one function in these copies.

        Args:
            wire: Of the function.
            instances: Numbers of the copies, each once.
            values: The arguments, for all these instances.

        Returns:
            One answer per instance, in their order.
        """
        copies = [self._copies[number] for number in instances]
        for copy, message in zip(copies, wire.messages(values, len(copies)), strict=True):
            try:
                write_all(copy.calls, message)
            except BrokenPipeError:
                continue  # it is gone; reading its reply tells how
        # Waiting for the last one first lets all others run in the meantime: one sleep instead of one per copy.
        answers = [self._gather(copy) for copy in reversed(copies)]
        answers.reverse()
        return answers

    def close(self) -> None:
        """Kill and reap every copy; idempotent."""
        for copy in self._copies:
            _kill(copy.pid)
        for copy in self._copies:
            os.close(copy.calls)
            os.close(copy.replies)
            _reap(copy.pid)
        self._copies.clear()

    def _fork(self) -> Copy:
        calls_read, calls_write = os.pipe()
        replies_read, replies_write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            for descriptor in (calls_read, calls_write, replies_read, replies_write):
                os.close(descriptor)
            raise
        if pid:
            os.close(calls_read)
            os.close(replies_write)
            return Copy(pid, calls_write, replies_read)
        try:
            die_with_parent()
            self._leave_channel()
            for descriptor in (calls_write, replies_read):
                os.close(descriptor)
            for copy in self._copies:  # an earlier copy must see its pipe end when the parent ends
                os.close(copy.calls)
                os.close(copy.replies)
            instance.run(calls_read, replies_write, self._functions, self._files)
        finally:
            os._exit(1)

    def _gather(self, copy: Copy) -> Answer:
        data = os.read(copy.replies, instance.CHUNK)
        while len(data) < REPLY.size or (size := REPLY.unpack_from(data)[1]) + REPLY.size > len(data):
            if len(data) >= REPLY.size and size > MAX_BODY_BYTES:
                return {"type": "invalid", "reason": "reply-malformed"}
            more = os.read(copy.replies, 1 << 20)
            if not more:
                return {"type": "died", **_ending(copy.pid)}
            data += more
        payload = data[REPLY.size :]
        return payload if data[0] == OK else failure(data[0], payload)


def failure(status: int, payload: bytes) -> Answer:
    """The head of a frame for a call that brought no elements."""
    if status == INVALID:
        return {"type": "invalid", "reason": payload.decode("ascii", errors="replace")}
    try:
        raised = json.loads(payload)
        return {"type": "raised", **{key: raised[key] for key in ("exception", "file", "line")}}
    except (ValueError, TypeError, KeyError, RecursionError):  # the program wrote to the pipe by itself
        return {"type": "invalid", "reason": "reply-malformed"}


def _ending(pid: int) -> dict[str, int | None]:
    """How a copy that closed its pipe ended; it is killed when it does not end by itself."""
    deadline = time.monotonic() + REAP_SECONDS
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # stays reapable for `close`
        if time.monotonic() > deadline:
            _kill(pid)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            break
        time.sleep(0.001)
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return {"exit_code": None, "signal": None}
    if ended.si_code == os.CLD_EXITED:
        return {"exit_code": ended.si_status, "signal": None}
    return {"exit_code": None, "signal": ended.si_status}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended, and the program's own code reaped it
        os.kill(pid, signal.SIGKILL)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
