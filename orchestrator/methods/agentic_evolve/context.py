"""What all islands of a run share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import ToolSpec
from orchestrator.domain.tasks import TaskView
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.events import Progress
from orchestrator.methods.agentic_evolve.exchange import Exchange
from orchestrator.methods.agentic_evolve.ports import RunPorts
from orchestrator.methods.agentic_evolve.settings import Settings
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Record, Steps


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Thread-safe as far as its parts are."""

    run_id: str
    settings: Settings
    task: TaskView
    ports: RunPorts
    initial: Entry
    steps: Steps
    exchange: Exchange
    token: CancelToken
    system: str
    tools: tuple[ToolSpec, ...]
    on_event: Callable[[Progress], object]
    _telling: threading.Lock = field(default_factory=threading.Lock)  # one event at a time reaches `on_event`

    def tell(self, progress: Progress) -> None:
        """Report an event; the callback is never called from two threads at once."""
        with self._telling:
            self.on_event(progress)

    def step(
        self,
        key: str,
        perform: Callable[[], Record],
        *,
        identity: Record | None = None,
        spend: Spend | None = None,
        account: Account | None = None,
    ) -> Record:
        """A durable step that is repeated when it is cut off, and charged once.

        Args:
            key: Of the journal.
            perform: Gives the record.
            identity: See `Steps.once`.
            spend: What it costs; None: nothing.
            account: Who pays; needed where `spend` is given.

        Raises:
            BudgetExhausted: A ceiling does not cover it; nothing was spent.
            Cancelled: Somebody asked to stop; nothing was recorded.
        """
        if spend is None or account is None:
            return self._performed(key, perform, identity)
        if self.steps.recorded(key) is not None:
            record = self._performed(key, perform, identity)
            self.ports.ledger.charge(spend, account)
            return record
        with self.ports.ledger.reserve(spend, account) as reservation:
            try:
                record = self._performed(key, perform, identity)
            except BaseException:
                reservation.release()  # cut off: it will be repeated, and charged then
                raise
            reservation.settle(spend)
        return record

    def _performed(self, key: str, perform: Callable[[], Record], identity: Record | None) -> Record:
        def unless_cancelled() -> Record:
            self.token.check()
            return perform()

        return self.steps.once(key, unless_cancelled, identity=identity)
