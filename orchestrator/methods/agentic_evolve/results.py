"""What a run comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.domain.conversation import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a command prints at the end of a run."""

    run: str
    task: str
    method: str
    model: str
    seed: int
    best_id: str | None
    """None: nothing has a score."""
    best_metrics: Mapping[str, float] | None
    initial_metrics: Mapping[str, float] | None
    """None: the initial program failed."""
    evaluations: int
    """Paid ones of commits; the initial program and duplicates are not among them."""
    analyses: int
    requests: int
    usage: Usage
    """Of all replies, and of calls lost in a crash at their reservation."""
    endings: Mapping[str, int]
    """How many evaluations ended in each way: `ok`, or the ending of the failure."""
    stops: Mapping[int, str]
    """Why each island stopped."""
