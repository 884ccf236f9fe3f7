"""A runner's channel: stdin and stdout of the container, taken away from the code it runs.

The descriptors 0 and 1 are duplicated to the runner; the code gets `/dev/null` to read from, and what it prints to 1
arrives on 2, outside the channel. That is honesty's help, not a boundary: a hostile program finds the duplicates.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from frames import PREFIX, Frame, ProtocolError, check_sizes, decode_head, encode

EXIT_IO = 74
"""Exit code of a runner that could not write to its disk (EX_IOERR of sysexits.h)."""
EXIT_IDLE = 75
"""Exit code of a runner that waited too long for its first frame (EX_TEMPFAIL)."""
EXIT_PROTOCOL = 76
"""Exit code of a runner that was sent something it does not understand (EX_PROTOCOL)."""
_CHUNK = 1 << 20
_USUAL = 1 << 16  # what a pipe holds


class ChannelClosed(Exception):
    """The other side closed the channel between two frames, or nothing came before the idle deadline."""

    def __init__(self, exit_code: int) -> None:
        """Keep what the runner ends with."""
        super().__init__(f"the channel ended, exit code {exit_code}")
        self.exit_code = exit_code


class Channel:
    """Frames over two descriptors."""

    def __init__(self, reading: int, writing: int, *, idle_seconds: float | None = None) -> None:
        """Use these descriptors.

        Args:
            reading: Descriptor that frames are read from.
            writing: Descriptor that frames are written to.
            idle_seconds: How long to wait for the first frame; None: for ever.
        """
        self.reading = reading
        self.writing = writing
        self._ahead = b""
        self._at = 0
        self._more: list[bytes] = []
        self._deadline = None if idle_seconds is None else time.monotonic() + idle_seconds

    @classmethod
    def take_over(cls, *, idle_seconds: float | None) -> Self:
        """Take the descriptors 0 and 1 away from whatever runs in this process later."""
        reading = os.dup(0)  # not inheritable by a program that is executed
        writing = os.dup(1)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(reading, writing, idle_seconds=idle_seconds)

    def send(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        """Send one frame whole.

        Raises:
            ProtocolError: The frame is over the absolute limits.
            ChannelClosed: Nobody reads any more.
        """
        self.write(encode(Frame(head, body)))

    def write(self, frame: bytes) -> None:
        """Send an encoded frame whole.

        Raises:
            ChannelClosed: Nobody reads any more.
        """
        try:
            write_all(self.writing, frame)
        except BrokenPipeError as error:
            raise ChannelClosed(0) from error

    def receive(self) -> Frame:
        """The next frame.

        Raises:
            ProtocolError: The bytes are not a frame, or end inside one.
            ChannelClosed: The channel ended between two frames, or the idle deadline passed.
        """
        self._wait_for_the_first()
        if not self._read_up_to(PREFIX.size, may_end=True):
            raise ChannelClosed(0)
        head_bytes, body_bytes = PREFIX.unpack_from(self._ahead, self._at)
        check_sizes(head_bytes, body_bytes)
        self._read_up_to(PREFIX.size + head_bytes + body_bytes)
        start = self._at + PREFIX.size
        body = start + head_bytes
        self._at = body + body_bytes
        frame = Frame(decode_head(self._ahead[start:body]), self._ahead[body : self._at])
        if self._at == len(self._ahead):
            self._ahead, self._at = b"", 0  # or the next read would copy what is done with
        return frame

    def _read_up_to(self, size: int, *, may_end: bool = False) -> bool:
        """Whether `size` bytes lie ahead now; only where the channel `may_end` do they not."""
        missing = size - (len(self._ahead) - self._at) - sum(map(len, self._more))
        if missing <= 0 and not self._more:
            return True
        parts = [self._ahead[self._at :], *self._more] if self._at < len(self._ahead) else self._more
        self._more = []
        while missing > 0:
            part = os.read(self.reading, min(max(missing, _USUAL), _CHUNK))
            if not part:
                if may_end and not parts:
                    return False
                msg = f"the channel ended {missing} bytes before the end of a frame"
                raise ProtocolError(msg)
            parts.append(part)
            missing -= len(part)
        self._ahead, self._at = parts[0] if len(parts) == 1 else b"".join(parts), 0
        return True

    def read_ahead(self) -> None:
        """Take what has come and keep it for `receive`; there must be something.

        Raises:
            ChannelClosed: The channel ended instead.
        """
        part = os.read(self.reading, _CHUNK)
        if not part:
            raise ChannelClosed(0)
        self._more.append(part)

    def expect(self, *types: str) -> Frame:
        """The next frame, which must be one of these types.

        Raises:
            ProtocolError: It is not.
            ChannelClosed: As `receive`.
        """
        frame = self.receive()
        if frame.type not in types:
            msg = f"a frame of type {frame.type!r} came where one of {', '.join(types)} was due"
            raise ProtocolError(msg)
        return frame

    def close(self) -> None:
        """Close both descriptors, for instance in a forked child."""
        os.close(self.reading)
        os.close(self.writing)

    def _wait_for_the_first(self) -> None:
        if self._deadline is None:
            return
        readable, _, _ = select.select([self.reading], [], [], max(0.0, self._deadline - time.monotonic()))
        if not readable:
            raise ChannelClosed(EXIT_IDLE)
        self._deadline = None


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; the kernel may take less at a time (gVisor often does).

    Raises:
        OSError: The descriptor does not take it.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest[:_CHUNK]) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def complain(text: str) -> None:
    """Say something to the operator: it arrives on the container's stderr, is stored and shown to no model."""
    sys.stderr.write(f"runner: {text}\n")
    sys.stderr.flush()
