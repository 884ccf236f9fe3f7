"""The `candidate` role: inspects a program, loads it, and calls its functions in copies of the loaded state."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np
import numpy.fft
import numpy.linalg
import numpy.random
from channel import Channel
from columns import DTYPES, Column, parse_signatures, unpack
from frames import Frame, ProtocolError, unpack_blobs
from inspection import Inspected, Rejected, inspect, module_name
from instances import Answer, Instances
from namespaces import Namespaces, loaded_again
from prctl import be_undumpable
from program import Program, describe
from session import parser, serve
from sharing import can_share
from symbols import need_processes, wire_for, with_symbols
from wire import Wire

NUMPY_SEED = 0
"""NumPy's global generator starts from it, so that a program that draws from it is repeatable."""


def main() -> int:
    """Run until the channel ends."""
    options = parser().parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    be_undumpable()  # copies do not read each other through /proc by accident
    return serve("candidate", options.idle_seconds, handle)


def handle(channel: Channel) -> int:
    """Serve one program."""
    start = channel.expect("start")
    signatures = parse_signatures(start.head.get("functions"))
    inspected = _inspect(channel, start)
    if inspected is None:
        return 0
    program = Program(inspected.codes)
    module = _load(channel, program, str(start.head["entry"]))
    if module is None:
        return 0
    functions = []
    for number, (name, signature) in enumerate(signatures.items()):
        function = vars(module).get(name)
        if not callable(function):
            entry = str(start.head["entry"])
            channel.send({"type": "rejected", "reason": "function-missing", "file": entry, "line": None})
            return 0
        functions.append((wire_for(number, signature), with_symbols(signature, function)))
    channel.send({"type": "loaded"})
    may_share = not need_processes(list(signatures.values())) and can_share(inspected.codes.values())
    shared_entry = str(start.head["entry"]) if may_share else None
    Calls(channel, program, functions, shared_entry).serve()
    return 0


def _inspect(channel: Channel, start: Frame) -> Inspected | None:
    """The inspected program, or None after `rejected`."""
    entry = start.head.get("entry")
    if not isinstance(entry, str):
        msg = f"entry {entry!r} is not a file name"
        raise ProtocolError(msg)
    try:
        inspected = inspect(unpack_blobs(start.head.get("blobs"), start.body), entry)
    except Rejected as broken:
        channel.send({"type": "rejected", "reason": broken.reason, "file": broken.file, "line": broken.line})
        return None
    channel.send({"type": "inspected", "nodes": inspected.nodes, "lines": inspected.lines})
    return inspected


def _load(channel: Channel, program: Program, entry: str) -> ModuleType | None:
    """The loaded entry module, or None after `raised`."""
    np.random.seed(NUMPY_SEED)  # the generator that programs share
    try:
        return program.load(module_name(entry))
    except BaseException as error:  # SystemExit is a way of raising, too
        channel.send({"type": "raised", **describe(error, program.files)})
        return None


class Calls:
    """Opens, calls and closes copies of one loaded program."""

    def __init__(
        self, channel: Channel, program: Program, functions: Sequence[tuple[Wire, Any]], shared_entry: str | None
    ) -> None:
        """Open nothing yet.

        Args:
            channel: Calls come from there.
            program: It is loaded.
            functions: In the order of the `start` frame.
            shared_entry: The entry file, if copies of the program may share this process; None: they must not.
        """
        self._channel = channel
        self._shared_entry = shared_entry
        self._program = program
        self._functions = functions
        self._wires = {wire.signature.name: wire for wire, _ in functions}
        self._instances: Instances | Namespaces | None = None

    def serve(self) -> None:
        """Answer frames until the channel ends."""
        try:
            while True:
                frame = self._channel.expect("open", "call")
                if frame.type == "call":
                    self._call(frame)
                else:
                    self._open(frame.head.get("instances"))
        finally:
            self._close()

    def _open(self, count: object) -> None:
        if type(count) is not int or count < 1:
            msg = f"cannot open {count!r} instances"
            raise ProtocolError(msg)
        self._close()
        try:
            self._instances = self._copies(count)
        except OSError as error:
            self._channel.send({"type": "raised", **describe(error, ())})
        else:
            self._channel.send({"type": "opened"})

    def _copies(self, count: int) -> Instances | Namespaces:
        """Copies in this process where that keeps them apart as well, and in a process each otherwise."""
        if self._shared_entry is not None:
            names = [wire.signature.name for wire, _ in self._functions]
            copies = loaded_again(self._program, self._shared_entry, names, count)
            if copies is not None:
                return copies
        return Instances(count, self._functions, self._program.files, self._channel.close)

    def _close(self) -> None:
        if self._instances is not None:
            self._instances.close()
            self._instances = None

    def _call(self, frame: Frame) -> None:
        wire = self._wires.get(str(frame.head.get("function")))
        numbers = frame.head.get("instances")
        if wire is None or self._instances is None or not _are_instances(numbers, len(self._instances)):
            msg = f"cannot call {frame.head.get('function')!r} in these instances"
            raise ProtocolError(msg)
        columns = wire.signature.arguments
        values = unpack(columns, len(numbers), frame.head.get("columns"), frame.body)
        answers = self._instances.call(wire, numbers, values)
        self._reply(wire.signature.returns, numbers, answers)

    def _reply(self, column: Column, numbers: Sequence[int], answers: Sequence[Answer]) -> None:
        elements = [answer for answer in answers if isinstance(answer, bytes)]
        if len(elements) < len(answers):
            failures = [(number, a) for number, a in zip(numbers, answers, strict=True) if not isinstance(a, bytes)]
            number, failure = min(failures, key=lambda one: one[0])
            self._channel.send({**failure, "instance": number})
            return
        lengths = np.array([len(one) for one in elements], dtype="<u4") // DTYPES[column.dtype].itemsize
        body = b"".join([lengths.astype("<u4").tobytes(), *elements] if column.ragged else elements)
        table = [{"name": column.name, "dtype": column.dtype, "ragged": column.ragged}]
        self._channel.send({"type": "reply", "columns": table}, body)


def _are_instances(numbers: object, count: int) -> TypeGuard[list[int]]:
    return (
        isinstance(numbers, list)
        and all(type(number) is int and 0 <= number < count for number in numbers)
        and len(set(numbers)) == len(numbers)
    )
