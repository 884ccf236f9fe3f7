"""A circuit breaker as a state machine (Nygard 2007, "Release It!"), without clock and locks; `breaker` adds both.

Closed, everybody calls. After some failures in a row it is open: nobody calls but one probe after a pause, and the next
one after a longer pause. A probe that is answered closes it, and everybody who waited goes on. Apart from that a server
that asks to wait (Retry-After) is left alone by everybody until then, and met by one call after the other afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from orchestrator.llm.providers.wire import Failure, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a breaker opens, and how often it tries again; in seconds, all positive."""

    failures: int = 5
    """In a row, after which it opens."""
    first_pause: float = 1.0
    """Before the first probe; each further pause is twice as long."""
    longest_pause: float = 60.0
    note_every: float = 60.0
    """Between two notes while it is open."""
    gap: float = 0.25
    """Between two calls after a server has asked to wait."""
    gaps_for: float = 60.0
    """How long calls keep that distance."""


class Way(Enum):
    """What a caller does."""

    CALL = "call"
    PROBE = "probe"
    """Call, as the only one."""
    WAIT_FOR_ALL = "wait for all"
    """The breaker is open."""
    WAIT_FOR_RATE = "wait for rate"
    """The server has asked to wait."""
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Admission:
    """The word on one caller."""

    way: Way
    until: float = 0.0
    """Where it waits: when it asks again, at the latest."""


class Circuit:
    """What a breaker knows of its server. It has no clock: every method takes the time, in seconds of any one clock."""

    def __init__(self, pace: Pace) -> None:
        """It is closed."""
        self.pace = pace
        self.opened_at: float | None = None
        """None: it is closed."""
        self.message = ""
        """Of the last failure."""
        self._failures = 0
        self._pause = pace.first_pause
        self._probe_at = 0.0
        self._is_probing = False
        self._held_until = -math.inf
        self._next_at = -math.inf

    def admit(self, now: float, outage_seconds: float) -> Admission:
        """What a caller does now; whoever is told to probe owes `failed`, `answered` or `abandoned`.

        Args:
            now: The time.
            outage_seconds: How long the caller bears that it is open, from the moment it opened.
        """
        if self.opened_at is None:
            return self._admit_in_turn(now)
        if not self._is_probing and now >= self._probe_at:
            self._is_probing = True
            return Admission(Way.PROBE)
        end = self.opened_at + outage_seconds
        if now >= end:
            return Admission(Way.GIVE_UP)
        return Admission(Way.WAIT_FOR_ALL, end if self._is_probing else min(end, self._probe_at))

    def failed(self, now: float, failure: Failure, *, is_probe: bool) -> bool:
        """A call was not served; whether the breaker opens by it."""
        pause = failure.retry_after or 0.0
        if pause > 0:
            self._held_until = self._next_at = max(self._held_until, now + pause)
        if self.opened_at is not None:
            if is_probe:
                self._is_probing = False
                self.message = failure.message
                self._pause = min(2 * self._pause, self.pace.longest_pause)
                self._probe_at = now + max(self._pause, pause)
            return False
        if failure.fault is Fault.RATE and pause > 0:
            return False  # it does serve, and says when
        self.message = failure.message
        self._failures += 1
        if self._failures < self.pace.failures:
            return False
        self.opened_at = now
        self._pause = self.pace.first_pause
        self._probe_at = now + max(self._pause, pause)
        return True

    def answered(self, *, is_probe: bool) -> bool:
        """A call was answered, be it with a refusal; whether the breaker closes by it.

        While it is open, only a probe counts: an answer that began before the outage says nothing of its end.
        """
        if self.opened_at is not None and not is_probe:
            return False
        closes = self.opened_at is not None
        self.opened_at = None
        self._is_probing = False
        self._failures = 0
        return closes

    def abandoned(self) -> None:
        """A probe ended without a word on the server; somebody else may probe at once."""
        self._is_probing = False

    def _admit_in_turn(self, now: float) -> Admission:
        if now >= self._held_until + self.pace.gaps_for:
            return Admission(Way.CALL)
        if now < self._next_at:
            return Admission(Way.WAIT_FOR_RATE, self._next_at)
        self._next_at = now + self.pace.gap
        return Admission(Way.CALL)
