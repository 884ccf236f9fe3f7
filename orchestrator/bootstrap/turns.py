"""At most so many evaluations and analyses at once: more than the machine has processors only slows each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.verdicts import Verdict
from orchestrator.ports import AnalysisResult, Analyst, Evaluator
from orchestrator.runtime.workers import CancelToken

_SLICE_SECONDS = 0.5


class Turns:
    """A number of places, shared by what takes one. Thread-safe."""

    def __init__(
        self, places: int, token: CancelToken, on_work: Callable[[str, str], object] = lambda _attempt, _work: None
    ) -> None:
        """All places are free.

        Args:
            places: How many there are.
            token: Ends the waiting.
            on_work: Told an attempt's id and what it is once it has its place; called from several threads.
        """
        self._places = threading.BoundedSemaphore(places)
        self._token = token
        self._on_work = on_work

    @contextmanager
    def turn(self, attempt_id: str = "", work: str = "") -> Iterator[None]:
        """Wait for a place and hold it for a block.

        Raises:
            Cancelled: Somebody asked to stop.
        """
        self._token.check()
        while not self._places.acquire(timeout=_SLICE_SECONDS):
            self._token.check()
        try:
            self._on_work(attempt_id, work)
            yield
        finally:
            self._places.release()


class EvaluatorInTurn:
    """`ports.Evaluator` that waits for its turn."""

    def __init__(self, evaluator: Evaluator, turns: Turns) -> None:
        self._evaluator = evaluator
        self._turns = turns

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        """As `ports.Evaluator`."""
        with self._turns.turn(attempt_id, "evaluation"):
            return self._evaluator.evaluate(payload, run_id=run_id, attempt_id=attempt_id)


class AnalystInTurn:
    """`ports.Analyst` that waits for its turn."""

    def __init__(self, analyst: Analyst, turns: Turns) -> None:
        self._analyst = analyst
        self._turns = turns

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:
        """As `ports.Analyst`."""
        with self._turns.turn(attempt_id, "analysis"):
            return self._analyst.analyse(files, run_id=run_id, attempt_id=attempt_id)
