"""The beginning and the end of a long text, in bounded memory."""

from __future__ import annotations

HEAD_SHARE = (3, 4)
"""Of what is kept, this fraction is from the beginning, as in 12,000 and 4,000 characters."""


def head_length(kept: int) -> int:
    """How much of `kept` units is from the beginning; the rest is from the end."""
    return kept * HEAD_SHARE[0] // HEAD_SHARE[1]


class Excerpt:
    """Keeps the first and the last bytes of a stream and counts the rest."""

    def __init__(self, limit_bytes: int) -> None:
        """Start empty.

        Args:
            limit_bytes: Kept at most, not negative.
        """
        self._head_bytes = head_length(limit_bytes)
        self._tail_bytes = limit_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        """Of the whole stream so far."""

    def add(self, piece: bytes) -> None:
        """Append to the stream."""
        self.total_bytes += len(piece)
        room = self._head_bytes - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > 2 * self._tail_bytes:  # not at every piece, which would be quadratic
            del self._tail[: len(self._tail) - self._tail_bytes]

    @property
    def kept(self) -> bytes:
        """The beginning, directly followed by the end; the cut, if any, is at `head_length` of its length."""
        excess = max(0, len(self._tail) - self._tail_bytes)
        return bytes(self._head + self._tail[excess:])

    @property
    def omitted_bytes(self) -> int:
        """How much was cut out of the middle."""
        return self.total_bytes - len(self.kept)
