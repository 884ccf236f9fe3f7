"""The talk between an evaluator and a candidate, which the trusted side carries without taking part in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.exchanges import Stop, Wrapping
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.verdicts import Failure
from orchestrator.errors import EvaluatorCutOff, EvaluatorError, ProtocolError
from orchestrator.evaluation import claims
from orchestrator.evaluation.messages import MALFORMED_REPLY
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Session

NO_RESULT = Failure(ending=Ending.NO_RESULT)
"""The candidate's container ended before anything else was known; what it met is for its session to say."""
UNEXPECTED = Failure(ending=Ending.INVALID_RESULT, message=MALFORMED_REPLY["reply-malformed"])

_LIMITS = frozenset({Ending.TIMEOUT, Ending.MEMORY, Ending.PROCESSES, Ending.OUTPUT_LIMIT, Ending.DISK})
"""Of an evaluator's container."""
WRAPPING = Wrapping(question="to-candidate", answer="from-candidate", end="candidate-ended", head_bytes=4096)
"""No answer to a call needs a longer head."""


def load(candidate: Session, payload: FileTree, task: Task) -> dict[str, int] | Failure:
    """Hand a program to its container and wait until it is loaded; what it is before it runs, or why it is not loaded.

    Raises:
        ProtocolError: Our runner, which alone speaks before the program runs, broke the protocol.
        SandboxError: The engine failed.
    """
    table, body = pack_blobs(payload)
    head = {"type": "start", "blobs": table, "entry": task.spec.program.entry, "functions": task.functions()}
    candidate.send(Frame(head, body))
    first = candidate.receive()
    if first is None:
        return NO_RESULT
    if first.type == "rejected":
        return claims.rejected(first.head, payload)
    program = _inspection(first, payload)
    return _load_failure(candidate.receive(), payload) or program


class Relay:
    """Lets an evaluator ask a candidate, frames checked for form and size only, until its verdict."""

    def __init__(
        self,
        task: Task,
        evaluator: Session,
        candidate: Session,
        clock: Callable[[], float],
        *,
        files: Sequence[str] = (),
    ) -> None:
        """Nothing is sent yet.

        Args:
            task: Whose evaluator it is.
            evaluator: Opened.
            candidate: Loaded.
            clock: Seconds, monotonic.
            files: The user's, that the evaluator reads before it calls the candidate.
        """
        self._task = task
        self._unread = tuple(files)
        self._evaluator = evaluator
        self._candidate = candidate
        self._clock = clock
        self.evaluator_seconds = 0.0
        """Wall time in which the candidate waited for the evaluator."""

    def until_verdict(self, start: Frame) -> Frame | Failure:
        """Start the evaluator and carry frames until its verdict, or until the candidate fails without one.

        Raises:
            InputError: The user's files are not what the task's code can read.
            EvaluatorError: The task's code failed, or its container ended without a verdict; `EvaluatorCutOff` where
                that was by a limit.
            ProtocolError: The evaluator's runner broke the protocol.
            SandboxError: The engine failed.
        """
        self._evaluator.send(start)
        went = self._evaluator.exchange(self._candidate, WRAPPING, self._clock)
        self.evaluator_seconds = went.idle_seconds
        match went.last:
            case Stop.ANSWERER_ENDED:
                return NO_RESULT
            case Stop.NOT_CARRIED:
                return UNEXPECTED
            case Stop.ASKER_ENDED:
                raise self._ended()
            case frame if frame.type != "verdict":
                unread = () if went.questions else self._unread
                raise claims.task_failure(self._task, "failed", frame, reading=unread)
            case frame if frame.head.get("status") == "ended":
                return NO_RESULT
            case frame:
                return frame

    def _ended(self) -> EvaluatorError:
        outcome = self._evaluator.finish(Ending.NO_RESULT)
        why = f"{outcome.ending.value}, {outcome.detail}"
        msg = f"the evaluator of {self._task.name!r} ended without a verdict: {why}"
        return EvaluatorCutOff(msg, outcome.ending.value) if outcome.ending in _LIMITS else EvaluatorError(msg)


def _load_failure(frame: Frame | None, payload: FileTree) -> Failure | None:
    """What a candidate that has begun to run says of its loading; None: it is loaded."""
    if frame is None:
        return NO_RESULT
    match frame.type:
        case "loaded":
            return None
        case "raised":
            return claims.raised(frame.head, payload)
        case "rejected" if frame.head.get("reason") == "function-missing":
            return claims.rejected(frame.head, payload)
    return UNEXPECTED


def _inspection(frame: Frame, payload: FileTree) -> dict[str, int]:
    """AST nodes and lines as our runner counted them, within what the files can hold."""
    size = sum(map(len, payload.values()))
    nodes, lines = frame.head.get("nodes"), frame.head.get("lines")
    if frame.type != "inspected" or not _counts(nodes, 16 * size + 16) or not _counts(lines, size + len(payload)):
        msg = f"a candidate's runner sent {dict(frame.head)!r:.200} where an inspection was due"
        raise ProtocolError(msg)
    return {"nodes": nodes, "lines": lines}


def _counts(value: object, most: int) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= most
