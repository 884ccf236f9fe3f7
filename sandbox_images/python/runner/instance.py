"""One copy of the program, in a process of its own: reads calls, answers, and never returns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from channel import write_all
from program import describe
from wire import CALL, INVALID, OK, RAISED, REPLY, InvalidReply, Wire

CHUNK = 1 << 16
"""What a pipe holds at most; one read takes a usual message whole."""

Function = Callable[..., object]


def run(calls: int, replies: int, functions: Sequence[tuple[Wire, Function]], files: Collection[str]) -> NoReturn:
    """Answer calls until the parent closes the pipe, then leave without running anything more of the program.

    Args:
        calls: Descriptor to read from.
        replies: Descriptor to write to.
        functions: In the order of the `start` frame.
        files: The program's, for naming where it raised.
    """
    try:
        while data := os.read(calls, CHUNK):
            total, number = CALL.unpack_from(data)
            if len(data) < total:
                data = _rest(calls, data, total)
            wire, function = functions[number]
            status, payload = answer(wire, function, data, files)
            write_all(replies, REPLY.pack(status, len(payload)) + payload)
    finally:
        os._exit(0)


def answer(wire: Wire, function: Function, message: bytes, files: Collection[str]) -> tuple[int, bytes]:
    """(status, payload) of one call."""
    arguments, expected = wire.arguments(message)
    return respond(wire, function, arguments, expected, files)


def respond(
    wire: Wire, function: Function, arguments: Sequence[object], expected: int | None, files: Collection[str]
) -> tuple[int, bytes]:
    """(status, payload) of one call.

    Args:
        wire: Of the function.
        function: The copy's own.
        arguments: In the order of the signature.
        expected: Length that the reply must have; None: a scalar.
        files: The program's.
    """
    try:
        value = function(*arguments)
    except BaseException as error:  # SystemExit is a way of raising, too
        return RAISED, json.dumps(describe(error, files)).encode()
    try:
        return OK, wire.elements(value, expected)
    except InvalidReply as invalid:
        return INVALID, str(invalid).encode()
    except BaseException:  # an element of the program's own class may raise while it is converted
        return INVALID, b"reply-type"


def _rest(descriptor: int, data: bytes, total: int) -> bytes:
    parts: list[Any] = [data]
    missing = total - len(data)
    while missing:
        part = os.read(descriptor, min(missing, CHUNK))
        if not part:
            os._exit(0)  # the parent left in the middle of a call
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
