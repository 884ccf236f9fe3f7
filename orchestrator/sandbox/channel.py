"""A container's one channel: frames in by stdin, frames out by stdout, and what is printed by stderr.

A reader that stops draining wedges the engine: `kill` and `remove` never return while a container's output is stuck.
So a thread of its own reads all the time. It pauses for at most `STALL_SECONDS`, when the owner has not taken what is
there already, or while it passes a frame on to another container that does not read, which that one's limits end; and
whoever wants to kill closes the channel first, which is always possible. What is kept is bounded whatever is sent: one
frame or `QUEUE_BYTES`, the printed output's share, and fixed buffers.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from orchestrator.domain.frames import Frame, decode_head
from orchestrator.domain.policies import Limits
from orchestrator.errors import ProtocolError, SandboxError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.sending import Sender
from orchestrator.sandbox.streams import STDERR, STDOUT, Demultiplexer, FrameCollector, PrintedOutput, RawFrame

QUEUE_BYTES = 8 << 20
STALL_SECONDS = 5.0
TICK_SECONDS = 0.5  # closing wakes whoever waits; this is for a close that is lost
CLOSE_SECONDS = 10.0
_RECEIVE_BYTES = 256 << 10
_TICK = struct.pack("@ll", 0, int(TICK_SECONDS * 1e6))  # struct timeval


class Receiver(Protocol):
    """Takes a channel's frames in the thread that reads them."""

    def take(self, channel: Channel, raw: RawFrame) -> None:
        """One frame; may wait, but for no longer than until the channel is closed."""
        ...

    def ended(self, channel: Channel) -> None:
        """The channel has ended; nothing more will come."""
        ...


class Channel:
    """The owner's end. `send` and `receive` belong to one thread at a time; `close` and the properties to any."""

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
        self._receiver: Receiver | None = None
        self._wanted: int | None = 0
        self._closing = False
        self._ended = False
        self._ended_by_itself = False
        self._ended_at: float | None = None
        self._violation: str | None = None
        self._excess: str | None = None
        self._sender = Sender(stream, limits.channel_bytes)
        self._printed = PrintedOutput(limits.output_bytes)
        self._frames = FrameCollector(
            head_bytes=limits.frame_head_bytes,
            body_bytes=limits.frame_body_bytes,
            reserve=self._reserve,
            deliver=self._deliver,
        )
        self._stream.settimeout(None)  # the kernel's own time limits spare a call of `poll` before each operation
        for limited in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._stream.setsockopt(socket.SOL_SOCKET, limited, _TICK)
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
        return self._sender.digest()

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
        if not self._sender.send(frame, lambda: self.has_ended):
            self._exceed(f"was to be sent more than {self._limits.channel_bytes} bytes of frames (channel_bytes)")

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
            raw = self._dequeue()
        return self.decoded(raw)

    def decoded(self, raw: RawFrame) -> Frame | None:
        """A frame with its head decoded; None: it breaks the framing, and the channel is closed."""
        try:
            return Frame(decode_head(raw.head), raw.body, raw.head)
        except ProtocolError as error:
            self._violation = str(error)
            self.close()
            return None

    def divert(self, receiver: Receiver, *, wanted: int | None) -> None:
        """Hand frames to `receiver` from now on: those that wait first, `wanted` in all before `want`, None for all."""
        self._wanted = 0
        self._receiver = receiver
        while True:
            with self._changed:
                if not self._queue or wanted == 0:
                    self._wanted = wanted
                    break
                raw = self._dequeue()
                wanted = None if wanted is None else wanted - 1
            receiver.take(self, raw)
        if self._ended:
            receiver.ended(self)

    def want(self) -> None:
        """Hand over one frame more: the first that waits, or else the next."""
        with self._changed:
            if not self._queue or self._closing:
                self._wanted = None if self._wanted is None else self._wanted + 1
                return
            raw = self._dequeue()
        if self._receiver is not None:
            self._receiver.take(self, raw)

    def _dequeue(self) -> RawFrame:
        raw = self._queue.popleft()
        self._queued_bytes -= raw.cost
        self._changed.notify_all()
        return raw

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
                except BlockingIOError:  # nothing came for a tick
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
        self._sender.close()
        self._on_end(self)
        if self._receiver is not None:
            self._receiver.ended(self)

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
            if self._closing:
                return
            if self._wanted == 0 or self._receiver is None:
                self._queue.append(frame)
                self._queued_bytes += frame.cost
                self._changed.notify_all()
                return
            if self._wanted is not None:
                self._wanted -= 1
        self._receiver.take(self, frame)
