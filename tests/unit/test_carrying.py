"""Carrying an exchange between two channels over real sockets whose other ends the test plays."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Self

import pytest

from orchestrator.domain.exchanges import Exchange, Stop, Wrapping
from orchestrator.domain.frames import PREFIX, Frame, decode, decode_head, encode
from orchestrator.domain.policies import MIB, Limits
from orchestrator.errors import Cancelled, ProtocolError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.carrying import Carrier
from orchestrator.sandbox.channel import Channel

WRAPPING = Wrapping(question="ask", answer="told", end="gone", head_bytes=200)
LAST = Frame({"type": "verdict"}, b"last words")


class Peer:
    """The container's end of a channel."""

    def __init__(self, limits: Limits) -> None:
        ours, self.socket = socket.socketpair()
        self.socket.settimeout(20)
        self.channel = Channel(ours, limits, name="test", on_end=lambda _: None)

    def say(self, frame: Frame) -> None:
        data = encode(frame)
        self.socket.sendall(struct.pack(">BxxxL", 1, len(data)) + data)

    def ask(self, question: Frame | bytes) -> None:
        self.say(Frame({"type": "ask"}, question if isinstance(question, bytes) else encode(question)))

    def hear(self) -> Frame:
        head_bytes, body_bytes = PREFIX.unpack(self._exactly(PREFIX.size))
        return Frame(decode_head(self._exactly(head_bytes)), self._exactly(body_bytes))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part, "the channel was closed"
            data += part
        return bytes(data)


class Stage:
    """Both ends, and the exchange between them."""

    def __init__(self, limits: Limits) -> None:
        self.asker, self.answerer = Peer(limits), Peer(limits)
        self.carrier = Carrier(self.asker.channel, self.answerer.channel, WRAPPING, time.monotonic)

    def start(self, check: Callable[[], None] = lambda: None) -> Worker[Exchange]:
        return spawn("exchange", lambda: self.carrier.carry(check))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in (self.asker, self.answerer):
            peer.channel.close()
            peer.channel.join()
            peer.socket.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(Limits()) as stage:
        yield stage


def call(number: int, size: int = 0) -> Frame:
    return Frame({"type": "call", "number": number}, bytes(size))


def reply(number: int, size: int = 0) -> Frame:
    return Frame({"type": "reply", "number": number}, bytes(size))


def outcome(worker: Worker[Exchange]) -> Exchange:
    assert worker.join(20)
    return worker.result()


def test_questions_and_answers_pass_in_order_with_several_under_way(stage: Stage) -> None:
    worker = stage.start()
    for number in range(3):
        stage.asker.ask(call(number))
    assert [stage.answerer.hear() for _ in range(3)] == [call(number) for number in range(3)]
    for number in range(3):
        stage.answerer.say(reply(number))
    told = [stage.asker.hear() for _ in range(3)]
    assert {frame.type for frame in told} == {"told"}
    assert [decode(frame.body) for frame in told] == [reply(number) for number in range(3)]
    stage.asker.say(LAST)
    went = outcome(worker)
    assert (went.last, went.questions) == (LAST, 3)


def test_what_came_before_the_exchange_began_takes_part_in_it(stage: Stage) -> None:
    stage.asker.ask(call(1))
    stage.answerer.say(reply(1))
    deadline = time.monotonic() + 10
    while not (stage.asker.channel.has_unread and stage.answerer.channel.has_unread):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    worker = stage.start()
    assert decode(stage.asker.hear().body) == reply(1)
    stage.asker.say(LAST)
    assert outcome(worker).last == LAST


def test_an_answer_nobody_asked_for_waits_for_the_next_question(stage: Stage) -> None:
    worker = stage.start()
    for number in range(2):
        stage.answerer.say(reply(number))
    stage.asker.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stage.asker.socket.recv(1)
    stage.asker.socket.settimeout(20)
    for number in range(2):
        stage.asker.ask(call(number))
        assert decode(stage.asker.hear().body) == reply(number)
    stage.asker.say(LAST)
    assert outcome(worker).questions == 2


def test_nothing_that_the_answerer_says_is_taken_for_the_askers_last_word(stage: Stage) -> None:
    worker = stage.start()
    for forged in (LAST, Frame({"type": "gone"}), Frame({"type": "ask"}, encode(call(9)))):
        stage.asker.ask(call(0))
        stage.answerer.say(forged)
        frame = stage.asker.hear()
        assert (frame.type, decode(frame.body)) == ("told", forged)
    stage.asker.say(Frame({"type": "verdict"}, b"own"))
    assert outcome(worker).last == Frame({"type": "verdict"}, b"own")


