"""A circuit breaker per server: while a server serves nobody, nobody hammers it, and everybody waits for the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.domain.model_access import KeySource
from orchestrator.errors import ModelUnavailable
from orchestrator.llm.providers.calls import nothing_in_flight
from orchestrator.llm.providers.circuit import Circuit, Pace, Way
from orchestrator.llm.providers.durations import shown_duration, shown_moment
from orchestrator.llm.providers.wire import Failure, Fault
from orchestrator.runtime.workers import CancelToken

_SLICE_SECONDS = 0.25
_NOTABLE_SECONDS = 0.1
"""With less there was no wait worth telling of."""
_SERVES_NOBODY = frozenset({Fault.OUTAGE, Fault.RATE, Fault.BROKEN})


@dataclass(slots=True)
class Turn:
    """One caller's leave to call, within the block of `Breaker.turn`."""

    is_probe: bool
    waited_seconds: float
    """For the breaker to close."""
    outcome: Failure | None = None
    is_over: bool = False

    def ended(self, failure: Failure | None) -> None:
        """How the call ended; None: with a reply."""
        self.outcome = failure
        self.is_over = True


class Breaker:
    """The circuit of one server, for the threads of a process."""

    def __init__(self, server: str, pace: Pace | None = None) -> None:
        """It is closed.

        Args:
            server: For messages.
            pace: None: the usual one.
        """
        self.server = server
        self.pace = pace or Pace()
        self._circuit = Circuit(self.pace)
        self._changed = threading.Condition()  # guards the circuit and the time of the last note
        self._noted_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nobody may call but a probe."""
        with self._changed:
            return self._circuit.opened_at is not None

    @contextmanager
    def turn(
        self, *, left_seconds: float, outage_seconds: float, token: CancelToken, note: Callable[[str], None]
    ) -> Iterator[Turn]:
        """Wait for leave to call, and have it for the block, which reports by `Turn.ended` unless it raises.

        Args:
            left_seconds: How long the caller may wait where the server has asked it to.
            outage_seconds: How long the breaker may have been open.
            token: Ends the wait.
            note: Told when the breaker opens, every minute while it is open, and when it closes.

        Raises:
            ModelUnavailable: It has been open for longer, or the server asks for more patience than there is.
            CancelledUnpaid: Somebody asked to stop before there was leave.
        """
        with nothing_in_flight():
            turn = self._await(left_seconds, outage_seconds, token, note)
        try:
            yield turn
        finally:
            self._report(turn, outage_seconds, note)

    def _await(
        self, left_seconds: float, outage_seconds: float, token: CancelToken, note: Callable[[str], None]
    ) -> Turn:
        waited_for_all = 0.0
        waited_for_rate = 0.0
        while True:
            token.check()
            with self._changed:
                begun = time.monotonic()
                admission = self._circuit.admit(begun, outage_seconds)
                rest = admission.until - begun
                if admission.way is Way.WAIT_FOR_RATE and rest > left_seconds - waited_for_rate:
                    raise ModelUnavailable(asks_to_wait(self.server, rest))
                if admission.way is Way.GIVE_UP:
                    raise ModelUnavailable(self._outage(begun))
                if admission.way in (Way.CALL, Way.PROBE):
                    return Turn(admission.way is Way.PROBE, waited_for_all)
                text = self._due_note(begun, outage_seconds)
                self._changed.wait(min(_SLICE_SECONDS, rest))
                waited = time.monotonic() - begun
            if admission.way is Way.WAIT_FOR_ALL:
                waited_for_all += waited
            else:
                waited_for_rate += waited
            if text:
                note(text)

    def _report(self, turn: Turn, outage_seconds: float, note: Callable[[str], None]) -> None:
        text = ""
        with self._changed:
            now = time.monotonic()
            failure = turn.outcome
            if not turn.is_over:
                if turn.is_probe:
                    self._circuit.abandoned()
            elif failure is not None and failure.fault in _SERVES_NOBODY:
                if self._circuit.failed(now, failure, is_probe=turn.is_probe):
                    self._noted_at = now
                    text = self._opening(outage_seconds)
            else:
                opened_at = self._circuit.opened_at
                if self._circuit.answered(is_probe=turn.is_probe) and opened_at is not None:
                    text = f"{self.server} answers again, after {shown_duration(now - opened_at)}; the run goes on"
            self._changed.notify_all()
        if text:
            note(text)

    def _due_note(self, now: float, outage_seconds: float) -> str:
        opened_at = self._circuit.opened_at
        if opened_at is None or now < self._noted_at + self.pace.note_every:
            return ""
        self._noted_at = now
        left = shown_duration(max(0.0, opened_at + outage_seconds - now))
        return f"{self._trouble(now - opened_at)}; the run waits for at most another {left}"

    def _opening(self, outage_seconds: float) -> str:
        failures = self.pace.failures
        waits = f"waits for it, for at most {shown_duration(outage_seconds)}" if outage_seconds > 0 else "does not wait"
        return f"{self.server} has failed {failures} times in a row (last: {self._circuit.message}); the run {waits}"

    def _outage(self, now: float) -> str:
        opened_at = self._circuit.opened_at
        trouble = self._trouble(0.0 if opened_at is None else now - opened_at)
        return f"{trouble}; try again once the server is back"

    def _trouble(self, seconds: float) -> str:
        served = "does not serve" if seconds < _NOTABLE_SECONDS else f"has served nothing for {shown_duration(seconds)}"
        return f"{self.server} {served} (last: {self._circuit.message})"


def asks_to_wait(who: str, seconds: float) -> str:
    """The message where a server asks for more patience than there is."""
    return (
        f"{who} asks to wait for another {shown_duration(seconds)}, longer than a reply may take; try again "
        f"from {shown_moment(seconds)} on"
    )


class Breakers:
    """One breaker for each server and key, for all models of a process. Thread-safe."""

    def __init__(self, pace: Pace | None = None) -> None:
        """None yet.

        Args:
            pace: Of all of them; None: the usual one.
        """
        self._pace = pace
        self._lock = threading.Lock()  # guards _breakers: models may be opened in several threads
        self._breakers: dict[tuple[str, KeySource | None], Breaker] = {}

    def of(self, url: str, key_source: KeySource | None) -> Breaker:
        """The breaker of a server as it is asked with a key."""
        with self._lock:
            return self._breakers.setdefault((url, key_source), Breaker(url, self._pace))
