"""What EvoSQL is handed; `bootstrap` wires it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.methods.evosql.events import Progress
from orchestrator.ports import Database, Journal, LanguageModel, Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPorts:
    """Everything outside the method. Nothing here knows a gold query or its result."""

    generator: LanguageModel
    critic: LanguageModel
    """May be the same; also chooses for Best-of-K."""
    database: Database
    """Of the predicted domain."""
    journal: Journal
    """Of the run, exclusively owned; may hold the steps of an earlier process."""
    ledger: Ledger
    """Holds nothing of what an earlier process spent on this question: that is charged again from the journal."""
    cancel: CancelToken
    mode: Mode = Mode.PERFORM
    parallel_requests: int = 1
    """How many candidates of a round are asked for at once; changes nothing but how long it takes."""
    on_event: Callable[[Progress], object] = lambda _: None
    """Told what has just happened, in the thread that works on the question."""
