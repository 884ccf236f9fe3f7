"""Tool calls of OpenAI's chat completions, piece by piece, as many servers send them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.conversation import ToolCall

MAX_CALLS = 256
"""Of one reply; further ones are left aside."""

_MOST_READ, _MOST_TIMES = 1 << 20, 4
"""How much of a call's arguments is read, again and again, to see whether they are complete: so many characters, and
besides so many times their length."""


class GrowingCall:
    """A call under way."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        """None: the server gives none."""
        self.id: list[str] = []
        self.name: list[str] = []
        self.arguments: list[str] = []
        self._read_bytes = 0  # to see whether they are complete
        self._is_looked_at_no_more = False

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete; no longer looked at where that was asked too often of too many."""
        if self._is_looked_at_no_more or not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        size = sum(map(len, self.arguments))
        self._read_bytes += size
        if self._read_bytes > _MOST_READ + _MOST_TIMES * size:
            self._is_looked_at_no_more = True
            return False
        return parsed_arguments("".join(self.arguments)) is not None


def grow(calls: list[GrowingCall], piece: Mapping[str, Any]) -> Iterator[tuple[list[str], str]]:
    """Where the parts of a piece belong, and the parts; a call that it begins is added."""
    said = piece.get("function")
    function: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    identity, name = _text(piece.get("id")), _text(function.get("name"))
    index = piece.get("index")
    call = _belongs_to(calls, index if isinstance(index, int) else None, identity, name)
    if call is None:
        return
    if identity and not call.id:
        yield call.id, identity
    if name and not call.name:
        yield call.name, name
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)  # as some servers send them: an object, not its text
    yield call.arguments, arguments or ""


def _belongs_to(calls: list[GrowingCall], index: int | None, identity: str, name: str) -> GrowingCall | None:
    """The call that a piece continues or begins.

    Servers that do not count give every call the same index, or none: there another id begins another call, and so does
    a name after whole arguments.
    """
    known = [call for call in calls if call.index == index] if index is not None else calls[-1:]
    last = known[-1] if known else None
    if last is not None:
        has_other_id = bool(identity and last.id and "".join(last.id) != identity)
        begins_anew = bool(name and last.name) and not (identity and last.id) and last.is_whole
        if not (has_other_id and name) and not begins_anew:
            return last
    if len(calls) == MAX_CALLS:
        return None
    calls.append(GrowingCall(index))
    return calls[-1]


def finished_calls(calls: list[GrowingCall], seed: str) -> tuple[ToolCall, ...]:
    """All calls, with ids that are all different.

    Args:
        calls: As they grew.
        seed: Hexadecimal digits that no other reply has; made-up ids are made from it.
    """
    finished: list[ToolCall] = []
    taken: set[str] = set()
    for number, call in enumerate(calls):
        identity = clean("".join(call.id))
        if not identity or identity in taken:
            identity = f"call_{seed[:24]}_{number}"
        taken.add(identity)
        raw = clean("".join(call.arguments))
        arguments = parsed_arguments(raw)
        finished.append(
            ToolCall(
                id=identity,
                name=clean("".join(call.name)),
                arguments=arguments,
                raw_arguments=raw if arguments is None else "",
            )
        )
    return tuple(finished)


def parsed_arguments(raw: str) -> dict[str, Any] | None:
    """A JSON object, where it is one that a record can hold; no text at all is an empty one."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_finite, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Without lone surrogates, which no record or request can hold; two that came apart make their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", errors="replace")
    return text
