"""What the frames of an evaluation say of a candidate, cut down to what may be stored.

Frames of a candidate are claims, and so is what the evaluator passes on from there. An exception keeps its name only if
it is a built-in one, a place only if it lies in the candidate's own files, a message only if it is on a fixed list.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.verdicts import AssessedValue, Failure
from orchestrator.errors import EvaluatorError, EvolvariumError, InputError, ProtocolError
from orchestrator.evaluation.messages import LOAD_CHECK, MALFORMED_REPLY
from orchestrator.evaluation.tasks import Task

Head = Mapping[str, Any]
_VALUE_ERROR = re.compile(
    r"^(?:[\w.]*\.)?(?:ValueError|UnicodeDecodeError|JSONDecodeError)(?:: ?(.*(?:\n(?! ).*)*))?\Z", re.MULTILINE
)
"""The end of a traceback whose error is a `ValueError`, or one of the kinds of it that readers of files raise."""
EXCEPTION_NAMES = frozenset(
    kind.__name__ for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)
)


def raised(head: Head, payload: FileTree) -> Failure:
    """A failure by an exception in the program; any field that is not well formed is dropped or made general."""
    name = head.get("exception")
    file, line = _place(head, payload)
    exception = name if isinstance(name, str) and name in EXCEPTION_NAMES else "Exception"
    return Failure(ending=Ending.ERROR, exception=exception, file=file, line=line)


def rejected(head: Head, payload: FileTree) -> Failure:
    """A failure of the load check.

    Raises:
        ProtocolError: The reason is none of the fixed list.
    """
    reason = head.get("reason")
    if not isinstance(reason, str) or reason not in LOAD_CHECK:
        msg = f"the load check rejects a program for an unknown reason: {reason!r:.80}"
        raise ProtocolError(msg)
    file, line = _place(head, payload)
    return Failure(ending=Ending.ERROR, file=file, line=line, message=LOAD_CHECK[reason])


def metrics(head: Head, task: Task) -> dict[str, float]:
    """The figures of a `scored` verdict.

    Raises:
        EvaluatorError: They are not exactly the declared ones, not finite, or a feature is out of [0, 1].
    """
    found = head.get("metrics")
    if not isinstance(found, Mapping) or set(found) != task.metric_names:
        names = sorted(found) if isinstance(found, Mapping) else found
        msg = f"the evaluator of {task.name!r} returns metrics {names!r:.200}; declared are {sorted(task.metric_names)}"
        raise EvaluatorError(msg)
    features = {feature.metric for feature in task.spec.features}
    for name, value in found.items():
        if not _is_finite(value) or (name in features and not 0 <= value <= 1):
            wanted = "a number in [0, 1]" if name in features else "a finite number"
            msg = f"the evaluator of {task.name!r} returns {name} = {value!r:.80}; it must be {wanted}"
            raise EvaluatorError(msg)
    return {name: float(found[name]) for name in task.spec.metrics}


def assessment(head: Head, task: Task) -> dict[str, AssessedValue]:
    """What an `assessed` verdict holds.

    Raises:
        EvaluatorError: It is not exactly what the task declares, or a value is no text, finite number or truth value.
    """
    found = head.get("assessment")
    declared = set(task.spec.assessment)
    if not isinstance(found, Mapping) or set(found) != declared:
        names = sorted(found) if isinstance(found, Mapping) else found
        msg = f"the evaluator of {task.name!r} assesses {names!r:.200}; `assessment` declares {sorted(declared)}"
        raise EvaluatorError(msg)
    for name, value in found.items():
        if not isinstance(value, str | bool | None) and not _is_finite(value):
            msg = f"the evaluator of {task.name!r} assesses {name} as {value!r:.80}; it must be a text or a number"
            raise EvaluatorError(msg)
    return {name: found[name] for name in task.spec.assessment}


def failure(head: Head, payload: FileTree, task: Task) -> Failure:
    """The failure of a verdict that is not `scored`.

    Raises:
        EvaluatorError: It refuses with a message that the task does not declare.
        ProtocolError: Its status is none of the protocol's.
    """
    match head.get("status"):
        case "raised":
            return raised(head, payload)
        case "invalid":
            text = MALFORMED_REPLY.get(str(head.get("reason")), MALFORMED_REPLY["reply-malformed"])
            return Failure(ending=Ending.INVALID_RESULT, message=text)
        case "died":
            return Failure(ending=_death(head))
        case "refused":
            return Failure(ending=Ending.INVALID_RESULT, message=_declared(head.get("message"), task))
        case status:
            msg = f"the evaluator of {task.name!r} sent a verdict with status {status!r:.80}"
            raise ProtocolError(msg)


def task_failure(task: Task, what: str, frame: Frame, *, reading: Sequence[str] = ()) -> EvolvariumError:
    """The error for a frame that trusted task code sent instead of the one that was due.

    Args:
        task: Whose code it is.
        what: It failed at, for the message.
        frame: `failed`, or one that has no place here.
        reading: The user's files, if the code has done nothing so far but read them: a `ValueError` is then their
            fault, and an `InputError`.
    """
    if frame.type != "failed":
        return ProtocolError(f"the evaluator of {task.name!r} {what}: it sent a {frame.type!r:.80} frame")
    text = str(frame.head.get("message", ""))
    unfit = _VALUE_ERROR.search(text.rstrip()) if reading else None
    if unfit is not None:
        files = ", ".join(map(repr, reading))
        return InputError(
            f"{files} cannot be used for task {task.name!r}: {(unfit[1] or '').strip() or 'wrong content'}"
        )
    lines = text.split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it gave no reason")
    error = EvaluatorError(f"the evaluator of {task.name!r} {what}: {last.strip()}")
    error.add_note(text)
    return error


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 63


def _declared(message: object, task: Task) -> str:
    if not isinstance(message, str) or message not in task.spec.messages:
        declared = ", ".join(task.spec.messages) or "none"
        msg = (
            f"the evaluator of {task.name!r} refuses with {message!r:.80}; `messages` in task.yaml declares {declared}"
        )
        raise EvaluatorError(msg)
    return task.spec.messages[message]


def _death(head: Head) -> Ending:
    """A copy of the program ended while it was called: by a signal, by an exit code, or quietly."""
    if head.get("signal"):
        return Ending.KILLED
    return Ending.ERROR if head.get("exit_code") else Ending.NO_RESULT


def _place(head: Head, payload: FileTree) -> tuple[str | None, int | None]:
    file, line = head.get("file"), head.get("line")
    if not isinstance(file, str) or file not in payload:
        return None, None
    is_line = type(line) is int and 1 <= line <= len(payload[file].splitlines())
    return file, line if is_line else None
