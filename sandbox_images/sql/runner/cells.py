"""Rows as bytes: one tag per cell and its content, numbers little-endian, text byte for byte as it is stored."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Cell = None | int | float | bytearray | bytes
"""Of SQLite; `bytearray` is text (the connection's text factory), `bytes` is a blob."""

_NOTHING = b"N"
_INTEGER = struct.Struct("<cq")
_REAL = struct.Struct("<cd")
_SIZED = struct.Struct("<cI")


class Collected:
    """Encoded rows up to a number of rows and of bytes."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        """Collect nothing yet."""
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self.data = bytearray()
        self.rows = 0
        self.truncated = False
        """Whether a row came that was not kept."""

    def add(self, row: Sequence[Cell]) -> bool:
        """Keep a row whole; False: it is over a cap, and nothing more is to be added."""
        if self.rows == self._max_rows:
            self.truncated = True
            return False
        start = len(self.data)
        for cell in row:
            append(self.data, cell)
        if len(self.data) > self._max_bytes:
            del self.data[start:]
            self.truncated = True
            return False
        self.rows += 1
        return True


def append(data: bytearray, cell: Cell) -> None:
    """Encode one cell at the end of `data`."""
    if cell is None:
        data += _NOTHING
    elif isinstance(cell, int):
        data += _INTEGER.pack(b"I", cell)
    elif isinstance(cell, float):
        data += _REAL.pack(b"F", cell)
    else:
        data += _SIZED.pack(b"T" if isinstance(cell, bytearray) else b"B", len(cell))
        data += cell
