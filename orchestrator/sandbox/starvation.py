"""Whether a container that ran out of wall time had waited for a processor: then the machine is to blame.

A sample counts as starved when something in the container wanted to run and all of it together got less than a fifth
of what its limit grants. Code cannot make itself look starved: what it wants and gets is CPU time, which has a limit of
its own, and code that mostly sleeps is seldom found wanting.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.policies import Purpose
from orchestrator.sandbox.settings import Blueprint

_ENOUGH = 0.2
_HALF = 0.5


@dataclass(slots=True)
class Starvation:
    """Samples of one container, one after the other."""

    cpus: float
    """What its limit grants at any time."""
    _before: tuple[float, float] | None = None
    _watched: float = 0.0
    _starved: float = 0.0

    def sample(self, now: float, cpu_seconds: float, *, wants_cpu: bool) -> None:
        """Add one.

        Args:
            now: Seconds, monotonic.
            cpu_seconds: Used since the container began.
            wants_cpu: Whether a process or thread of it is running or waits for a processor.
        """
        if self._before is not None:
            passed = now - self._before[0]
            used = cpu_seconds - self._before[1]
            self._watched += passed
            if wants_cpu and used < _ENOUGH * self.cpus * passed:
                self._starved += passed
        self._before = (now, cpu_seconds)

    @property
    def was_starved(self) -> bool:
        """Whether that was so for at least half of the time that was watched."""
        return self._watched > 0 and self._starved >= _HALF * self._watched


def wall_remedy(blueprint: Blueprint) -> str:
    """Where more wall time is to be granted: by whoever grants the least."""
    purpose, granted = blueprint.purpose.value, blueprint.grant.limits.wall_seconds
    place = f"`purposes.{purpose}.limits.wall_seconds` in the policy"
    if blueprint.limits.wall_seconds < granted:
        place = f"`limits.{purpose}.wall_seconds` in the task's task.yaml (the policy grants up to {granted:g} s)"
    also = ", and no less for the evaluator, which waits for it" if blueprint.purpose is Purpose.CANDIDATE else ""
    return f"raise {place}{also}"
