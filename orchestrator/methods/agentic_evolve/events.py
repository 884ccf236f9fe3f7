"""What a run tells while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.conversation import Usage


class Event(StrEnum):
    """What has just happened on an island."""

    BEGIN = "begin"
    REQUEST = "request"
    ANALYSIS = "analysis"
    COMMIT = "commit"
    DUPLICATE = "duplicate"
    MIGRATION = "migration"
    HANDOFF = "handoff"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One event, with where its island stands after it. A resumed run tells its recorded steps again."""

    event: Event
    island: int
    subject: str
    """The commit's or analysis' id, or the reason of a stop; empty for other events."""
    commits: int
    """Evaluated commits of the island; duplicates are not among them."""
    analyses: int
    requests: int
    best_id: str | None
    """None: nothing on the island has a score."""
    best_fitness: float | None
    usage: Usage
    """Of the island's replies so far; calls lost in a crash are only in the ledger."""
