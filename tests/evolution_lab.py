"""A laboratory for RoboPhD's run: a world of databases, scripted models, and a journal in memory.

Running again is a new process on the same journal.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import (
    Conversation,
    UserMessage,
)
from orchestrator.domain.policies import Limits
from orchestrator.domain.sql import QueryResult
from orchestrator.methods.robophd.events import Progress
from orchestrator.methods.robophd.naive import NAIVE, naive_package
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.questions import DataView
from orchestrator.methods.robophd.results import RunResult
from orchestrator.methods.robophd.run import run_robophd
from orchestrator.methods.robophd.settings import Settings
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode
from tests.evolution_world import LocalTools, World, WorldDatabases, WorldJudge
from tests.memory_journal import Fuse, MemoryJournal
from tests.scripted_evolver import (
    SkilledAnswerer,
    Turn,
    call,
    calls,
    evolver,
    finish,
    iteration_of,
    made,
    revised,
    write,
)


def small(**changes: Any) -> Settings:
    """Contests of three databases; no verification, so that one answer is one request."""
    fields: dict[str, Any] = {
        "seed": 3,
        "iterations": 4,
        "databases_per_contest": 3,
        "answers": {"corrections": 0, "hybrid_requests": 2},
    }
    return Settings.model_validate({**fields, **changes})


class EvolutionLab:
    """A run and everything around it."""

    def __init__(
        self,
        world: World,
        turns: Mapping[int, Sequence[Turn]],
        settings: Settings | None = None,
        *,
        initial: Mapping[str, AgentPackage] | None = None,
        **model: Any,
    ) -> None:
        self.world = world
        self.settings = settings or small()
        self.initial = initial or {NAIVE: naive_package()}
        self.evolver = evolver(turns, **model)
        self.answerer = SkilledAnswerer({}, **model)
        self.tools = LocalTools(world)
        self.databases = WorldDatabases(world)
        self.data = DataView(evolve=world.evolve, select=world.select)
        self.gold: Mapping[str, QueryResult] = world.gold
        self.journal: Any = MemoryJournal()
        self.budget = Budget()
        self.mode = Mode.PERFORM
        self.workers = 1
        self.earlier: Sequence[tuple[int, Settings]] = ()
        self.events: list[Progress] = []
        self.ledger = Ledger(self.budget)
        self.cancel = CancelToken()
        self._telling = threading.Lock()

    def light(self, touches: int | None) -> None:
        """Let journal, models and tools share one fuse that burns through after this many touches; None: never."""
        self.journal.fuse = self.evolver.fuse = self.answerer.fuse = self.tools.fuse = Fuse(touches)

    def run(self) -> RunResult:
        """In a new process."""
        self.ledger, self.cancel, self.events = Ledger(self.budget), CancelToken(), []
        return run_robophd(
            settings=self.settings, data=self.data, initial=self.initial, ports=self.ports(), earlier=self.earlier
        )

    def ports(self) -> RunPorts:
        return RunPorts(
            evolver=self.evolver,
            answerer=self.answerer,
            tools=self.tools,
            tool_limits=Limits(),
            databases=self.databases,
            judge=WorldJudge(self.gold, self.journal),
            journal=self.journal,
            ledger=self.ledger,
            cancel=self.cancel,
            mode=self.mode,
            workers=self.workers,
            on_event=self._told,
        )

    def _told(self, progress: Progress) -> None:
        assert self._telling.acquire(blocking=False), "two events at once"
        try:
            self.events.append(progress)
        finally:
            self._telling.release()

    @property
    def state(self) -> dict[str, str]:
        """The journal without what announces and retracts calls, whose number tells how often one was cut off."""
        return {key: text for key, text in self.journal.entries.items() if not key.endswith(("/sent", "/void"))}

    def record(self, key: str) -> Mapping[str, Any]:
        found = self.journal.get(key)
        assert found is not None, key
        return dict(found)

    def conversation(self, iteration: int) -> Conversation:
        """The last request of an iteration's evolution."""
        return next(c for c in reversed(self.evolver.conversations) if iteration_of(c) == iteration)

    @property
    def messages(self) -> list[str]:
        """All that was said to the evolver but for tool results."""
        last = [self.conversation(n) for n in dict.fromkeys(map(iteration_of, self.evolver.conversations))]
        return [m.text for c in last for m in c.messages if isinstance(m, UserMessage)]


def without_focus(settings: Settings, **evolver_fields: Any) -> Settings:
    """The same without Deep Focus."""
    return replace_evolver(settings, deep_focus=0, **evolver_fields)


def replace_evolver(settings: Settings, **fields: Any) -> Settings:
    """The same with other settings of the evolver."""
    return settings.model_copy(update={"evolver": settings.evolver.model_copy(update=fields)})


BROKEN = calls(write("tools/analyze.py", "raise ValueError('no')\n"), finish("broken"))
TRY = call("try_tool", database="demo/d2")
TURNS: dict[int, list[Turn]] = {
    2: [
        calls(call("read_errors", id="naive", database="demo/d2")),
        made("a"),
        calls(TRY, *revised("a", "b").tool_calls),
    ],
    3: ["Hm.", made("c"), BROKEN],
}
"""A better revision after a try, and one whose tool fails, so that a model makes up for it."""


def tiny(world: World, **model: Any) -> EvolutionLab:
    """Two iterations of one database and two questions, with a try and a revision whose tool fails."""
    settings = small(iterations=2, databases_per_contest=1, questions_per_database=2)
    turns: list[Turn] = ["Hm.", calls(call("nothing"), *made("a").tool_calls[:-1], TRY, finish()), BROKEN]
    lab = EvolutionLab(world, {2: turns}, settings, **model)
    lab.data = DataView(evolve=world.evolve, select={"demo/s0": world.select["demo/s0"][:1]})
    return lab


def cheaper(lab: EvolutionLab, requests: int) -> EvolutionLab:
    """The same with a ceiling."""
    lab.budget = Budget(requests=requests)
    return lab
