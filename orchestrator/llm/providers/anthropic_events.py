"""Server-sent events, out of the bytes of a stream."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.llm.providers.bounded_bodies import parsed_json
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES

_MAX_EVENT_BYTES = 6 * MAX_REPLY_BYTES + (1 << 20)
"""Of one event: a whole block may come in one, and JSON may need six bytes for one of its text."""


class NotAReply(Exception):
    """What came is no reply of this protocol, or not a whole one; the message says what is wrong with it."""


class EventReader:
    """Takes server-sent events out of bytes as they come. Not thread-safe."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0  # of what has come since the last event, about

    def feed(self, chunk: bytes) -> Iterator[tuple[str, object]]:
        """Names and contents of the events that a chunk completes.

        Raises:
            NotAReply: A content is no JSON, or an event is larger than any reply may be.
        """
        self._size += len(chunk)
        self._rest += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in lines:
                yield from self._take(line.rstrip(b"\r"))
        if self._size > _MAX_EVENT_BYTES:
            msg = f"an event of over {_MAX_EVENT_BYTES} bytes"
            raise NotAReply(msg)

    def _take(self, line: bytes) -> Iterator[tuple[str, object]]:
        if not line:
            if self._data:
                yield self._name, _parsed(b"\n".join(self._data))
            self._name, self._data, self._size = "", [], 0
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", errors="replace")
        elif name == b"data":
            self._data.append(value)


def _parsed(data: bytes) -> object:
    try:
        return parsed_json(data)
    except ValueError:
        shown = data[:60].decode("utf-8", errors="replace")
    msg = f"an event that holds no JSON that can be read: {shown!r}"
    raise NotAReply(msg)
