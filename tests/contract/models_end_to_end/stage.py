"""What a server does with each request of a run, and its own account of it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import Provider
from tests.contract.models_end_to_end.agent import answer
from tests.model_servers.base import Answer, Received, Trouble, Turn

Outcome = Literal["whole", "broken", "refused"]
"""200 with a whole reply; taken, but without one; an error status."""
Fault = Callable[[Turn], Answer]
"""From what would be answered to what happens instead."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A request that came through to the script."""

    body: str
    """Digest of what it says."""
    outcome: Outcome
    usage: Usage
    """As the server reports it, without dollars."""


@dataclass(kw_only=True)
class Stage:
    """The script of a server: the agent, and from one request on a fault. Thread-safe."""

    provider: Provider
    api: Literal["chat", "responses"] | None = None
    """Which of OpenAI's protocols is spoken; None: chat completions, or it is not OpenAI's."""
    fault: Fault | None = None
    first: int = 4
    """Number of the first request that the fault happens to, from 1."""
    times: int | None = 1
    """How many requests it happens to; None: all, until it is mended."""
    taken: list[Taken] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """Of the agent itself; there must be none."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _came: int = 0

    def __call__(self, request: Received) -> Answer:
        try:
            turn = answer(self.provider, request)
        except Exception as error:
            self.failures.append(error)  # the server would take it for a client that has gone
            raise
        with self._lock:
            self._came += 1
            since = self._came - self.first
            is_due = since >= 0 and (self.times is None or since < self.times)
            said = self.fault(turn) if self.fault is not None and is_due else turn
            self.taken.append(Taken(body=_digest(request), outcome=_outcome(said), usage=_usage(said)))
        return said

    def happens(self, fault: Fault | None) -> None:
        """From now on, whatever comes; None: nothing happens any more."""
        with self._lock:
            self.fault, self.first, self.times = fault, self._came + 1, None

    def count(self, outcome: Outcome) -> int:
        return sum(taken.outcome == outcome for taken in self.taken)

    @property
    def reported(self) -> Usage:
        """Of all whole replies."""
        return sum((taken.usage for taken in self.taken if taken.outcome == "whole"), Usage())

    @property
    def answered_twice(self) -> list[str]:
        """Requests that were answered as a whole more than once."""
        bodies = Counter(taken.body for taken in self.taken if taken.outcome == "whole")
        return [body for body, times in bodies.items() if times > 1]


def _digest(request: Received) -> str:
    return hashlib.sha256(json.dumps(request.body, sort_keys=True).encode()).hexdigest()


def _outcome(said: Answer) -> Outcome:
    if isinstance(said, Trouble):
        return "broken" if said.status is None else "refused"
    return "whole"


def _usage(said: Answer) -> Usage:
    if not isinstance(said, Turn):
        return Usage()
    return Usage(
        input_tokens=said.input_tokens,
        cached_input_tokens=said.cached_tokens,
        cache_write_tokens=said.cache_write_tokens,
        output_tokens=said.output_tokens,
        reasoning_tokens=said.reasoning_tokens,
    )


def nothing_but(turn: Turn, **fields: object) -> Turn:
    """A reply of the same cost with other content."""
    return replace(turn, **{"text": "", "calls": (), **fields})  # type: ignore[arg-type]


def in_turn(*faults: Fault) -> Fault:
    """One after another, each with one request."""
    left = iter(faults)

    def fault(turn: Turn) -> Answer:
        return next(left)(turn)

    return fault
