"""Taking apart what a container sends, in pieces of any size and with any content."""

from __future__ import annotations

import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.frames import PREFIX, Frame, decode_head, encode
from orchestrator.sandbox.streams import Demultiplexer, FrameCollector, PrintedOutput, RawFrame


def collector(
    frames: list[RawFrame], *, head_bytes: int = 1024, body_bytes: int = 4096, reserved: list[int] | None = None
) -> FrameCollector:
    sizes: list[int] = [] if reserved is None else reserved
    return FrameCollector(head_bytes=head_bytes, body_bytes=body_bytes, reserve=sizes.append, deliver=frames.append)


def pieces(data: bytes, cuts: list[int]) -> list[memoryview]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [memoryview(data)[start:end] for start, end in itertools.pairwise(edges)]


cuts = st.lists(st.integers(0, 10_000), max_size=12)
bodies = st.lists(st.binary(max_size=300), max_size=5)


@given(bodies, cuts)
def test_frames_survive_any_cutting(contents: list[bytes], cuts: list[int]) -> None:
    data = b"".join(encode(Frame({"type": "x", "n": number}, body)) for number, body in enumerate(contents))
    frames: list[RawFrame] = []
    collecting = collector(frames)
    for piece in pieces(data, cuts):
        collecting.feed(piece)
    assert [frame.body for frame in frames] == contents
    assert [decode_head(frame.head)["n"] for frame in frames] == list(range(len(contents)))
    assert collecting.violation is None
    assert not collecting.is_within_a_frame


@given(bodies, cuts)
def test_the_digest_depends_on_the_frames_and_not_on_the_cutting(contents: list[bytes], cuts: list[int]) -> None:
    data = b"".join(encode(Frame({"type": "x"}, body)) for body in contents)
    whole, cut = collector([]), collector([])
    whole.feed(memoryview(data))
    for piece in pieces(data, cuts):
        cut.feed(piece)
    assert whole.digest() == cut.digest()


@given(st.binary(max_size=2000), cuts)
def test_any_bytes_give_frames_or_a_violation_and_never_an_exception(data: bytes, cuts: list[int]) -> None:
    frames: list[RawFrame] = []
    collecting = collector(frames, head_bytes=64, body_bytes=64)
    for piece in pieces(data, cuts):
        collecting.feed(piece)
    assert all(len(frame.head) <= 64 and len(frame.body) <= 64 for frame in frames)
    assert collecting.received_bytes == len(data)


def test_an_oversized_frame_is_a_violation_before_any_of_it_is_kept() -> None:
    reserved: list[int] = []
    collecting = collector([], body_bytes=100, reserved=reserved)
    collecting.feed(memoryview(PREFIX.pack(2, 101)))
    assert collecting.violation == "a frame of 2 + 101 bytes, at most 1024 + 100 are allowed"
    assert reserved == []


def test_nothing_is_taken_after_a_violation() -> None:
    frames: list[RawFrame] = []
    collecting = collector(frames, head_bytes=64)
    collecting.feed(memoryview(PREFIX.pack(65, 0) + encode(Frame({"type": "x"}))))
    assert frames == []


def test_an_empty_head_and_body_make_a_frame_whose_head_is_refused_when_it_is_read() -> None:
    frames: list[RawFrame] = []
    collector(frames).feed(memoryview(PREFIX.pack(0, 0)))
    assert frames == [RawFrame(b"", b"")]


def test_a_channel_that_ends_inside_a_frame_is_known() -> None:
    collecting = collector([])
    collecting.feed(memoryview(encode(Frame({"type": "x"}, b"abc"))[:-1]))
    assert collecting.is_within_a_frame


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 7]), st.binary(max_size=50)), max_size=10), cuts)
def test_streams_are_told_apart_and_unknown_ones_dropped(messages: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(struct.pack(">BxxxL", stream, len(part)) + part for stream, part in messages)
    out, err = bytearray(), bytearray()
    demultiplexer = Demultiplexer({1: out.extend, 2: err.extend})
    for piece in pieces(data, cuts):
        demultiplexer.feed(piece)
    assert bytes(out) == b"".join(part for stream, part in messages if stream == 1)
    assert bytes(err) == b"".join(part for stream, part in messages if stream == 2)


@given(st.lists(st.binary(max_size=400), max_size=20), st.integers(0, 1000))
def test_printed_output_is_whole_or_has_its_beginning_and_end_within_the_limit(parts: list[bytes], keep: int) -> None:
    printed = PrintedOutput(keep)
    for part in parts:
        printed.feed(memoryview(part))
    everything = b"".join(parts)
    assert printed.printed_bytes == len(everything)
    assert len(printed.value()) <= keep
    assert printed.is_truncated is (len(everything) > keep)
    if not printed.is_truncated:
        assert printed.value() == everything
    elif keep > 200:
        start, _, end = printed.value().partition(b" bytes omitted]\n")
        assert everything.startswith(start.rpartition(b"\n[")[0])
        assert everything.endswith(end)


def test_the_note_on_what_was_cut_adds_up() -> None:
    printed = PrintedOutput(264)
    printed.feed(memoryview(b"a" * 1000))
    printed.feed(memoryview(b"b" * 1000))
    assert printed.value() == b"a" * 100 + b"\n[1800 bytes omitted]\n" + b"b" * 100
