"""What the author of a task's `evaluate.py` imports; described in docs/task-authoring.md.

A program runs in another container, and everything that comes from there is checked before the author's code sees it.
What the program does wrong ends the evaluation with its verdict at once; the author has nothing to catch.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import numpy as np
from channel import Channel
from columns import EXPRESSION, Ragged, Signature, Values, pack, table_of, unpack
from expressions import Expression, ExpressionError, expressions_of
from frames import Frame, ProtocolError
from numpy.typing import ArrayLike, NDArray
from questions import MAX_PENDING, Ended, Question, Questions, head_of

__all__ = ["MAX_INSTANCES", "MAX_PENDING", "Call", "Expression", "Instances", "Program", "Ragged", "Refused"]

MAX_INSTANCES = 128
"""Copies of a program at a time; each is a process, and a candidate's policy bounds those."""
INVALID_REASONS = frozenset({
    "reply-type", "reply-shape", "reply-length", "reply-dtype", "reply-range", "reply-not-finite", "reply-malformed",
    "reply-expression", "reply-nodes",
})  # fmt: skip
_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)
_FILE = re.compile(r"[A-Za-z0-9_./-]{1,600}")
_MAX_LINE = 1 << 20
_KEPT_HEADS = 64
Reply: TypeAlias = "Values | tuple[Expression, ...]"
"""What a call gives."""


class Refused(Exception):
    """The evaluator rejects the program."""

    def __init__(self, message: str) -> None:
        """Name the reason.

        Args:
            message: An id from the task's fixed list.
        """
        super().__init__(message)
        self.message = message


class Program:
    """The loaded candidate."""

    def __init__(self, channel: Channel, signatures: Mapping[str, Signature], nodes: int, lines: int) -> None:
        """Made by the runner, once per evaluation."""
        self._questions = Questions(channel)
        self._signatures = signatures
        self.nodes = nodes
        """AST nodes of its modules, docstrings and expression contexts left out; counted before it ran."""
        self.lines = lines
        """Lines of its modules."""

    @contextmanager
    def open(self, count: int) -> Iterator[Instances]:
        """So many copies of the state right after loading; opening again starts from that state again.

        Args:
            count: From 1 to `MAX_INSTANCES`.

        Raises:
            ValueError: Not in that range.
        """
        if not 1 <= count <= MAX_INSTANCES:
            msg = f"cannot open {count} instances; open 1 to {MAX_INSTANCES} at a time"
            raise ValueError(msg)
        self.settle()
        self._questions.ask(head_of({"type": "open", "instances": int(count)}), b"", _require_opened).answer()
        instances = Instances(self._questions, self._signatures, int(count))
        try:
            yield instances
            self.settle()
        finally:
            instances.is_open = False

    def settle(self) -> None:
        """Wait for the results of all calls that are under way; the runner does so before there is a verdict."""
        self._questions.settle()


class Call:
    """A call that is under way; made by `Instances.begin`."""

    def __init__(self, question: Question[Reply] | None, values: Reply | None = None) -> None:
        """Either a question, or the values of a call that needs none."""
        self._question = question
        self._values = values

    def result(self) -> Any:  # noqa: ANN401 - as `Instances.call`
        """What `Instances.call` returns; waits until it is there."""
        return self._values if self._question is None else self._question.answer()


class Instances:
    """Copies of the program, each in the state that its own calls left."""

    def __init__(self, questions: Questions, signatures: Mapping[str, Signature], count: int) -> None:
        """Made by `Program.open`."""
        self._questions = questions
        self._heads: dict[tuple[str, bytes], tuple[bytes, int]] = {}
        self._signatures = signatures
        self._count = count
        self.is_open = True

    def call(self, function: str, ids: ArrayLike, **arguments: ArrayLike | Ragged) -> Any:  # noqa: ANN401
        """Call a function once in each of these instances, all in one message.

        Args:
            function: A name from `functions` in `task.yaml`.
            ids: (n,) numbers of the instances, each once, from 0 to the count less 1.
            arguments: Every argument of the signature but symbols: (n,) scalars, or a `Ragged` of n arrays.

        Returns:
            (n,) array of the declared dtype, or a `Ragged` with the lengths of the argument that `like` names. It is
            read-only, finite and within the declared bounds, unless the signature says otherwise. Of the return dtype
            `expression`: a tuple of n checked `Expression` trees.

        Raises:
            ValueError: Unknown function, instances or arguments; the author's mistake.
            TypeError: An argument of the wrong form or dtype; likewise.
        """
        return self.begin(function, ids, **arguments).result()

    def begin(self, function: str, ids: ArrayLike, **arguments: ArrayLike | Ragged) -> Call:
        """Like `call`, without waiting: the program computes while the evaluator goes on.

        Calls are made in the order in which they begin, so an instance may be part of several at once. Failures of the
        program end the evaluation when the result of the call, or of a later one, is taken.

        Returns:
            The call, whose `result()` is what `call` returns.

        Raises:
            ValueError: As `call`, or `MAX_PENDING` calls have begun whose results were not taken.
            TypeError: As `call`.
        """
        signature = self._signature(function, arguments)
        head, count = self._head(signature, np.asarray(ids))
        values = [_as_values(arguments[column.name]) for column in signature.arguments]
        _, body = pack(signature.arguments, count, values)
        if not count:
            return Call(None, _empty(signature))
        return Call(self._questions.ask(head, body, lambda answer: _judged(signature, count, values, answer)))

    def _head(self, signature: Signature, ids: NDArray[Any]) -> tuple[bytes, int]:
        """(head of the frame, number of instances); simulations mostly call the same instances again and again."""
        key = signature.name, ids.tobytes() + ids.dtype.str.encode()
        if ids.ndim != 1 or key not in self._heads:
            numbers = self._numbers(ids)
            head = {"type": "call", "function": signature.name, "instances": numbers}
            if len(self._heads) >= _KEPT_HEADS:
                self._heads.clear()
            self._heads[key] = head_of({**head, "columns": table_of(signature.arguments)}), len(numbers)
        return self._heads[key]

    def _signature(self, function: str, arguments: Mapping[str, object]) -> Signature:
        if not self.is_open:
            msg = f"{function!r} is called after its `with program.open(...)` ended"
            raise ValueError(msg)
        if function not in self._signatures:
            msg = f"{function!r} is not declared; task.yaml declares {', '.join(self._signatures)}"
            raise ValueError(msg)
        signature = self._signatures[function]
        names = [column.name for column in signature.arguments]
        if set(arguments) != set(names):
            msg = f"{function!r} takes {', '.join(names)}, not {', '.join(arguments)}"
            raise ValueError(msg)
        return signature

    def _numbers(self, array: NDArray[Any]) -> list[int]:
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            msg = f"ids are to be a 1-D array of integers, not {array.ndim}-D of {array.dtype}"
            raise ValueError(msg)
        numbers = [int(number) for number in array.tolist()]
        if len(set(numbers)) < len(numbers) or any(not 0 <= number < self._count for number in numbers):
            msg = f"ids are to be different numbers from 0 to {self._count - 1}"
            raise ValueError(msg)
        return numbers


