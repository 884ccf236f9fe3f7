"""Length-prefixed frames: the only thing that goes into or out of a container.

A frame is an 8-byte prefix (two big-endian unsigned 32-bit integers: bytes of the head, bytes of the body), a head
(strict JSON object in UTF-8 with a string `type`) and a body (raw bytes, whose meaning the head declares). This is the
side in the images; a contract test holds it together with the orchestrator's, byte for byte.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = struct.Struct(">II")
MAX_HEAD_BYTES = 1 << 20
MAX_BODY_BYTES = 64 << 20
MAX_DEPTH = 16
_KEPT_HEAD_BYTES = 4096
_KEPT_HEADS = 64
"""A talk of many small calls says few different heads again and again; so many of at most that size are remembered."""


class ProtocolError(Exception):
    """Bytes that are not a well-formed frame, or a frame that does not belong here."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A checked message; `head["type"]` is always a string."""

    head: Mapping[str, Any]
    body: bytes = b""

    @property
    def type(self) -> str:
        """What kind of message this is."""
        return str(self.head["type"])


def encode(frame: Frame) -> bytes:
    """Bytes of a frame that the other side accepts.

    Raises:
        ProtocolError: The head is not strict JSON, or a part is over the absolute limits.
    """
    try:
        head = json.dumps(dict(frame.head), allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"head of a {frame.head.get('type')!r} frame is not JSON: {error}"
        raise ProtocolError(msg) from error
    decode_head(head)
    if len(head) > MAX_HEAD_BYTES or len(frame.body) > MAX_BODY_BYTES:
        msg = f"a {frame.type!r} frame of {len(head)} + {len(frame.body)} bytes is over the limit"
        raise ProtocolError(msg)
    return PREFIX.pack(len(head), len(frame.body)) + head + frame.body


def decode(raw: bytes) -> Frame:
    """The one frame that `raw` holds from its first to its last byte.

    Raises:
        ProtocolError: The sizes do not add up to `raw`, a part is over the absolute limits, or the head is refused.
    """
    if len(raw) < PREFIX.size:
        msg = f"an inner frame of {len(raw)} bytes has no prefix"
        raise ProtocolError(msg)
    head_bytes, body_bytes = PREFIX.unpack_from(raw)
    check_sizes(head_bytes, body_bytes)
    if len(raw) != PREFIX.size + head_bytes + body_bytes:
        msg = f"an inner frame claims {head_bytes} + {body_bytes} bytes and has {len(raw) - PREFIX.size}"
        raise ProtocolError(msg)
    start = PREFIX.size + head_bytes
    return Frame(decode_head(raw[PREFIX.size : start]), raw[start:])


def check_sizes(head_bytes: int, body_bytes: int) -> None:
    """Refuse a frame by its prefix alone.

    Raises:
        ProtocolError: A part is over the absolute limits.
    """
    if head_bytes > MAX_HEAD_BYTES or body_bytes > MAX_BODY_BYTES:
        msg = f"a frame of {head_bytes} + {body_bytes} bytes is over the limit"
        raise ProtocolError(msg)


def decode_head(raw: bytes) -> dict[str, Any]:
    """One strict JSON object: UTF-8, no duplicate keys, finite numbers, no lone surrogates, bounded depth and integers.

    Values inside of it may be shared with later heads of the same bytes, and are not to be changed.

    Raises:
        ProtocolError: Anything else.
    """
    return _parse_head(raw) if len(raw) > _KEPT_HEAD_BYTES else dict(_kept_head(raw))


@functools.lru_cache(_KEPT_HEADS)
def _kept_head(raw: bytes) -> dict[str, Any]:
    return _parse_head(raw)


def _parse_head(raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
        check_depth(text)
        head = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=_int)
        if "\\" in text:  # only an escape can bring in a lone surrogate, and that does not encode
            json.dumps(head, ensure_ascii=False).encode("utf-8")
    except (UnicodeError, ValueError, RecursionError) as error:
        msg = f"frame head is not strict JSON: {type(error).__name__}"
        raise ProtocolError(msg) from error
    if not isinstance(head, dict) or not isinstance(head.get("type"), str):
        msg = "frame head is not an object with a string 'type'"
        raise ProtocolError(msg)
    return head


def check_depth(text: str) -> None:  # noqa: C901 - one scan, and as the orchestrator's side has it
    """Refuse nesting over `MAX_DEPTH` before the recursive parser sees it.

    Raises:
        ValueError: Too deep.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return  # nearly every head of the hot path; the scan below costs more than everything else together
    depth = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                msg = "nested too deep"
                raise ValueError(msg)
        elif character in "]}":
            depth -= 1


def pack_blobs(blobs: Mapping[str, bytes]) -> tuple[list[list[Any]], bytes]:
    """Named blobs as (table of [name, size] for the head, body)."""
    return [[name, len(data)] for name, data in blobs.items()], b"".join(blobs.values())


def unpack_blobs(table: object, body: bytes) -> dict[str, bytes]:
    """The inverse of `pack_blobs` for untrusted input.

    Raises:
        ProtocolError: The table is malformed, names repeat, or sizes do not add up to the body.
    """
    blobs: dict[str, bytes] = {}
    offset = 0
    for name, size in _rows(table):
        if name in blobs or size < 0 or offset + size > len(body):
            msg = f"blob table entry {name!r} repeats or does not fit the body"
            raise ProtocolError(msg)
        blobs[name] = body[offset : offset + size]
        offset += size
    if offset != len(body):
        msg = f"blob table covers {offset} of {len(body)} bytes"
        raise ProtocolError(msg)
    return blobs


def _rows(table: object) -> Iterable[tuple[str, int]]:
    if not isinstance(table, list):
        msg = "blob table is not a list"
        raise ProtocolError(msg)
    for row in table:
        match row:
            case [str() as name, int() as size] if not isinstance(size, bool):
                yield name, size
            case _:
                msg = "blob table row is not [name, size]"
                raise ProtocolError(msg)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    head = dict(pairs)
    if len(head) != len(pairs):
        msg = "duplicate key"
        raise ValueError(msg)
    return head


def _refuse(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text[:20])
    return value


def _int(text: str) -> int:
    if len(text) > 20:
        msg = "integer of more than 20 characters"
        raise ValueError(msg)
    return int(text)
