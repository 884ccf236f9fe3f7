"""Decoding the cells of a result: strict, bounded by the bytes that are there, and the inverse of encoding."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.frames import Frame
from orchestrator.domain.sql import Cell, QueryStatus, RawText
from orchestrator.errors import ProtocolError
from orchestrator.evaluation.cells import decode_rows, holds_raw_text
from orchestrator.evaluation.query_results import result_of

TEXTS = st.text() | st.sampled_from(["", "\0", "é", "\U0010ffff"])
RAW = st.binary(min_size=1).filter(lambda raw: not is_text(raw)).map(RawText)
CELLS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS | st.binary() | RAW


def is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def encode(cell: Cell) -> bytes:
    if cell is None:
        return b"N"
    if isinstance(cell, int):
        return b"I" + cell.to_bytes(8, "little", signed=True)
    if isinstance(cell, float):
        return b"F" + struct.pack("<d", cell)
    tag, content = b"B", cell
    if isinstance(cell, str | RawText):
        tag, content = b"T", cell.encode() if isinstance(cell, str) else cell.raw
    assert isinstance(content, bytes)
    return tag + len(content).to_bytes(4, "little") + content


def encoded(rows: Sequence[Sequence[Cell]]) -> bytes:
    return b"".join(encode(cell) for row in rows for cell in row)


@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=6).map(lambda r: (width, r)))
)
def test_decoding_is_the_inverse_of_encoding(table: tuple[int, list[tuple[Cell, ...]]]) -> None:
    columns, rows = table
    decoded = decode_rows(encoded(rows), rows=len(rows), columns=columns)
    assert repr(decoded) == repr(tuple(rows))  # `repr` tells -0.0 from 0.0, and 1 from 1.0
    assert holds_raw_text(decoded) == any(isinstance(cell, RawText) for row in rows for cell in row)


@given(st.binary(max_size=40), st.integers(-1, 6), st.integers(-1, 6))
def test_any_bytes_are_decoded_or_refused(body: bytes, rows: int, columns: int) -> None:
    try:
        decoded = decode_rows(body, rows=rows, columns=columns)
    except ProtocolError:
        return
    assert [len(row) for row in decoded] == [columns] * rows
    assert encoded(decoded) == body


@given(st.lists(CELLS, min_size=1, max_size=4), st.data())
def test_bytes_too_few_or_too_many_are_refused(cells: list[Cell], data: st.DataObject) -> None:
    body = encoded([cells])
    for wrong in (body[: data.draw(st.integers(0, len(body) - 1))], body + b"N"):
        with pytest.raises(ProtocolError):
            decode_rows(wrong, rows=1, columns=len(cells))


@pytest.mark.parametrize(
    ("body", "rows", "columns"),
    [
        (b"X", 1, 1),
        (b"n", 1, 1),
        (b"T\xff\xff\xff\xff", 1, 1),
        (b"T\x00\x00\x00", 1, 1),
        (b"I\x00", 1, 1),
        (b"F" + struct.pack("<d", math.nan), 1, 1),
        (b"NN", 10**12, 10**6),
        (b"", 10**18, 0),
        (b"", 1, 0),
        (b"N", 0, 0),
        (b"N", -1, -1),
    ],
)
def test_what_is_no_result_is_refused_at_once(body: bytes, rows: int, columns: int) -> None:
    with pytest.raises(ProtocolError):
        decode_rows(body, rows=rows, columns=columns)


def test_infinity_is_a_value_of_sqlite() -> None:
    assert decode_rows(encoded([[math.inf, -math.inf]]), rows=1, columns=2) == ((math.inf, -math.inf),)


HEAD = {
    "type": "result",
    "id": 7,
    "status": "ok",
    "message": "",
    "columns": ["a", "b"],
    "rows": 1,
    "truncated": False,
    "wall_seconds": 0.25,
}
BODY = encoded([[1, RawText(b"\xff")]])


def result(body: bytes = BODY, **changes: object) -> object:
    return result_of(Frame({**HEAD, **changes}, body), 7, max_rows=10, max_bytes=1000)


def test_a_result_holds_what_the_frame_says() -> None:
    found = result_of(Frame(HEAD, BODY), 7, max_rows=10, max_bytes=1000)
    assert (found.status, found.columns, found.rows) == (QueryStatus.OK, ("a", "b"), ((1, RawText(b"\xff")),))
    assert (found.lossy_text, found.truncated, found.wall_seconds) == (True, False, 0.25)


def test_the_message_of_a_result_is_one_bounded_line() -> None:
    found = result_of(
        Frame({**HEAD, "status": "error", "columns": [], "rows": 0, "message": "a\n b\t" + "x" * 999}), 7,
        max_rows=10, max_bytes=1000,
    )  # fmt: skip
    assert found.message.startswith("a b xxx")
    assert len(found.message) == 500


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "described"},
        {"id": 8},
        {"id": True},
        {"id": "7"},
        {"id": None},
        {"status": "fine"},
        {"status": None},
        {"status": "error"},
        {"columns": None},
        {"columns": ["a", 2]},
        {"columns": ["a"]},
        {"columns": ["a"] * 501},
        {"rows": 2},
        {"rows": -1},
        {"rows": 11},
        {"rows": True},
        {"rows": 1.0},
        {"truncated": None},
        {"truncated": 0},
        {"wall_seconds": -1},
        {"wall_seconds": True},
        {"wall_seconds": "1"},
        {"wall_seconds": None},
        {"body": b""},
        {"body": BODY + b"N"},
        {"body": BODY * 100},
    ],
)
def test_a_malformed_result_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        result(**changes)  # type: ignore[arg-type]
