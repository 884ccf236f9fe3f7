"""What answering needs beside a package, a database and a question."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.errors import EvolvariumError
from orchestrator.methods.robophd.keys import AnswerKeys
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.ports import LanguageModel, Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Steps


@dataclass
class _Turn:
    """Whose turn it is with one key, and how it ended."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_done: bool = False
    error: EvolvariumError | None = None


class OncePerProcess:
    """Work that a process does once for each key, however often and from however many threads it is asked for.

    An answer that is needed in two contests is recorded once, and a process that reads it charges for it once.
    Thread-safe.
    """

    def __init__(self) -> None:
        """Nothing is done yet."""
        self._lock = threading.Lock()  # guards _turns
        self._turns: dict[str, _Turn] = {}

    def do(self, key: str, work: Callable[[], object]) -> None:
        """Do the work, unless this process has done it, or wait for the thread that is at it.

        Args:
            key: What it is for.
            work: Ends in time on its own.

        Raises:
            EvolvariumError: What the work raised, on later calls as well: part of it may have been charged already, so
                that only a new process can take it up again.
        """
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
        with turn.lock:
            if turn.error is not None:
                raise turn.error
            if turn.is_done:
                return
            try:
                work()
            except EvolvariumError as error:
                turn.error = error
                raise
            turn.is_done = True


@dataclass(frozen=True, kw_only=True)
class AnswerContext:
    """Everything outside; one for each model and process. Nothing here knows a gold query. Thread-safe."""

    model: LanguageModel
    """Answers, and analyses databases whose tool failed."""
    steps: Steps
    """Of the run; with an empty journal, an answer depends on nothing that was before."""
    ledger: Ledger
    """Holds nothing of what an earlier process spent: that is charged again from the journal."""
    settings: AnswerSettings
    seed: int
    """Of the run."""
    cancel: CancelToken
    keys: AnswerKeys = AnswerKeys()  # noqa: RUF009 - frozen, so it can be shared
    before: Callable[[], object] = lambda: None
    """Called before a request that has no reply yet; what it raises keeps it from being made."""
    once: OncePerProcess = field(default_factory=OncePerProcess)
