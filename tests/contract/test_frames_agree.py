"""The two implementations of frames, the orchestrator's and the one in the images, are one format."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain import frames as ours
from orchestrator.errors import ProtocolError

PATH = Path(__file__).parents[2] / "sandbox_images" / "base" / "runner" / "frames.py"


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


theirs = load("frames_in_the_images", PATH)

anything = st.text(st.characters(exclude_categories=()), max_size=8)  # also lone surrogates
scalars = st.none() | st.booleans() | st.integers(-(10**21), 10**21) | anything | st.floats()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(anything, inner), max_leaves=20)
heads = st.dictionaries(anything, values, max_size=4).map(lambda head: {"type": "call", **head})
tables = st.lists(st.lists(st.text(max_size=3) | st.integers(-2, 9) | st.booleans(), max_size=3) | st.none())

BAD_HEADS = [
    b"",
    b"{}",
    b"[]",
    b'{"type": 1}',
    b'{"type": "a"',
    b'{"type": "a"} x',
    b'{"type": "a", "type": "a"}',
    b'{"type": "a", "x": {"y": 1, "y": 2}}',
    b'{"type": "a", "x": NaN}',
    b'{"type": "a", "x": -Infinity}',
    b'{"type": "a", "x": 1e999}',
    b'{"type": "a", "x": ' + b"1" * 21 + b"}",
    b'{"type": "a", "x": ' + b"1" * 10_000 + b"}",
    b'{"type": "a", "x": "\\ud800"}',
    b'{"type": "a", "\\udfff": 1}',
    b'{"type": "\xed\xa0\x80"}',
    b'{"type": "\xff"}',
    b'\xef\xbb\xbf{"type": "a"}',
    '{"type": "a"}'.encode("utf-16"),
    b'{"type": "a", "x": ' + b"[" * 16 + b"]" * 16 + b"}",
    b'{"type": "a", "x": ' + b"[" * 100_000,
    b'{"type": "a", "x": "' + b"[" * 17 + b'", "y": ' + b"{" * 17,
]
GOOD_HEADS = [
    b'{"type": "a"}',
    b' {"type":"a","x":[1,2.5,null,true,"\\ud83d\\ude00"]} ',
    b'{"type": "a", "x": ' + b"[" * 15 + b"]" * 15 + b"}",
    b'{"type": "a", "x": "' + b"[{" * 50 + b'\\"", "y": []}',
    b'{"type": "a", "x": [' + b"[]," * 50 + b"[]]}",
    b'{"type": "a", "x": -99999999999999999999}'[:-5] + b"}",
]


def encoded(module: Any, head: dict[str, Any], body: bytes) -> bytes | str:
    """The bytes, or that it was refused."""
    try:
        return bytes(module.encode(module.Frame(head, body)))
    except (ProtocolError, theirs.ProtocolError):
        return "refused"


def decoded(module: Any, raw: bytes) -> object:
    """The head, or that it was refused."""
    try:
        return module.decode_head(raw)
    except (ProtocolError, theirs.ProtocolError):
        return "refused"


@given(heads, st.binary())
def test_both_sides_encode_every_head_to_the_same_bytes_or_refuse_it(head: dict[str, Any], body: bytes) -> None:
    assert encoded(ours, head, body) == encoded(theirs, head, body)


@given(heads, st.binary())
def test_what_one_side_encodes_both_sides_decode_to_the_same_frame(head: dict[str, Any], body: bytes) -> None:
    raw = encoded(ours, head, body)
    if isinstance(raw, bytes):
        first, second = ours.decode(raw), theirs.decode(raw)
        assert (first.head, first.body) == (second.head, second.body)
        assert first.body == body


@given(st.binary() | heads.map(lambda head: json.dumps(head).encode()))
def test_both_sides_take_or_refuse_any_bytes_alike(raw: bytes) -> None:
    assert decoded(ours, raw) == decoded(theirs, raw)


@pytest.mark.parametrize("raw", BAD_HEADS)
def test_both_sides_refuse_a_head_that_is_not_strict_json(raw: bytes) -> None:
    assert decoded(ours, raw) == decoded(theirs, raw) == "refused"


@pytest.mark.parametrize("raw", GOOD_HEADS)
def test_both_sides_take_a_strict_head(raw: bytes) -> None:
    assert decoded(ours, raw) == decoded(theirs, raw) != "refused"


@given(tables, st.binary(max_size=20))
def test_both_sides_take_or_refuse_a_blob_table_alike(table: list[Any], body: bytes) -> None:
    def unpacked(module: Any) -> object:
        try:
            return module.unpack_blobs(table, body)
        except (ProtocolError, theirs.ProtocolError):
            return "refused"

    assert unpacked(ours) == unpacked(theirs)


@given(st.dictionaries(st.text(), st.binary()))
def test_blobs_survive_the_way_through_both_sides(blobs: dict[str, bytes]) -> None:
    table, body = ours.pack_blobs(blobs)
    assert (table, body) == theirs.pack_blobs(blobs)
    assert theirs.unpack_blobs(table, body) == blobs


def test_the_limits_are_the_same() -> None:
    names = ("MAX_HEAD_BYTES", "MAX_BODY_BYTES", "MAX_DEPTH")
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]
    assert ours.PREFIX.format == theirs.PREFIX.format


def test_a_body_over_the_limit_is_refused_by_both_sides() -> None:
    body = bytes(ours.MAX_BODY_BYTES + 1)
    assert encoded(ours, {"type": "a"}, body) == encoded(theirs, {"type": "a"}, body) == "refused"


@pytest.mark.parametrize("raw", [b"", b"\0" * 7, b"\0\0\0\2\0\0\0\0{}x", b"\0\0\0\2\0\0\0\5{}x", b"\xff" * 8])
def test_both_sides_refuse_an_inner_frame_whose_sizes_do_not_add_up(raw: bytes) -> None:
    with pytest.raises(theirs.ProtocolError):
        theirs.decode(raw)
    with pytest.raises(ProtocolError):
        ours.decode(raw)
