"""What EvoSQL tells while it works on a question."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Event(StrEnum):
    """What has just happened."""

    PROPOSED = "proposed"
    """A round's candidates are there, and were run."""
    JUDGED = "judged"
    """They were judged, and the memory was assessed."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One event."""

    event: Event
    question: str
    method: str
    """Empty: the first round, which belongs to all methods."""
    round: int
