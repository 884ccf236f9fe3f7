"""One thing that a right query shows, and what its absence costs."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.llm.offline.sql.demands import Demand, is_met
from orchestrator.llm.offline.sql.profile import Profile

STRONG = 1.3
"""From this score on a mention surely names what it seems to name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One thing that a right query shows."""

    demands: tuple[Demand, ...]
    """Any of them will do; the first is the repair."""
    problem: str
    weight: float
    """How much of ten points its absence costs."""
    side: str
    """Which of the four scores it belongs to."""

    def holds(self, profile: Profile) -> bool:
        """Whether a query shows it."""
        return any(is_met(demand, profile) for demand in self.demands)
