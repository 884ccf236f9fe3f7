"""A exchange as `ports.Session` describes it, one frame at a time: for sessions that are not containers."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.domain.exchanges import Exchange, Stop, Wrapping
from orchestrator.ports import Session


def exchange_in_turns(asker: Session, answerer: Session, wrapping: Wrapping, clock: Callable[[], float]) -> Exchange:
    """As `ports.Session.exchange`; the asker's first word is under way already."""
    questions, idle_seconds = 0, 0.0
    while True:
        began = clock()
        frame = asker.receive()
        idle_seconds += clock() - began
        question = None if frame is None else wrapping.asked(frame)
        if question is None:
            return Exchange(last=frame or Stop.ASKER_ENDED, questions=questions, idle_seconds=idle_seconds)
        questions += 1
        answerer.send(question)
        answer = answerer.receive()
        wrapped = None if answer is None else wrapping.answered(answer)
        if wrapped is None:
            stop = Stop.ANSWERER_ENDED if answer is None else Stop.NOT_CARRIED
            return Exchange(last=stop, questions=questions, idle_seconds=idle_seconds)
        asker.send(wrapped)
