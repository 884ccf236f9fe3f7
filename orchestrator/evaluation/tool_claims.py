"""What the frames of a `tool` container say, checked for form and bounds.

What comes before the tool has begun is our own runner's word. What comes after is a claim: the tool shares its
container with the runner, can write to the same pipe, and so can say of itself whatever it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.domain.frames import Frame, decode_head, unpack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.tool_runs import ToolFinding, ToolObservation
from orchestrator.errors import ProtocolError

MAX_FINDINGS = 20
MAX_MESSAGE = 400
MAX_ENTRIES = 500
"""Of each kind in an observation."""
MAX_STATEMENT = 2_000
MAX_NAME = 400
MAX_LINES = 20_000
_BLOBS = {"output", "said", "observed"}
OutputStatus = Literal["ok", "missing", "not-a-file", "too-large"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """What a container says before it runs the tool."""

    sha256: str
    """Of the database file that it has mounted."""
    findings: tuple[ToolFinding, ...]
    omitted: int
    """Findings over those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a container claims when its tool has ended."""

    exit_code: int | None
    """None: a signal ended it."""
    signal: int | None
    disk_full: bool
    flooded: bool
    """Whether it was killed for what it printed."""
    status: OutputStatus
    output: bytes
    """Empty unless the status is `ok`."""
    said: bytes
    """The end of its stderr."""
    observed: bytes

    @property
    def ending(self) -> Ending:
        """What this comes to, where nothing that was seen from outside says else."""
        if self.flooded:
            return Ending.OUTPUT_LIMIT
        if self.signal is not None:
            return Ending.KILLED
        if self.exit_code:
            return Ending.DISK if self.disk_full else Ending.ERROR
        return Ending.OUTPUT_LIMIT if self.status == "too-large" else Ending.OK


def parse_screened(frame: Frame, files: Mapping[str, bytes]) -> Screened:
    """The first frame of a container.

    Args:
        frame: It.
        files: Those that were to be screened.

    Raises:
        ProtocolError: It is not `screened`, or not of its form.
    """
    match frame.head:
        case {"type": "screened", "database": str() as sha256, "findings": [*rows], "omitted": int() as omitted} if (
            len(rows) <= MAX_FINDINGS and type(omitted) is int and omitted >= 0
        ):
            findings = tuple(_finding(row, files) for row in rows)
            return Screened(sha256=sha256, findings=findings, omitted=omitted)
    msg = f"a frame of type {frame.type!r:.80} came where a well-formed 'screened' was due"
    raise ProtocolError(msg)


def parse_done(frame: Frame) -> Done | None:
    """What a container claims in its last frame; None: nothing that could be understood.

    Args:
        frame: Untrusted.
    """
    match frame.head:
        case {
            "type": "done",
            "exit_code": exit_code,
            "signal": signal,
            "disk_full": bool() as disk_full,
            "flooded": bool() as flooded,
            "output": "ok" | "missing" | "not-a-file" | "too-large" as status,
            "blobs": table,
        } if _is_code(exit_code) and _is_code(signal) and (exit_code is None) != (signal is None):
            pass
        case _:
            return None
    try:
        blobs = unpack_blobs(table, frame.body)
    except ProtocolError:
        return None
    if set(blobs) != _BLOBS or (status != "ok" and blobs["output"]):
        return None
    return Done(exit_code=exit_code, signal=signal, disk_full=disk_full, flooded=flooded, status=status, **blobs)


def parse_observation(raw: bytes) -> ToolObservation:
    """What a tool was seen to do.

    Args:
        raw: Untrusted lines of JSON, already bounded; what is malformed or over a bound is counted as omitted.
    """
    told: dict[str, dict[str, None]] = {"import": {}, "open": {}, "sql": {}}
    events: dict[str, int] = {}
    omitted = malformed = 0
    for entry in _entries(raw):
        match entry:
            case {"type": "omitted", "count": int() as count}:
                omitted = max(omitted, count)
            case {"type": "event", "text": str() as name, "count": int() as count} if (
                count > 0 and len(name) <= MAX_NAME and (name in events or len(events) < MAX_ENTRIES)
            ):
                events[name] = max(events.get(name, 0), count)
            case {"type": "import" | "open" | "sql" as kind, "text": str() as text} if (
                len(text) <= (MAX_STATEMENT if kind == "sql" else MAX_NAME) and len(told[kind]) < MAX_ENTRIES
            ):
                told[kind][text] = None
            case _:
                malformed += 1
    return ToolObservation(
        imports=tuple(told["import"]),
        opened=tuple(told["open"]),
        sql=tuple(told["sql"]),
        events=events,
        omitted=omitted + malformed,
    )


def _entries(raw: bytes) -> Iterator[Mapping[str, Any] | None]:
    """The entries, None for each that is none; the last line may have been cut."""
    lines = raw.split(b"\n", MAX_LINES)
    for line in lines[:MAX_LINES]:
        try:
            if line:
                yield decode_head(line)
        except ProtocolError:
            yield None
    if lines[MAX_LINES:]:
        yield None


def _finding(row: object, files: Mapping[str, bytes]) -> ToolFinding:
    match row:
        case [str() as file, int() as line, str() as message] if (
            file in files and type(line) is int and line >= 1 and len(message) <= MAX_MESSAGE and message.isprintable()
        ):
            return ToolFinding(file=file, line=line, message=message)
    msg = f"a finding of the screen is not of the form [file, line, message]: {row!r:.80}"
    raise ProtocolError(msg)


def _is_code(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value < 256)
