"""A container's one channel: frames in by stdin, frames out by stdout, and what is printed by stderr.

A reader that stops draining wedges the engine: `kill` and `remove` never return while a container's output is stuck.
So a thread of its own reads all the time. It pauses for at most `STALL_SECONDS`, when the owner has not taken what is
there already; and whoever wants to kill closes the channel first, which is always possible. What is kept is bounded
whatever is sent: one frame or `QUEUE_BYTES`, the printed output's share, and fixed buffers.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from orchestrator.domain.frames import Frame, decode_head, encode_opening
from orchestrator.domain.policies import Limits
from orchestrator.errors import ProtocolError, SandboxError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.streams import STDERR, STDOUT, Demultiplexer, FrameCollector, PrintedOutput, RawFrame

QUEUE_BYTES = 8 << 20
STALL_SECONDS = 5.0
TICK_SECONDS = 0.5  # closing wakes whoever waits; this is for a close that is lost
CLOSE_SECONDS = 10.0
_RECEIVE_BYTES = 256 << 10
_SEND_BYTES = 1 << 20


class Channel:
    """The owner's end. `send` and `receive` belong to one thread; `close` and the properties to any."""

    def __init__(self, stream: socket.socket, limits: Limits, *, name: str, on_end: Callable[[Channel], None]) -> None:
        """Take over an attached stream and start reading.

        Args:
            stream: Raw and multiplexed, attached before the container starts, so that nothing is missed.
            limits: Frame, channel and output sizes.
            name: For the thread.
            on_end: Called by the reading thread, once, after the channel has ended for whatever reason.
        """
        self._limits = limits
        self._stream = stream
        self._on_end = on_end
        self._changed = threading.Condition()  # guards the queue and the flags below
        self._queue: deque[RawFrame] = deque()
        self._queued_bytes = 0
        self._closing = False
        self._ended = False
        self._ended_by_itself = False
        self._ended_at: float | None = None
        self._violation: str | None = None
        self._excess: str | None = None
        self._sent_digest = hashlib.sha256()
        self._sent_bytes = 0
        self._writing = threading.Lock()  # the descriptor is closed only while nobody writes to it
        self._printed = PrintedOutput(limits.output_bytes)
        self._frames = FrameCollector(
            head_bytes=limits.frame_head_bytes,
            body_bytes=limits.frame_body_bytes,
            reserve=self._reserve,
            deliver=self._deliver,
        )
        self._stream.settimeout(TICK_SECONDS)
        self._reader: Worker[None] = spawn(f"channel-{name}", self._read)

    @property
    def has_ended(self) -> bool:
        """Whether the other side closed it, or we did."""
        return self._ended or self._closing

    @property
    def ended_by_itself(self) -> bool:
        """Whether the other side closed it before we did: its processes have ended, or the engine failed."""
        return self._ended_by_itself

    @property
    def ended_at(self) -> float | None:
        """When it ended, on the monotonic clock; None: it has not."""
        return self._ended_at

    @property
    def has_unread(self) -> bool:
        """Whether any part of a frame has come that nobody has received."""
        return bool(self._queue) or self._frames.is_within_a_frame

    @property
    def violation(self) -> str | None:
        """How the framing was broken; None: it was not."""
        return self._violation

    @property
    def excess(self) -> str | None:
        """Which output limit was exceeded; None: none."""
        return self._excess

    @property
    def output(self) -> bytes:
        """What was printed, bounded."""
        return self._printed.value()

    @property
    def output_truncated(self) -> bool:
        """Whether `output` lacks something."""
        return self._printed.is_truncated

    @property
    def input_digest(self) -> str:
        """`sha256:` and 64 hex digits over all frames sent, in order."""
        return "sha256:" + self._sent_digest.hexdigest()

    @property
    def output_digest(self) -> str:
        """`sha256:` and 64 hex digits over all whole frames that came, in order."""
        return self._frames.digest()

    def send(self, frame: Frame) -> None:
        """Send a frame whole; swallowed once the channel has ended.

        Waits as long as the container does not read: the session's limits end that by closing the channel. A frame that
        would take it over `channel_bytes` closes it, too, as an `excess`: often the container's own words decide how
        much is sent to it, so this is an end of its use like any other.

        Raises:
            ProtocolError: The frame is no frame.
        """
        opening = encode_opening(frame)
        self._sent_bytes += len(opening) + len(frame.body)
        if self._sent_bytes > self._limits.channel_bytes:
            self._exceed(f"was to be sent more than {self._limits.channel_bytes} bytes of frames (channel_bytes)")
            return
        with self._writing:
            for piece in (opening, frame.body):
                self._sent_digest.update(piece)
                self._write(piece)

    def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest and not self.has_ended:
            try:
                rest = rest[self._stream.send(rest[:_SEND_BYTES]) :]
            except TimeoutError:
                continue
            except OSError:
                return  # the other side is gone, which the reader meets too

    def receive(self, timeout_seconds: float) -> Frame | None:
        """The next frame; None when the time is up or nothing will come any more (`has_ended`, `violation`, `excess`).

        Frames that came before the container ended by itself are delivered; none after we closed the channel.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while not self._queue or self._closing:
                remaining = deadline - time.monotonic()
                if self.has_ended or remaining <= 0:
                    return None
                self._changed.wait(remaining)
            raw = self._queue.popleft()
            self._queued_bytes -= raw.cost
            self._changed.notify_all()
        try:
            return Frame(decode_head(raw.head), raw.body, raw.head)
        except ProtocolError as error:
            self._violation = str(error)
            self.close()
            return None

    def close(self) -> None:
        """Stop reading and writing, from any thread and without waiting; idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        """Wait for the reading thread after `close`.

        Raises:
            SandboxError: It does not end.
        """
        if not self._reader.join(CLOSE_SECONDS):
            msg = f"the reader of {self._reader.name} did not end within {CLOSE_SECONDS:g} s of its closing"
            raise SandboxError(msg)

    def _read(self) -> None:
        demultiplexer = Demultiplexer({STDOUT: self._take_channel, STDERR: self._take_printed})
        buffer = bytearray(_RECEIVE_BYTES)
        view = memoryview(buffer)
        try:
            while not self._closing:
                try:
                    size = self._stream.recv_into(buffer)
                except TimeoutError:
                    continue
                except OSError:
                    return  # what happened to the container, the session asks the engine
                if size == 0:
                    return
                demultiplexer.feed(view[:size])
        finally:
            self._end()

    def _end(self) -> None:
        with self._changed:
            self._ended_by_itself = not self._closing
            if self._ended_by_itself and self._frames.is_within_a_frame:
                self._violation = "the channel ended inside a frame"
            self._ended = True
            self._ended_at = time.monotonic()
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)  # wakes a writer, which then lets go of the lock
        with self._writing:
            self._stream.close()
        self._on_end(self)

    def _take_channel(self, part: memoryview) -> None:
        if self._closing:
            return
        self._frames.feed(part)
        if self._frames.violation is not None:
            self._violation = self._frames.violation
            self.close()
        elif self._frames.received_bytes > self._limits.channel_bytes:
            self._exceed(f"more than {self._limits.channel_bytes} bytes of frames (channel_bytes)")

    def _take_printed(self, part: memoryview) -> None:
        self._printed.feed(part)
        if self._printed.printed_bytes > self._limits.output_kill_bytes:
            self._exceed(f"printed more than {self._limits.output_kill_bytes} bytes (output_kill_bytes)")

    def _exceed(self, detail: str) -> None:
        self._excess = self._excess or detail
        self.close()

    def _reserve(self, size: int) -> None:
        """Wait, but not for long, until a frame of this size may be kept."""
        deadline = time.monotonic() + STALL_SECONDS
        with self._changed:
            while self._queue and self._queued_bytes + size > QUEUE_BYTES and not self._closing:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                self._changed.wait(remaining)
            else:
                return
        self._exceed(f"sent more than {QUEUE_BYTES} bytes ahead of what was asked for")

    def _deliver(self, frame: RawFrame) -> None:
        with self._changed:
            if not self._closing:
                self._queue.append(frame)
                self._queued_bytes += frame.cost
                self._changed.notify_all()
