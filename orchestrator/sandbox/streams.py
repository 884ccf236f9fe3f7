"""Taking apart what an attached container sends: the engine's multiplexing, our frames, and what was printed.

Everything here is fed untrusted bytes of any size in any pieces, keeps a bounded part of them and never raises on
content; it says `violation` instead.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.domain.frames import MAX_BODY_BYTES, MAX_HEAD_BYTES, PREFIX

STDOUT = 1
STDERR = 2
_HEADER = struct.Struct(">BxxxL")
_MARKER_BYTES = 64


class Demultiplexer:
    """The engine's framing of an attached stream: 8-byte headers (stream, length), then that many bytes of it."""

    def __init__(self, sinks: dict[int, Callable[[memoryview], None]]) -> None:
        """Feed what belongs to a stream to its sink.

        Args:
            sinks: By stream number; bytes of other streams are dropped.
        """
        self._sinks = sinks
        self._header = bytearray()
        self._stream = 0
        self._missing = 0

    def feed(self, chunk: memoryview) -> None:
        """Take the next bytes of the attached stream; pieces of any size."""
        while chunk:
            if self._missing:
                part = chunk[: self._missing]
                chunk = chunk[len(part) :]
                self._missing -= len(part)
                sink = self._sinks.get(self._stream)
                if sink is not None:
                    sink(part)
                continue
            wanted = _HEADER.size - len(self._header)
            self._header += chunk[:wanted]
            chunk = chunk[wanted:]
            if len(self._header) == _HEADER.size:
                self._stream, self._missing = _HEADER.unpack(self._header)
                self._header.clear()


@dataclass(frozen=True, slots=True)
class RawFrame:
    """A frame whose head is not decoded yet: decoded heads take much memory, so it is done one at a time."""

    head: bytes
    body: bytes

    @property
    def cost(self) -> int:
        """Bytes it holds in memory, roughly."""
        return len(self.head) + len(self.body) + 256


class FrameCollector:
    """Whole frames out of pieces of a channel."""

    def __init__(
        self,
        *,
        head_bytes: int,
        body_bytes: int,
        reserve: Callable[[int], None],
        deliver: Callable[[RawFrame], None],
    ) -> None:
        """Collect frames.

        Args:
            head_bytes: A longer head is a violation.
            body_bytes: A longer body is a violation.
            reserve: Called with the size of a frame before any of it is kept; may wait.
            deliver: Called with each whole frame.
        """
        self._head_limit = min(head_bytes, MAX_HEAD_BYTES)
        self._body_limit = min(body_bytes, MAX_BODY_BYTES)
        self._reserve = reserve
        self._deliver = deliver
        self._digest = hashlib.sha256()
        self._buffer = io.BytesIO()
        self._part = "prefix"
        self._missing = PREFIX.size
        self._head = b""
        self._body_bytes = 0
        self._prefix = b""
        self.received_bytes = 0
        """All bytes of the channel so far, whole frames or not."""
        self.violation: str | None = None
        """Why no further byte is taken; None: the framing is intact."""

    @property
    def is_within_a_frame(self) -> bool:
        """Whether the channel would end inside a frame if it ended now."""
        return self._part != "prefix" or self._buffer.tell() > 0

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over all whole frames, in order."""
        return "sha256:" + self._digest.hexdigest()

    def feed(self, chunk: memoryview) -> None:
        """Take the next bytes of the channel."""
        self.received_bytes += len(chunk)
        while chunk and self.violation is None:
            part = chunk[: self._missing]
            chunk = chunk[len(part) :]
            self._buffer.write(part)
            self._missing -= len(part)
            while self._missing == 0 and self.violation is None:
                self._advance()

    def _advance(self) -> None:
        content = self._buffer.getvalue()  # does not copy: the buffer is given up right after
        self._buffer = io.BytesIO()
        if self._part == "prefix":
            head_bytes, self._body_bytes = PREFIX.unpack(content)
            if head_bytes > self._head_limit or self._body_bytes > self._body_limit:
                self.violation = (
                    f"a frame of {head_bytes} + {self._body_bytes} bytes,"
                    f" at most {self._head_limit} + {self._body_limit} are allowed"
                )
                return
            self._reserve(head_bytes + self._body_bytes)
            self._prefix, self._part, self._missing = content, "head", head_bytes
        elif self._part == "head":
            self._head, self._part, self._missing = content, "body", self._body_bytes
        else:
            for piece in (self._prefix, self._head, content):
                self._digest.update(piece)
            frame, self._head = RawFrame(self._head, content), b""
            self._part, self._missing = "prefix", PREFIX.size
            self._deliver(frame)


class PrintedOutput:
    """The beginning and the end of what was printed, and how much it was."""

    def __init__(self, keep_bytes: int) -> None:
        """Keep at most `keep_bytes` (a note on what was cut included); may be 0."""
        self._keep = keep_bytes
        self._head_limit = max(0, keep_bytes - _MARKER_BYTES) // 2
        self._tail_limit = max(0, keep_bytes - _MARKER_BYTES - self._head_limit)
        self._start = bytearray()
        self._tail = bytearray()
        self.printed_bytes = 0
        """All bytes so far, kept or not."""

    @property
    def is_truncated(self) -> bool:
        """Whether something was cut."""
        return self.printed_bytes > self._keep

    def feed(self, chunk: memoryview) -> None:
        """Take the next printed bytes."""
        self.printed_bytes += len(chunk)
        room = self._keep - len(self._start)
        if room > 0:
            self._start += chunk[:room]
            chunk = chunk[room:]
        if chunk and self._tail_limit:
            self._tail += chunk[-self._tail_limit :]
            if len(self._tail) > 2 * self._tail_limit + 4096:
                del self._tail[: -self._tail_limit]

    def value(self) -> bytes:
        """What is kept; when something was cut out of the middle, a note says how much."""
        if not self.is_truncated:
            return bytes(self._start)
        if self._tail_limit == 0:
            return bytes(self._start)
        end = bytes(self._start[self._head_limit :]) + bytes(self._tail)
        end = end[-self._tail_limit :]
        omitted = self.printed_bytes - self._head_limit - len(end)
        return bytes(self._start[: self._head_limit]) + f"\n[{omitted} bytes omitted]\n".encode() + end
