"""Events of a stream as servers of OpenAI's protocols send them, out of bytes as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from orchestrator.llm.providers.bounded_bodies import parsed_json
from orchestrator.llm.providers.openai_stream import NotAReply
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Gathered

MAX_EVENT_BYTES = 4 * MAX_REPLY_BYTES
"""Of one event: a whole reply may come in one, with every character as an escape."""
_DONE = b"[DONE]"


class Collector(Protocol):
    """Puts the reply of one call together, event by event."""

    @property
    def is_full(self) -> bool:
        """Whether it was cut off, so that nothing more is to be read."""
        ...

    def take(self, event: object) -> None:
        """Add an event of a stream, or a whole reply.

        Raises:
            NotAReply: It is no such thing.
        """
        ...

    def check_end(self, *, is_done: bool) -> None:
        """To be called once nothing more comes.

        Args:
            is_done: Whether the server said so itself.

        Raises:
            NotAReply: There is no reply, or not a whole one.
        """
        ...

    @property
    def has_content(self) -> bool:
        """Whether anything has come that the server may bill."""
        ...

    def gathered(self) -> Gathered:
        """What has come by now."""
        ...


class EventReader:
    """Takes server-sent events apart. Not thread-safe."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0  # of what has come since the last event, about
        self.is_done = False
        """Whether the server has said that nothing more comes."""

    def feed(self, chunk: bytes) -> Iterator[tuple[bool, object]]:
        """Events that a chunk completes: whether it is an error, and its content.

        Raises:
            NotAReply: A content is no JSON, or an event is larger than any reply may be.
        """
        self._size += len(chunk)
        has_end = b"\n" in chunk or b"\r" in chunk or self._rest.endswith(b"\r")
        self._rest += chunk
        if has_end:
            # One that comes last waits: with what comes next it may be one end of a line, not two.
            last = b"\r" if self._rest.endswith(b"\r") else b""
            lines = bytes(self._rest).removesuffix(last).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            whole, found, rest = lines.rpartition(b"\n")
            self._rest = bytearray(rest + last)
            for line in whole.split(b"\n") if found else ():
                yield from self._take(line)
        if self._size > MAX_EVENT_BYTES:
            msg = f"an event of over {MAX_EVENT_BYTES} bytes"
            raise NotAReply(msg)

    def finish(self) -> Iterator[tuple[bool, object]]:
        """What is left when nothing more comes: some servers leave out the blank line at the end."""
        for line in (bytes(self._rest).removesuffix(b"\r"), b""):
            yield from self._take(line)
        self._rest.clear()

    def _take(self, line: bytes) -> Iterator[tuple[bool, object]]:
        if not line:
            data, is_error = b"\n".join(self._data), self._name == b"error"
            self._name, self._data, self._size = b"", [], 0
            if data and not self.is_done:
                yield from self._event(data, is_error)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.strip()
        elif name in (b"data", b"error"):  # llama.cpp has had a field of its own for errors
            self._data.append(value)
            self._name = b"error" if name == b"error" else self._name

    def _event(self, data: bytes, is_error: bool) -> Iterator[tuple[bool, object]]:
        if data.strip() == _DONE:
            self.is_done = True
        else:
            yield is_error, parsed(data)


def parsed(content: bytes) -> object:
    """JSON.

    Raises:
        NotAReply: It is none, or has too many values.
    """
    try:
        return parsed_json(content)
    except ValueError:
        shown = content[:60].decode("utf-8", errors="replace")
    msg = f"{shown!r} is no JSON that can be read"
    raise NotAReply(msg)
