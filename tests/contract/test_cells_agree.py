"""What the runner in the `sql` image encodes is what the trusted side decodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import RawText
from orchestrator.evaluation.cells import decode_rows

PATH = Path(__file__).parents[2] / "sandbox_images" / "sql" / "runner" / "cells.py"
SPEC = importlib.util.spec_from_file_location("cells_in_the_image", PATH)
assert SPEC is not None
assert SPEC.loader is not None
runner = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runner)

VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary()
    | st.binary().map(bytearray)
    | st.text().map(lambda text: bytearray(text.encode()))
)


def as_decoded(value: object) -> object:
    """SQLite's value as the runner holds it (`bytearray` is text), and as the trusted side does."""
    if not isinstance(value, bytearray):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return RawText(bytes(value))


@given(st.lists(st.tuples(VALUES, VALUES), max_size=8))
def test_rows_arrive_as_they_were_sent(rows: list[tuple[object, object]]) -> None:
    collected = runner.Collected(100, 1 << 20)
    assert all(collected.add(row) for row in rows)
    decoded = decode_rows(bytes(collected.data), rows=collected.rows, columns=2)
    assert repr(decoded) == repr(tuple(tuple(map(as_decoded, row)) for row in rows))


@given(st.lists(st.tuples(VALUES), max_size=12), st.integers(1, 8), st.integers(1, 60))
def test_what_is_cut_off_is_cut_between_rows(rows: list[tuple[object]], max_rows: int, max_bytes: int) -> None:
    collected = runner.Collected(max_rows, max_bytes)
    taken = 0
    for row in rows:
        if not collected.add(row):
            break
        taken += 1
    assert collected.truncated == (taken < len(rows))
    assert len(collected.data) <= max_bytes
    assert len(decode_rows(bytes(collected.data), rows=collected.rows, columns=1)) == taken <= max_rows


@pytest.mark.parametrize("value", [0.1 + 0.2, -0.0, 5e-324, 2**63 - 1, -(2**63)])
def test_numbers_keep_every_bit(value: float) -> None:
    collected = runner.Collected(1, 100)
    collected.add((value,))
    assert repr(decode_rows(bytes(collected.data), rows=1, columns=1)[0][0]) == repr(value)
