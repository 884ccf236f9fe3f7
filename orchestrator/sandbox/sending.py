"""The writing half of a container's channel: whole frames, counted, digested, and never after the channel has ended."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable

from orchestrator.domain.frames import Frame, encode_opening

_SEND_BYTES = 1 << 20


class Sender:
    """Thread-safe. The stream has a time limit for sending, after which it is asked again whether there is a reader."""

    def __init__(self, stream: socket.socket, most_bytes: int) -> None:
        """Nothing is sent yet.

        Args:
            stream: Closed by `close` only.
            most_bytes: Of all frames together.
        """
        self._stream = stream
        self._most_bytes = most_bytes
        self._sent_bytes = 0
        self._digest = hashlib.sha256()
        self._writing = threading.Lock()  # guards all of it: the descriptor is closed only while nobody writes to it

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over all frames sent, in order."""
        return "sha256:" + self._digest.hexdigest()

    def send(self, frame: Frame, has_ended: Callable[[], bool]) -> bool:
        """Send a frame whole, or swallow it once the channel has ended; False: it is one too much, and was not sent.

        Raises:
            ProtocolError: The frame is no frame.
        """
        opening = encode_opening(frame)
        with self._writing:
            self._sent_bytes += len(opening) + len(frame.body)
            if self._sent_bytes > self._most_bytes:
                return False
            self._digest.update(opening)
            self._digest.update(frame.body)
            self._write([memoryview(opening), memoryview(frame.body)], has_ended)
        return True

    def close(self) -> None:
        """Close the stream; idempotent."""
        with self._writing:
            self._stream.close()

    def _write(self, parts: list[memoryview], has_ended: Callable[[], bool]) -> None:
        while parts and not has_ended():
            try:
                sent = self._stream.sendmsg([part[:_SEND_BYTES] for part in parts])
            except BlockingIOError:  # it was not read for a while
                continue
            except OSError:
                return  # the other side is gone, which the reader meets too
            while parts and sent >= len(parts[0]):
                sent -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][sent:]
