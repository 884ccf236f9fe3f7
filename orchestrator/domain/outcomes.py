"""How a sandboxed process ended, and what it used."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """All of these are the candidate's. What is ours raises `SandboxError` or `Cancelled` instead."""

    OK = "ok"
    ERROR = "error"
    NO_RESULT = "no-result"
    INVALID_RESULT = "invalid-result"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT_LIMIT = "output-limit"
    DISK = "disk"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one container, measured from outside."""

    ending: Ending
    exit_code: int | None
    """Of its first process; None: the engine reported none. Killed by us after the last frame, so 137 is usual."""
    wall_seconds: float
    cpu_seconds: float | None
    """All processes of the container together; None: the runtime does not account for it."""
    memory_peak_bytes: int | None
    """None: the runtime does not account for it."""
    output: bytes
    """What the code printed outside the channel, bounded; untrusted, withheld from models for formal evaluations."""
    output_truncated: bool
    detail: str = ""
    """One line of ours on which limit or event decided the ending."""
