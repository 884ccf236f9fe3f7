"""From what was seen of a container to its ending: one pure function.

An exit code does not classify a run. `os._exit(137)` looks like a kill, a child that ran out of memory leaves the exit
code 0, and a program can send a frame of its own and exit. So limits that we saw being met come first, then the
framing, then what the frames said, and the exit code last. Whatever failed on our side raises before this is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.outcomes import Ending

_SIGNAL_BASE = 128
_KILLING = frozenset({"kill", "stop", "restart", "pause", "destroy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was seen from outside; every text says which limit it was, and None means that it was not met."""

    memory: str | None = None
    """By the engine's flag, or a kill by the kernel that the container's accounts show, of whichever process."""
    processes: str | None = None
    excess: str | None = None
    """Of the channel or the printed output."""
    wall: str | None = None
    cpu: str | None = None
    violation: str | None = None
    """How the framing was broken."""
    ended_by_itself: bool = False
    """Its processes ended before we closed the channel or killed anything."""
    exit_code: int | None = None
    """None: the engine reported none."""


def classify(evidence: Evidence, claim: Ending) -> tuple[Ending, str]:
    """The ending, and one line on what decided it.

    Args:
        evidence: What was seen.
        claim: What the frames said, as far as their reader understood them.
    """
    limit = _limit(evidence)
    if limit is not None:
        return limit
    if claim not in (Ending.OK, Ending.NO_RESULT):
        return claim, "reported by its runner, with no limit met"
    if evidence.ended_by_itself and evidence.exit_code:
        return _exit(evidence.exit_code)
    if claim is Ending.OK:
        return Ending.OK, ""
    return Ending.NO_RESULT, "ended without a result" if evidence.ended_by_itself else "no result came"


def _exit(code: int) -> tuple[Ending, str]:
    if code > _SIGNAL_BASE:
        return Ending.KILLED, f"ended by itself as if by signal {code - _SIGNAL_BASE} (exit code {code})"
    return Ending.ERROR, f"ended by itself with exit code {code}"


def _limit(evidence: Evidence) -> tuple[Ending, str] | None:
    for ending, detail in (
        (Ending.MEMORY, evidence.memory),
        (Ending.PROCESSES, evidence.processes),
        (Ending.OUTPUT_LIMIT, evidence.excess),
        (Ending.TIMEOUT, evidence.wall),
        (Ending.TIMEOUT, evidence.cpu),
    ):
        if detail is not None:
            return ending, detail
    if evidence.violation is not None:
        return Ending.INVALID_RESULT, f"broken framing: {evidence.violation}"
    return None


def foreign_act(events: Iterable[Mapping[str, Any]]) -> str | None:
    """What somebody else did to a container that we had not touched yet; None: nothing that the engine remembers.

    Args:
        events: The engine's events of this container, up to the moment it was found ended.
    """
    for event in events:
        action = str(event.get("Action", ""))
        if action.split(":", maxsplit=1)[0] in _KILLING:
            return action
    return None