def _as_values(argument: ArrayLike | Ragged) -> Values:
    return argument if isinstance(argument, Ragged) else np.asarray(argument)


def _empty(signature: Signature) -> Reply:
    if signature.returns.dtype == EXPRESSION:
        return ()
    values = np.empty(0, dtype=signature.returns.dtype)
    return values if signature.like is None else Ragged(values, np.empty(0, dtype=np.uint32))


def _require_opened(answer: Frame) -> None:
    if answer.type != "opened":
        _end_with(answer)


def _judged(signature: Signature, count: int, arguments: Sequence[Values], answer: Frame) -> Reply:
    if answer.type != "reply":
        _end_with(answer)
    return _checked(signature, count, arguments, answer)


def _checked(signature: Signature, count: int, arguments: Sequence[Values], answer: Frame) -> Reply:
    """The reply, or the end of the evaluation."""
    try:
        (reply,) = unpack([signature.returns], count, answer.head.get("columns"), answer.body)
    except ProtocolError:
        _end_invalid("reply-malformed")
    if isinstance(reply, Ragged) and signature.returns.dtype == EXPRESSION:
        return _expressions(signature, reply)
    elements: NDArray[Any] = reply.values if isinstance(reply, Ragged) else reply
    if isinstance(reply, Ragged) and signature.like is not None:
        pattern = arguments[signature.like]
        if not (isinstance(pattern, Ragged) and np.array_equal(reply.lengths, pattern.lengths)):
            _end_invalid("reply-length")
    if signature.finite and not np.isfinite(elements).all():
        _end_invalid("reply-not-finite")
    low, high = signature.minimum, signature.maximum
    # NaN, where it is allowed, is in no range and in no need of one
    if (low > -math.inf and (elements < low).any()) or (high < math.inf and (elements > high).any()):
        _end_invalid("reply-range")
    return reply


def _expressions(signature: Signature, reply: Ragged) -> tuple[Expression, ...]:
    try:
        return expressions_of(
            reply.values,
            reply.lengths.tolist(),
            symbols=signature.symbol_count,
            maximum_nodes=signature.maximum_nodes,
        )
    except ExpressionError as error:
        _end_invalid(str(error))


def _end_invalid(reason: str) -> NoReturn:
    raise Ended({"status": "invalid", "reason": reason})


def _end_with(answer: Frame) -> NoReturn:
    """Turn a failure that the candidate's runner reports into the verdict, as far as it is well formed."""
    head = answer.head
    match answer.type:
        case "raised" if _is_place(head):
            raise Ended({"status": "raised", **{key: head.get(key) for key in ("exception", "file", "line")}})
        case "invalid" if isinstance(head.get("reason"), str) and head["reason"] in INVALID_REASONS:
            _end_invalid(head["reason"])
        case "died" if _is_ending(head.get("exit_code"), head.get("signal")):
            raise Ended({"status": "died", "exit_code": head.get("exit_code"), "signal": head.get("signal")})
    _end_invalid("reply-malformed")


def _is_place(head: Mapping[str, Any]) -> bool:
    exception, file, line = head.get("exception"), head.get("file"), head.get("line")
    return (
        isinstance(exception, str)
        and exception in _EXCEPTIONS
        and (file is None or (isinstance(file, str) and _FILE.fullmatch(file) is not None))
        and (line is None or (type(line) is int and 0 < line <= _MAX_LINE))
    )


def _is_ending(exit_code: object, signal: object) -> bool:
    return all(number is None or (type(number) is int and 0 <= number <= 255) for number in (exit_code, signal))
