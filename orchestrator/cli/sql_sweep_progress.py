"""Progress of a sweep on stderr: a line for what matters."""

from __future__ import annotations

import threading
import time

from orchestrator.bootstrap.sql.outcomes import Outcome
from orchestrator.bootstrap.sql.sweep import SweepBegun
from orchestrator.cli.progress import duration
from orchestrator.cli.terminal import Terminal

_LINES = 40
"""Lines in all for the evolutions of a sweep."""


class SweepLines:
    """Says what begins, and how far it has come. Thread-safe."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()  # guards _done: questions end in different threads
        self._total = self._done = 0
        self._began = time.monotonic()

    def start(self, begun: SweepBegun) -> None:
        """Say what begins."""
        self._terminal.note(
            f"run {begun.run_id}: {begun.variants} variants on {begun.questions} questions, which take {begun.trials} "
            "evolutions of each"
        )

    def trials(self, total: int, done: int) -> None:
        """Say how much there is to do."""
        self._total, self._done, self._began = total, done, time.monotonic()
        before = f", {done} of them are made already" if done else ""
        self._terminal.note(f"{total} evolutions in all{before}")

    def outcome(self, outcome: Outcome) -> None:
        """Count an evolution, and say where it stands now and then."""
        with self._lock:
            self._done += 1
            if self._done % max(1, self._total // _LINES) and self._done != self._total:
                return
            line = (
                f"{self._done} of {self._total} evolutions after {duration(time.monotonic() - self._began)}; the last "
                f"one of question {outcome.id}"
            )
        self._terminal.note(line)
