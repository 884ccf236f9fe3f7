"""A channel over a real socket whose other end behaves badly."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from orchestrator.domain.frames import PREFIX, Frame, encode
from orchestrator.domain.policies import MIB, Limits
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.channel import QUEUE_BYTES, STALL_SECONDS, Channel

Open = Callable[[Limits], tuple[Channel, socket.socket]]


@pytest.fixture
def opened() -> Iterator[Open]:
    channels: list[Channel] = []
    peers: list[socket.socket] = []

    def connect(limits: Limits) -> tuple[Channel, socket.socket]:
        ours, theirs = socket.socketpair()
        channel = Channel(ours, limits, name="test", on_end=lambda _: None)
        channels.append(channel)
        peers.append(theirs)
        return channel, theirs

    yield connect
    for channel in channels:
        channel.close()
        channel.join()
    for peer in peers:
        peer.close()


def packet(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


def frame(body: bytes = b"", kind: str = "x") -> bytes:
    return packet(1, encode(Frame({"type": kind}, body)))


def flood(peer: socket.socket, data: bytes, stop: threading.Event) -> Worker[int]:
    """Write `data` again and again until the other side is gone; how many bytes that were."""

    def write() -> int:
        written = 0
        while not stop.is_set():
            try:
                peer.sendall(data)
            except OSError:
                break
            written += len(data)
        return written

    return spawn("flood", write)


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_frames_arrive_in_order_and_whole(opened: Open) -> None:
    channel, peer = opened(Limits())
    peer.sendall(frame(b"a" * 100_000) + frame(b"b"))
    assert channel.receive(5) == Frame({"type": "x"}, b"a" * 100_000)
    assert channel.receive(5) == Frame({"type": "x"}, b"b")


def test_a_frame_is_sent_whole_although_the_other_side_reads_slowly(opened: Open) -> None:
    channel, peer = opened(Limits())
    sent = Frame({"type": "start"}, bytes(range(256)) * 40_000)
    worker = spawn("send", lambda: channel.send(sent))
    received = bytearray()
    while len(received) < len(encode(sent)):
        received += peer.recv(100_000)
    assert worker.join(5)
    assert bytes(received) == encode(sent)


def test_waiting_for_a_frame_ends_when_the_time_is_up(opened: Open) -> None:
    channel, _ = opened(Limits())
    start = time.monotonic()
    assert channel.receive(0.2) is None
    assert 0.2 <= time.monotonic() - start < 2
    assert not channel.has_ended


def test_frames_from_before_the_end_are_delivered_and_then_none(opened: Open) -> None:
    channel, peer = opened(Limits())
    peer.sendall(frame(b"last"))
    peer.close()
    until(lambda: channel.has_ended)
    received = channel.receive(5)
    assert received is not None
    assert received.body == b"last"
    assert channel.receive(5) is None
    assert channel.ended_by_itself


def test_no_frame_is_delivered_after_a_limit_was_met(opened: Open) -> None:
    channel, peer = opened(Limits(output_kill_bytes=10))
    peer.sendall(frame(b"result") + packet(2, b"x" * 11))
    until(lambda: channel.has_ended)
    assert channel.receive(1) is None
    assert channel.excess is not None
    assert "output_kill_bytes" in channel.excess
    assert not channel.ended_by_itself


@pytest.mark.parametrize(
    "data",
    [
        PREFIX.pack(2, 0) + b"[]",
        PREFIX.pack(8, 0) + b'{"type":',
        PREFIX.pack(12, 0) + b'{"type":NaN}',
        PREFIX.pack(9999999, 0),
        PREFIX.pack(0, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_s9_malformed_frames_end_the_channel_as_a_violation(opened: Open, data: bytes) -> None:
    channel, peer = opened(Limits())
    peer.sendall(packet(1, data))
    assert channel.receive(5) is None
    assert channel.violation is not None
    assert channel.has_ended


def test_an_end_inside_a_frame_is_a_violation(opened: Open) -> None:
    channel, peer = opened(Limits())
    peer.sendall(packet(1, PREFIX.pack(10, 10) + b"{"))
    peer.close()
    assert channel.receive(5) is None
    assert channel.violation == "the channel ended inside a frame"


def test_more_than_channel_bytes_of_frames_is_an_excess(opened: Open) -> None:
    channel, peer = opened(Limits(channel_bytes=4096))
    stop = threading.Event()
    worker = flood(peer, frame(b"x" * 1000), stop)
    while channel.receive(5) is not None:
        pass
    assert channel.excess is not None
    assert "channel_bytes" in channel.excess
    assert worker.join(5)


def test_sending_more_than_channel_bytes_is_an_excess_and_sends_nothing(opened: Open) -> None:
    channel, peer = opened(Limits(channel_bytes=1024))
    channel.send(Frame({"type": "x"}, b"x" * 2000))
    assert channel.has_ended
    assert channel.excess is not None
    assert "channel_bytes" in channel.excess
    assert channel.receive(5) is None
    assert peer.recv(100) == b""


def test_a_frame_that_is_sent_on_has_the_bytes_it_came_with(opened: Open) -> None:
    raw = b'{ "type":"x", "y":"' + "\N{SNOWMAN}".encode() * 1000 + b'" }'
    whole = PREFIX.pack(len(raw), 3) + raw + b"end"
    source, theirs = opened(Limits())
    target, peer = opened(Limits())
    theirs.sendall(packet(1, whole))
    received = source.receive(5)
    assert received is not None
    target.send(received)
    assert peer.recv(10_000) == whole
    assert target.input_digest == source.output_digest


def test_closing_wakes_whoever_waits_for_a_frame(opened: Open) -> None:
    channel, _ = opened(Limits())
    worker = spawn("wait", lambda: channel.receive(60))
    time.sleep(0.1)
    start = time.monotonic()
    channel.close()
    assert worker.join(5)
    assert worker.result() is None
    assert time.monotonic() - start < 2


def test_closing_wakes_whoever_sends_to_a_container_that_does_not_read(opened: Open) -> None:
    channel, _ = opened(Limits())
    worker = spawn("send", lambda: channel.send(Frame({"type": "x"}, b"x" * (16 * MIB))))
    time.sleep(0.2)
    channel.close()
    assert worker.join(5)
    assert worker.error is None


def test_sending_to_a_container_that_has_ended_is_swallowed(opened: Open) -> None:
    channel, peer = opened(Limits())
    peer.close()
    until(lambda: channel.has_ended)
    channel.send(Frame({"type": "x"}, b"x" * MIB))


def test_r12_a_consumer_that_takes_nothing_ends_a_flood_of_frames_in_bounded_time(opened: Open) -> None:
    channel, peer = opened(Limits())
    stop = threading.Event()
    start = time.monotonic()
    worker = flood(peer, frame(b"x" * 100_000), stop)
    assert worker.join(STALL_SECONDS + 5)
    assert time.monotonic() - start < STALL_SECONDS + 3
    assert channel.excess is not None
    assert "ahead of what was asked for" in channel.excess


def test_a_consumer_that_is_merely_slow_loses_nothing(opened: Open) -> None:
    channel, peer = opened(Limits())
    count = 4 * QUEUE_BYTES // MIB
    worker = spawn("write", lambda: [peer.sendall(frame(bytes([n]) * MIB)) for n in range(count)])
    seen = []
    for _ in range(count):
        received = channel.receive(5)
        assert received is not None
        seen.append(received.body[0])
        time.sleep(0.01)
    assert seen == list(range(count))
    assert worker.join(5)


@pytest.mark.parametrize(
    "data",
    [
        packet(2, b"x" * 65536),
        packet(2, b"x"),
        frame(b"x" * 65536),
        packet(1, encode(Frame({"type": "x", "a": [[]] * 10_000}))),
        packet(1, PREFIX.pack(60_000, 16 * MIB) + b" " * 60_000),
        packet(9, b"x" * 65536),
    ],
    ids=["stderr", "stderr one byte", "frames", "list heads", "endless bodies", "unknown stream"],
)
def test_r11_a_flood_makes_our_memory_grow_by_less_than_32_mib(opened: Open, data: bytes) -> None:
    tracemalloc.start()
    try:
        channel, peer = opened(Limits(output_kill_bytes=1 << 30, frame_body_bytes=16 * MIB))
        stop = threading.Event()
        worker = flood(peer, data * max(1, 65536 // len(data)), stop)
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline and not channel.has_ended:
            time.sleep(0.05)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    channel.close()
    stop.set()
    assert worker.join(5)
    assert peak < 32 * MIB
