"""What comes through a pipe, taken as it comes, kept in bounded memory."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

_CHUNK = 1 << 20


class Pipe:
    """Both ends of a pipe, made before a fork."""

    def __init__(self) -> None:
        """Open it."""
        self.reading, self.writing = os.pipe()


class Drain(threading.Thread):
    """Reads one pipe to its end."""

    def __init__(
        self, pipe: Pipe, writer: int, *, kill_bytes: int | None, head_bytes: int = 0, tail_bytes: int = 0
    ) -> None:
        """Close the writing end on this side, and start.

        Args:
            pipe: Whose reading end is read.
            writer: Process that is killed when it writes too much.
            kill_bytes: How much that is; None: it may go on, and the rest is thrown away.
            head_bytes: Kept of the beginning.
            tail_bytes: Kept of the end, what is kept of the beginning left aside.
        """
        super().__init__(daemon=True)
        self._reading = pipe.reading
        self._writer = writer
        self._kill_bytes = kill_bytes
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes that came."""
        self.has_flooded = False
        """Whether the writer was killed for it."""
        os.close(pipe.writing)
        self.start()

    @property
    def kept(self) -> bytes:
        """The beginning, directly followed by the end."""
        return bytes(self._head + self._tail[max(0, len(self._tail) - self._tail_bytes) :])

    def run(self) -> None:
        """Read until every writer has closed its end."""
        while piece := os.read(self._reading, _CHUNK):
            self.total += len(piece)
            room = self._head_bytes - len(self._head)
            self._head += piece[:room]
            self._tail += piece[room:]
            if len(self._tail) > 2 * self._tail_bytes:  # not at every piece, which would be quadratic
                del self._tail[: len(self._tail) - self._tail_bytes]
            if self._kill_bytes is not None and self.total > self._kill_bytes and not self.has_flooded:
                self.has_flooded = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._writer, signal.SIGKILL)
