"""Frames are strict: what JSON parsers let through by habit is refused here (threat S9), and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.frames import (
    MAX_BODY_BYTES,
    MAX_DEPTH,
    MAX_HEAD_BYTES,
    PREFIX,
    Frame,
    check_depth,
    decode,
    decode_head,
    encode,
    pack_blobs,
    unpack_blobs,
)
from orchestrator.errors import ProtocolError

texts = st.text(max_size=10)
scalars = st.none() | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.floats(-1e300, 1e300) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
heads = st.builds(lambda head, name: {**head, "type": name}, st.dictionaries(texts, values, max_size=4), texts)


@given(heads, st.binary(max_size=200))
def test_a_frame_comes_out_as_it_went_in(head: dict[str, Any], body: bytes) -> None:
    frame = decode(encode(Frame(head, body)))
    assert frame.head == head
    assert frame.body == body
    assert frame.type == head["type"]


@given(st.binary(max_size=200))
def test_noise_is_refused_with_a_protocol_error_or_is_a_frame(noise: bytes) -> None:
    for parse in (decode, decode_head):
        try:
            parse(noise)
        except ProtocolError:
            continue


@given(heads, st.binary(max_size=20), st.data())
def test_a_frame_that_is_cut_off_or_has_more_behind_it_is_refused(
    head: dict[str, Any], body: bytes, data: st.DataObject
) -> None:
    raw = encode(Frame(head, body))
    with pytest.raises(ProtocolError):
        decode(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(ProtocolError, match="claims"):
        decode(raw + b"\x00")


STRICT = {
    "nan": b'{"type": "t", "x": NaN}',
    "infinity": b'{"type": "t", "x": Infinity}',
    "minus infinity": b'{"type": "t", "x": -Infinity}',
    "1e999": b'{"type": "t", "x": 1e999}',
    "-1e999": b'{"type": "t", "x": [-1e999]}',
    "duplicate keys": b'{"type": "t", "x": 1, "x": 2}',
    "duplicate type": b'{"type": "a", "type": "b"}',
    "duplicate keys written differently": b'{"type": "t", "a": 1, "\\u0061": 2}',
    "duplicate keys within": b'{"type": "t", "x": [{"y": 1, "y": 1}]}',
    "10,000-digit integer": b'{"type": "t", "x": ' + b"9" * 10_000 + b"}",
    "21-digit integer": b'{"type": "t", "x": 100000000000000000000}',
    "depth 100,000": b'{"type": "t", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "one level too deep": b'{"type": "t", "x": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    "deep and never closed": b'{"type": "t", "x": ' + b'{"a":' * 100_000,
    "lone surrogate": b'{"type": "t", "x": "\\ud800"}',
    "lone surrogate as a key": b'{"type": "t", "\\uDfff": 1}',
    "lone surrogate in the type": b'{"type": "\\ud800"}',
    "surrogate pair the wrong way round": b'{"type": "t", "x": "\\udc00\\ud800"}',
    "surrogate as utf-8 bytes": b'{"type": "t", "x": "\xed\xa0\x80"}',
    "true for the type": b'{"type": true}',
    "number for the type": b'{"type": 1}',
    "null for the type": b'{"type": null}',
    "no type": b'{"kind": "t"}',
    "byte order mark": b'\xef\xbb\xbf{"type": "t"}',
    "trailing data": b'{"type": "t"} {}',
    "trailing comma": b'{"type": "t",}',
    "trailing nul": b'{"type": "t"}\x00',
    "two values": b'{"type": "t"}\n{"type": "t"}',
    "utf-16": '{"type": "t"}'.encode("utf-16"),
    "utf-16 without mark": '{"type": "t"}'.encode("utf-16-le"),
    "utf-32": '{"type": "t"}'.encode("utf-32"),
    "latin-1": '{"type": "ü"}'.encode("latin-1"),
    "overlong utf-8": b'{"type": "\xc0\xae"}',
    "control character": b'{"type": "a\nb"}',
    "single quotes": b"{'type': 't'}",
    "comment": b'{"type": "t" /* x */}',
    "hexadecimal": b'{"type": "t", "x": 0x10}',
    "leading zero": b'{"type": "t", "x": 01}',
    "list": b'[{"type": "t"}]',
    "string": b'"type"',
    "null": b"null",
    "nothing": b"",
    "space": b"  ",
}


@pytest.mark.parametrize("raw", STRICT.values(), ids=STRICT.keys())
def test_s9_json_that_is_not_strict_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="frame head is not"):
        decode_head(raw)


def test_s9_a_head_full_of_keys_is_bounded_by_its_size() -> None:
    keys = ",".join(f'"{n}":0' for n in range(90_000))
    raw = ('{"type":"t",' + keys + "}").encode()
    assert len(raw) < MAX_HEAD_BYTES
    assert len(decode_head(raw)) == 90_001


def test_s9_the_refusal_of_deep_nesting_does_not_recurse_and_ignores_brackets_in_strings() -> None:
    with pytest.raises(ValueError, match="too deep"):
        check_depth("[" * 1_000_000)
    quoted = json.dumps({"type": "t", "x": "[" * 1000 + '"\\' + "{" * 1000})
    assert decode_head(quoted.encode())["x"].count("[") == 1000
    deepest = '{"type": "t", "x": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    assert decode_head(deepest.encode())["type"] == "t"


def test_what_is_unusual_but_strict_is_accepted() -> None:
    raw = b' {"type": "\\ud83d\\ude00", "x": [1e308, -0.0, 18446744073709551615, -9223372036854775808, "\\u0000"]} '
    head = decode_head(raw)
    assert head["type"] == "\U0001f600"
    assert head["x"] == [1e308, 0.0, 2**64 - 1, -(2**63), "\x00"]


@pytest.mark.parametrize(
    "head",
    [
        {"type": "t", "x": float("nan")},
        {"type": "t", "x": b"bytes"},
        {"type": "t", "x": {1, 2}},
        {"type": "t", "x": "\ud800"},
        {"type": "t", "x": 1 << 80},
        {"type": 1},
        {"no": "type"},
    ],
    ids=str,
)
def test_nothing_is_sent_that_the_other_side_would_refuse(head: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        encode(Frame(head))


def test_absolute_limits_hold_in_both_directions() -> None:
    with pytest.raises(ProtocolError, match="over the limit"):
        encode(Frame({"type": "t", "x": "y" * MAX_HEAD_BYTES}))
    with pytest.raises(ProtocolError, match="over the limit"):
        encode(Frame({"type": "t"}, bytes(MAX_BODY_BYTES + 1)))
    with pytest.raises(ProtocolError, match="claims 4294967295"):
        decode(PREFIX.pack(0xFFFFFFFF, 0) + b"{}")


@given(st.dictionaries(texts, st.binary(max_size=50), max_size=6))
def test_blobs_come_out_as_they_went_in(blobs: dict[str, bytes]) -> None:
    table, body = pack_blobs(blobs)
    assert unpack_blobs(table, body) == blobs
    assert unpack_blobs(json.loads(json.dumps(table)), body) == blobs


@pytest.mark.parametrize(
    "table",
    [
        None,
        {},
        "ab",
        [["a", 1], ["a", 1]],
        [["a", 3]],
        [["a", 1]],
        [["a", -1], ["b", 3]],
        [["a", True], ["b", 1]],
        [["a", 2.0]],
        [["a", "2"]],
        [[1, 2]],
        [["a"]],
        [["a", 2, 0]],
        ["ab"],
        [],
    ],
    ids=str,
)
def test_a_blob_table_that_does_not_fit_its_body_is_refused(table: object) -> None:
    with pytest.raises(ProtocolError, match="blob table"):
        unpack_blobs(table, b"xy")