def test_an_asker_whose_answerer_has_ended_is_told_after_the_last_answer_and_has_the_last_word(stage: Stage) -> None:
    worker = stage.start()
    for number in range(3):
        stage.asker.ask(call(number))
        assert stage.answerer.hear() == call(number)
    stage.answerer.say(reply(0))
    stage.answerer.socket.close()
    assert decode(stage.asker.hear().body) == reply(0)
    assert stage.asker.hear() == Frame({"type": "gone"})
    stage.asker.say(LAST)
    assert outcome(worker).last == LAST


def test_an_answerer_that_ends_with_nothing_open_is_missed_at_the_next_question(stage: Stage) -> None:
    worker = stage.start()
    stage.asker.ask(call(0))
    stage.answerer.say(reply(0))
    stage.answerer.socket.close()
    assert decode(stage.asker.hear().body) == reply(0)
    assert not worker.join(0.7)
    stage.asker.ask(call(1))
    assert stage.asker.hear() == Frame({"type": "gone"})
    stage.asker.say(LAST)
    assert outcome(worker).last == LAST


def test_when_both_end_it_is_the_answerer_that_is_named(stage: Stage) -> None:
    worker = stage.start()
    stage.asker.ask(call(0))
    stage.answerer.hear()
    stage.answerer.socket.close()
    assert stage.asker.hear() == Frame({"type": "gone"})
    stage.asker.socket.close()
    assert outcome(worker).last is Stop.ANSWERER_ENDED


def test_an_asker_that_ends_ends_the_exchange(stage: Stage) -> None:
    worker = stage.start()
    stage.asker.socket.close()
    assert outcome(worker).last is Stop.ASKER_ENDED


@pytest.mark.parametrize(
    "answer",
    [Frame({"type": "reply", "pad": "x" * 300}), Frame({"type": "reply", "pad": "\N{SNOWMAN}" * 100})],
    ids=["long", "snowmen"],
)
def test_an_answer_with_too_long_a_head_is_not_carried(stage: Stage, answer: Frame) -> None:
    worker = stage.start()
    stage.asker.ask(call(0))
    stage.answerer.say(answer)
    assert outcome(worker).last is Stop.NOT_CARRIED


def test_a_question_that_is_no_frame_breaks_the_protocol(stage: Stage) -> None:
    worker = stage.start()
    stage.asker.ask(b"not a frame")
    assert worker.join(20)
    with pytest.raises(ProtocolError):
        worker.result()


def test_what_the_owner_finds_wrong_ends_the_exchange(stage: Stage) -> None:
    def cancelled() -> None:
        msg = "stop"
        raise Cancelled(msg)

    worker = stage.start(cancelled)
    assert worker.join(20)
    with pytest.raises(Cancelled):
        worker.result()


def test_the_time_in_which_nothing_was_open_is_what_the_answerer_was_idle(stage: Stage) -> None:
    worker = stage.start()
    time.sleep(0.4)
    stage.asker.ask(call(0))
    stage.answerer.hear()
    time.sleep(0.8)
    stage.answerer.say(reply(0))
    stage.asker.hear()
    stage.asker.say(LAST)
    assert outcome(worker).idle_seconds >= 0.4


def test_an_answerer_that_does_not_read_holds_up_nobody_who_closes_its_channel(stage: Stage) -> None:
    worker = stage.start()
    flood = spawn("flood", lambda: [stage.asker.ask(call(number, MIB)) for number in range(4)])
    time.sleep(0.3)
    stage.answerer.channel.close()
    assert flood.join(20)
    assert stage.asker.hear() == Frame({"type": "gone"})
    stage.asker.say(LAST)
    assert outcome(worker).last == LAST


@pytest.mark.parametrize("is_asker", [True, False], ids=["asker", "answerer"])
def test_a_flood_ends_at_the_channels_limit(is_asker: bool) -> None:
    with Stage(Limits(channel_bytes=MIB)) as stage:
        worker = stage.start()
        stage.asker.ask(call(0))
        stage.answerer.hear()
        loud, other = (stage.asker, stage.answerer) if is_asker else (stage.answerer, stage.asker)

        def pour() -> None:
            with contextlib.suppress(OSError):
                while True:
                    loud.ask(call(1, 1 << 16))

        def drain() -> None:
            with contextlib.suppress(OSError):
                while other.socket.recv(1 << 20):
                    pass

        pouring, draining = spawn("pour", pour), spawn("drain", drain)
        assert pouring.join(20)
        stage.asker.channel.close()  # an asker that is told of the other's end ends by itself
        assert outcome(worker).last in {Stop.ASKER_ENDED, Stop.ANSWERER_ENDED}
        assert loud.channel.excess is not None
        assert "channel_bytes" in loud.channel.excess
    assert draining.join(20)
