"""Server-sent events, however their bytes are cut."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.providers.anthropic_events import EventReader, NotAReply
from orchestrator.llm.providers.anthropic_stream import ReplyCollector
from tests.model_servers.anthropic import event

STREAM = (
    b": a comment\n\n"
    + event("ping")
    + event("first", text="größer\n")
    + b'event: second\r\ndata: {"type":\r\ndata: "second"}\r\nid: 7\r\n\r\n'
    + b"retry: 3\n\ndata:1\n\n"
    + b'event: cut off\ndata: {"type": "never"}\n'
)
EVENTS = [
    ("ping", {"type": "ping"}),
    ("first", {"type": "first", "text": "größer\n"}),
    ("second", {"type": "second"}),
    ("", 1),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_wherever_their_bytes_are_cut(cuts: list[int]) -> None:
    reader = EventReader()
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[begin:end] for begin, end in pairwise(places)]
    assert [found for chunk in chunks for found in reader.feed(chunk)] == EVENTS


def test_an_event_without_end_is_given_up() -> None:
    reader = EventReader()
    chunks = [b"x" * (1 << 20)] * 64
    with pytest.raises(NotAReply, match="an event of over"):
        list(chain.from_iterable(map(reader.feed, chunks)))


def test_many_events_are_no_large_event() -> None:
    reader = EventReader()
    chunk = event("ping", text="x" * (1 << 20))
    assert sum(len(list(reader.feed(chunk))) for _ in range(64)) == 64


@pytest.mark.parametrize("data", [b"{", b"nothing", b"\xff", b"[" * 100_000])
def test_an_event_holds_json(data: bytes) -> None:
    with pytest.raises(NotAReply, match="no JSON"):
        list(EventReader().feed(b"data: " + data + b"\n\n"))


def test_blocks_without_end_fill_a_reply() -> None:
    collector = ReplyCollector("m")
    index = 0
    while not collector.is_full:
        block = {"type": "text", "text": ""}
        collector.take({"type": "content_block_start", "index": index, "content_block": block})
        index += 1
    assert index < 100_000
    assert collector.gathered().messages[0].text == ""
