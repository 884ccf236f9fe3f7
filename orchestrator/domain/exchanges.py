"""An exchange of two containers that do not know each other: one asks, the other answers, in the order of asking.

What is asked travels inside the frames of the one who asks, and every answer inside of a frame to it. Nothing that the
other says can therefore be taken for what the one who asks says for itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.frames import MAX_BODY_BYTES, PREFIX, Frame, decode, encode
from orchestrator.errors import ProtocolError


class Stop(StrEnum):
    """Why an exchange is over without a word of the one who asks."""

    ASKER_ENDED = "asker-ended"
    ANSWERER_ENDED = "answerer-ended"
    """Before it had answered everything."""
    NOT_CARRIED = "not-carried"
    """The answerer sent what is not to be passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How an exchange went."""

    last: Frame | Stop
    """What the asker said that was no question, or why there is nothing."""
    questions: int
    """How many were passed on."""
    idle_seconds: float
    """In which the answerer had nothing to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapping:
    """How frames of one container travel inside of another's."""

    question: str
    """Type of the frames that hold a question."""
    answer: str
    """Type of the frames that an answer is put into."""
    end: str
    """Type of the frame that comes where no answer will."""
    head_bytes: int
    """Of an answer at most; heads are what its reader parses before it can refuse anything."""

    def asked(self, frame: Frame) -> Frame | None:
        """The question in a frame; None: it holds none.

        Raises:
            ProtocolError: What it holds is no frame.
        """
        return decode(frame.body) if frame.type == self.question else None

    def answered(self, answer: Frame) -> Frame | None:
        """A frame as it travels on, byte for byte; None: it is none that is to be passed on."""
        try:
            inner = encode(answer)
        except ProtocolError:
            return None
        fits = len(inner) - len(answer.body) <= PREFIX.size + self.head_bytes and len(inner) <= MAX_BODY_BYTES
        return Frame({"type": self.answer}, inner, _head(self.answer)) if fits else None


@functools.lru_cache(8)
def _head(kind: str) -> bytes:
    """The encoded head of frames that say their type alone; one comes with every answer."""
    return encode(Frame({"type": kind}))[PREFIX.size :]
