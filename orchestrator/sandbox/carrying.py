"""Carrying an exchange between two containers, in the threads that read their channels.

Every frame is checked for form and size and sent on by the thread that read it, so that a message costs no queue and no
change of threads, and questions travel one way while answers travel the other. The owner's thread only waits.

When the answerer ends, the asker may be busy with an earlier answer. It is told, and has the last word: what becomes of
the answers that it got must not depend on who is faster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from orchestrator.domain.exchanges import Exchange, Stop, Wrapping
from orchestrator.domain.frames import Frame
from orchestrator.errors import ProtocolError
from orchestrator.sandbox.channel import Channel
from orchestrator.sandbox.streams import RawFrame

TICK_SECONDS = 0.5
"""How often the owner looks at the sessions while nothing happens; whatever ends an exchange wakes it."""


class Carrier:
    """One exchange. Deadlines are the sessions': what ends a channel ends the exchange."""

    def __init__(self, asker: Channel, answerer: Channel, wrapping: Wrapping, clock: Callable[[], float]) -> None:
        """Carry nothing yet.

        Args:
            asker: Its frames are questions until it says something else.
            answerer: Sent the questions; each of its frames is one answer.
            wrapping: How they travel.
            clock: Seconds, monotonic.
        """
        self._asker = asker
        self._answerer = answerer
        self._wrapping = wrapping
        self._clock = clock
        self._changed = threading.Condition()  # guards what follows; frames are sent without holding it
        self._last: Frame | Stop | ProtocolError | None = None
        self._questions = 0
        self._unanswered = 0
        self._idle_seconds = 0.0
        self._idle_since = clock()
        self._is_answerer_read = False
        self._is_asker_told = False

    def carry(self, check: Callable[[], None]) -> Exchange:
        """Pass frames on until the asker says something that is no question, or cannot go on.

        Args:
            check: Called at every tick; what it raises ends the exchange.

        Raises:
            ProtocolError: The asker sent a question that is no frame.
        """
        self._answerer.divert(self, wanted=0)
        self._asker.divert(self, wanted=None)
        while True:
            check()
            with self._changed:
                last = self._outcome()
                must_tell = last is Stop.ANSWERER_ENDED and not (self._is_asker_told or self._asker.has_ended)
                if last is None or (must_tell and not self._is_answerer_read):
                    self._changed.wait(TICK_SECONDS)
                    continue
            if must_tell:
                self._is_asker_told = True
                self._asker.send(Frame({"type": self._wrapping.end}))
                continue
            if isinstance(last, ProtocolError):
                raise last
            return Exchange(last=last, questions=self._questions, idle_seconds=self._idle_seconds)

    def take(self, channel: Channel, raw: RawFrame) -> None:
        """As `channel.Receiver`."""
        frame = None if self._last is not None else channel.decoded(raw)
        if frame is None:
            return
        if channel is self._asker:
            self._pass_on(frame)
        else:
            self._answer(frame)

    def ended(self, channel: Channel) -> None:
        """As `channel.Receiver`."""
        with self._changed:
            self._is_answerer_read = self._is_answerer_read or channel is self._answerer
            self._changed.notify_all()

    def _pass_on(self, frame: Frame) -> None:
        try:
            question = self._wrapping.asked(frame)
        except ProtocolError as error:
            self._finish(error)
            return
        if question is None:
            self._finish(frame)
            return
        with self._changed:
            if self._unanswered == 0:
                self._idle_seconds += self._clock() - self._idle_since
            self._questions += 1
            self._unanswered += 1
            if self._answerer.has_ended:
                self._changed.notify_all()
        self._answerer.want()
        self._answerer.send(question)

    def _answer(self, frame: Frame) -> None:
        wrapped = self._wrapping.answered(frame)
        if wrapped is None:
            self._finish(Stop.NOT_CARRIED)
            return
        with self._changed:
            self._unanswered -= 1
            if self._unanswered == 0:
                self._idle_since = self._clock()
        self._asker.send(wrapped)

    def _finish(self, last: Frame | Stop | ProtocolError) -> None:
        with self._changed:
            if self._last is None:
                if self._unanswered == 0:
                    self._idle_seconds += self._clock() - self._idle_since
                self._last = last
            self._changed.notify_all()

    def _outcome(self) -> Frame | Stop | ProtocolError | None:
        """Why it is over; None: it is not."""
        asker_ended, answerer_ended = self._asker.has_ended, self._answerer.has_ended  # before what they said last
        if self._last is not None:
            return self._last
        if answerer_ended and self._unanswered and (asker_ended or not self._is_asker_told):
            return Stop.ANSWERER_ENDED
        return Stop.ASKER_ENDED if asker_ended else None
