"""What the evaluator asks the candidate. Several questions may be under way; answers come in the order of asking.

The order in which the evaluator asks decides everything: an answer is looked at when its turn comes and not when it
arrives, and all that was asked is answered before there is a verdict.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from channel import Channel, ChannelClosed
from frames import MAX_BODY_BYTES, PREFIX, Frame, ProtocolError, decode, encode

MAX_PENDING = 16
"""Questions under way at a time; more would only wait somewhere."""
Answer = TypeVar("Answer")
_TYPE = b'{"type":"to-candidate"}'


class Ended(BaseException):
    """The candidate's failure, on its way to the verdict; not an `Exception`, so that no author's code catches it."""

    def __init__(self, verdict: dict[str, Any]) -> None:
        """Keep the fields of the `verdict` frame."""
        super().__init__(verdict)
        self.verdict = verdict


class Question(Generic[Answer]):
    """One that is under way."""

    def __init__(self, judge: Callable[[Frame], Answer], questions: Questions) -> None:
        """Not answered yet."""
        self._judge = judge
        self._questions = questions
        self._answers: list[Answer] = []

    def take(self, frame: Frame) -> None:
        """The candidate's answer."""
        self._answers.append(self._judge(frame))

    def answer(self) -> Answer:
        """The answer, as soon as it and all before it are there; the same again when asked again."""
        while not self._answers:
            self._questions.take_one()
        return self._answers[0]


class Questions:
    """All that one evaluation asks."""

    def __init__(self, channel: Channel) -> None:
        """Nothing is under way."""
        self._channel = channel
        self._waiting: deque[Question[Any]] = deque()
        os.set_blocking(channel.writing, False)  # what is written may have to wait until an answer is read

    def ask(self, head: bytes, body: bytes, judge: Callable[[Frame], Answer]) -> Question[Answer]:
        """Send a question, which does not wait for its answer.

        Args:
            head: As `head_of` encodes it.
            body: Of the frame.
            judge: What the answer is turned into; raises what ends the evaluation.

        Raises:
            ValueError: Too much to send, or too many questions are under way.
        """
        if len(self._waiting) >= MAX_PENDING:
            msg = f"{MAX_PENDING} calls are under way; take the result of one before the next begins"
            raise ValueError(msg)
        inner = PREFIX.size + len(head) + len(body)
        if inner > MAX_BODY_BYTES:
            msg = f"a call of {inner} bytes is over the limit of {MAX_BODY_BYTES}"
            raise ValueError(msg)
        self._write(b"".join([PREFIX.pack(len(_TYPE), inner), _TYPE, PREFIX.pack(len(head), len(body)), head, body]))
        question = Question(judge, self)
        self._waiting.append(question)
        return question

    def take_one(self) -> None:
        """Wait for the next answer, and give it to the question that it is for."""
        frame = self._channel.expect("from-candidate", "candidate-ended")
        if frame.type == "candidate-ended":
            raise Ended({"status": "ended"})
        try:
            answer = decode(frame.body)
        except ProtocolError as error:
            raise Ended({"status": "invalid", "reason": "reply-malformed"}) from error
        self._waiting.popleft().take(answer)

    def settle(self) -> None:
        """Wait for every answer that is due."""
        while self._waiting:
            self.take_one()

    def _write(self, data: bytes) -> None:
        """Write all of it; while that has to wait, read what comes, or each side could wait for the other to read."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._channel.writing, rest) :]
            except BlockingIOError:
                both = select.select([self._channel.reading], [self._channel.writing], [])
                if both[0]:
                    self._channel.read_ahead()
            except BrokenPipeError as error:
                raise ChannelClosed(0) from error


def head_of(fields: dict[str, Any]) -> bytes:
    """The head of a question.

    Raises:
        ValueError: It is too large.
    """
    try:
        return encode(Frame(fields))[PREFIX.size :]
    except ProtocolError as error:
        raise ValueError(str(error)) from error
