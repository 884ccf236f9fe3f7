"""What the evaluator says of a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.outcomes import Ending, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a candidate has no score; every field is small and checked."""

    ending: Ending
    exception: str | None = None
    """A built-in exception name, anything else is `Exception`; None: it did not raise."""
    file: str | None = None
    """The candidate's own file it raised in."""
    line: int | None = None
    """Line in that file; None: unknown or outside the program."""
    message: str | None = None
    """From the task's fixed list, or from our own list for the load check and malformed replies."""


AssessedValue = str | int | float | bool | None
"""A text, a finite number or a truth value; None: it does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What a task's own code says of one candidate beside its metrics; exactly one of the three is set."""

    values: Mapping[str, AssessedValue] | None = None
    """What the task declares, by name."""
    failure: Failure | None = None
    """Of the candidate."""
    cut_off: str | None = None
    """The limit that the task's code met, such as `timeout`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The evaluator's last word on one candidate and one split; exactly one of `metrics` and `failure` is set."""

    split: str
    """`hidden`, `fresh`, or another split the task declares."""
    metrics: Mapping[str, float] | None
    """The task's metrics and features, finite."""
    failure: Failure | None
    secret: bool
    """False when the split was generated from a published seed, or is public data."""
    outcome: Outcome
    """Of the candidate's container; its output is withheld from models."""
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    """Digests of evaluator, data, images and policy, for cache keys and records."""

    @property
    def is_scored(self) -> bool:
        """Whether there are metrics."""
        return self.metrics is not None
