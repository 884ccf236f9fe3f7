"""Rows of a query's result, from the bytes that a container sent: a pure, strict decoder.

A cell is one tag byte and its content, numbers little-endian: `N` nothing, `I` eight bytes signed, `F` eight bytes
IEEE 754, `T` u32 length and text as it is stored, `B` likewise a blob.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from orchestrator.domain.sql import Cell, RawText
from orchestrator.errors import ProtocolError

_NOTHING, _INTEGER, _REAL, _TEXT, _BLOB = b"NIFTB"
_INTEGER_FORMAT = struct.Struct("<q")
_REAL_FORMAT = struct.Struct("<d")
_LENGTH_FORMAT = struct.Struct("<I")

Rows = tuple[tuple[Cell, ...], ...]


def decode_rows(body: bytes, *, rows: int, columns: int) -> Rows:
    """The rows of a result.

    Args:
        body: Untrusted; nothing that it claims makes this take more time or memory than its length allows.
        rows: How many it is to hold.
        columns: How many cells each of them has.

    Raises:
        ProtocolError: The body is not exactly that many well-formed cells.
    """
    if rows < 0 or columns < 0 or rows * columns > len(body) or (rows and not columns):
        msg = f"{len(body)} bytes cannot hold {rows} rows of {columns} cells"
        raise ProtocolError(msg)
    cells = tuple(_cells(body, rows * columns))
    return tuple(cells[start : start + columns] for start in range(0, len(cells), columns or 1))


def holds_raw_text(rows: Rows) -> bool:
    """Whether a cell is text that is not UTF-8."""
    return any(isinstance(cell, RawText) for row in rows for cell in row)


def _cells(body: bytes, count: int) -> Iterator[Cell]:
    offset = 0
    try:
        for _ in range(count):
            tag = body[offset]
            offset += 1
            if tag in (_TEXT, _BLOB):
                (length,) = _LENGTH_FORMAT.unpack_from(body, offset)
                offset += _LENGTH_FORMAT.size
                raw = body[offset : offset + length]
                if len(raw) != length:
                    msg = f"a cell of {length} bytes has {len(raw)}"
                    raise ProtocolError(msg)
                offset += length
                yield _text(raw) if tag == _TEXT else raw
            elif tag == _INTEGER:
                yield _INTEGER_FORMAT.unpack_from(body, offset)[0]
                offset += _INTEGER_FORMAT.size
            elif tag == _REAL:
                yield _real(_REAL_FORMAT.unpack_from(body, offset)[0])
                offset += _REAL_FORMAT.size
            elif tag == _NOTHING:
                yield None
            else:
                msg = f"a cell has the unknown tag {tag}"
                raise ProtocolError(msg)
    except (struct.error, IndexError) as error:
        msg = f"the cells end after {offset} bytes, within a cell"
        raise ProtocolError(msg) from error
    if offset != len(body):
        msg = f"the cells take {offset} of {len(body)} bytes"
        raise ProtocolError(msg)


def _real(value: float) -> float:
    if math.isnan(value):  # SQLite has none; it would be equal to nothing, itself included
        msg = "a cell is not a number"
        raise ProtocolError(msg)
    return value


def _text(raw: bytes) -> str | RawText:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return RawText(raw)
