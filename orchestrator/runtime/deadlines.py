"""Points on the monotonic clock until which something may take; a step of the wall clock moves none of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A point in time; deadlines of one process compare and sort by it."""

    at: float
    """Seconds of `time.monotonic`."""

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The deadline this many seconds from now.

        Raises:
            ValueError: `seconds` is not finite: every wait has an end.
        """
        if not math.isfinite(seconds):
            msg = f"a deadline needs a finite number of seconds, got {seconds}"
            raise ValueError(msg)
        return cls(time.monotonic() + seconds)

    @property
    def remaining_seconds(self) -> float:
        """Time left; 0 once it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def at_most(self, seconds: float) -> float:
        """Time left, but not more than `seconds`: how long a single wait below this deadline may be."""
        return min(seconds, self.remaining_seconds)
