"""What a package's analysis tool gave for one database: its text, or how it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.domain.outcomes import Outcome


class ToolFailure(StrEnum):
    """All of these are the tool's. What is ours raises `SandboxError` or `Cancelled` instead."""

    REFUSED = "refused"
    """The static screen found something that no tool may have; nothing was run."""
    ERROR = "error"
    """It raised, or ended with an exit code other than 0."""
    NO_OUTPUT = "no-output"
    """It ended well, and its output file is missing, empty or no plain file."""
    NOT_TEXT = "not-text"
    """Its output is not UTF-8, or holds NUL characters."""
    NOT_DETERMINISTIC = "not-deterministic"
    """Two runs on the same database gave different outputs."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT_LIMIT = "output-limit"
    """It printed or wrote more than the policy lets through."""
    DISK = "disk"
    KILLED = "killed"
    """Its process was ended by a signal, its own included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinding:
    """Something the static screen refuses, with its place."""

    file: str
    line: int
    message: str
    """In our own words, for instance `imports 'socket'`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolObservation:
    """What a tool was seen to do. Told from inside its own process, so a hostile tool can leave things out."""

    imports: tuple[str, ...] = ()
    """Modules beyond those the runner had loaded, in order."""
    opened: tuple[str, ...] = ()
    """Files it opened or tried to, each with its mode: `r database.sqlite`."""
    sql: tuple[str, ...] = ()
    """Statements SQLite was given, each once, cut at 2,000 characters."""
    events: Mapping[str, int] = field(default_factory=dict)
    """Audit event of CPython to how often, but for those above: `socket.connect`, `subprocess.Popen`, `os.fork`."""
    omitted: int = 0
    """How many entries the bounds left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """One tool on one database; exactly one of `text` and `failure` is set."""

    text: str | None
    """Untrusted: a tool's author and a database's author have both had their hands in it."""
    failure: ToolFailure | None
    detail: str = ""
    """For a failure: what to know of it, for models as well: bounded, and without paths of this machine."""
    findings: tuple[ToolFinding, ...] = ()
    """Of the static screen, the first twenty; beside a `text` only where the tool was observed."""
    outcomes: tuple[Outcome, ...] = ()
    """Of its containers: two where it was run twice, none where the screen refused it before it was run."""
    observation: ToolObservation | None = None
    """Only where it was asked for."""
