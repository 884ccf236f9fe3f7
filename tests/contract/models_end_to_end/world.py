"""A small run of AgenticEvolve whose model is a provider's, at a local server, and how it is begun, resumed, replayed.

Each `go` is like a process of its own: journal, ledger, model, breaker and token are new, and only files remain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.pauses import pause_of, pausing
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.domain.budgets import Account, Budget, LedgerSnapshot, Spend
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.model_access import ModelEntry, Patience, Provider
from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import EvolvariumError
from orchestrator.llm.prices import cost
from orchestrator.llm.providers.breaker import Breakers
from orchestrator.llm.providers.model import ProviderModel
from orchestrator.llm.providers.opening import open_model
from orchestrator.llm.replay import ReplayModel
from orchestrator.methods.agentic_evolve import RunPorts, RunResult, Settings, run_agentic_evolve
from orchestrator.ports import LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.spending import Spending
from orchestrator.storage.journal import SqliteJournal
from tests.contract.language_model.conftest import Bench, PlainDisclosure, candidates, task_view
from tests.contract.models_end_to_end.stage import Stage
from tests.model_lab import NAMES, PRICE, QUICK, VARIABLE, entry_for
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.base import KEY, ModelServer
from tests.model_servers.openai import OpenAIServer
from tests.model_servers.responses import ResponsesServer

SETTINGS = Settings(seed=3, islands=2, commits_per_island=2, migration_interval=1, analyses_per_commit=2)
PATIENCE = Patience(chunk_seconds=20, request_seconds=40, outage_seconds=40)
CONTEXT_TOKENS = 1_000_000


@dataclass
class RememberingBench(Bench):
    """Measures every program and makes every experiment once, whichever run asks for it."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = self.printed

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        if payload.digest not in self.verdicts:
            self.verdicts[payload.digest] = super().evaluate(payload, run_id=run_id, attempt_id=attempt_id)
        return self.verdicts[payload.digest]

    def save(self, path: Path) -> None:
        """For another process."""
        verdicts = {digest: to_record(verdict) for digest, verdict in self.verdicts.items()}
        path.write_text(json.dumps({"analyses": self.printed, "verdicts": verdicts}))

    @classmethod
    def load(cls, path: Path) -> RememberingBench:
        saved = json.loads(path.read_text())
        verdicts = {digest: from_record(Verdict, record) for digest, record in saved["verdicts"].items()}
        return cls(printed=saved["analyses"], verdicts=verdicts)


@dataclass(frozen=True, kw_only=True)
class Went:
    """How one process ended."""

    error: EvolvariumError | None
    result: RunResult | None
    snapshot: LedgerSnapshot
    spending: Spending
    """On the model, as the journal tells it at that moment."""
    pause: str | None
    """Why the run is paused, as the journal tells it."""
    candidates: Mapping[str, str]
    keys: frozenset[str]
    """Of all that was recorded by then."""
    notes: list[str]


@dataclass(kw_only=True)
class World:
    """One run, its server and its journal."""

    provider: Provider
    folder: Path
    bench: RememberingBench
    stage: Stage
    server: Any
    settings: Settings = SETTINGS

    @property
    def name(self) -> str:
        return f"{self.provider.value}/{NAMES[self.provider]}"

    @property
    def path(self) -> Path:
        return self.folder / "run.sqlite"

    def go(self, *, patience: Patience = PATIENCE, ledger: Ledger | None = None, **fields: Any) -> Went:
        """Begin the run, or go on with it, until it ends or stops.

        Args:
            patience: Of the model.
            ledger: None: one without ceilings.
            fields: Of the model's entry, as a models file would change them.
        """
        entry = self._entry(**fields)
        ledger = ledger or Ledger(Budget())
        notes: list[str] = []
        with ExitStack() as stack:
            journal = stack.enter_context(SqliteJournal(self.path))
            model = opened(self.provider, entry, patience, notes.append)
            stack.callback(model.close)
            result, error = None, None
            try:
                with pausing(journal):
                    result = run(journal, model, self.bench, ledger, self.settings)
            except EvolvariumError as caught:
                error = caught
            return Went(
                error=error,
                result=result,
                snapshot=ledger.snapshot(),
                spending=spending_of(journal),
                pause=pause_of(journal),
                candidates=candidates(journal),
                keys=frozenset(key for key, _ in journal.records()),
                notes=notes,
            )

    def replayed(self, ledger: Ledger | None = None) -> Mapping[str, str]:
        """Candidates of the run as its recording makes it again, without the server."""
        counting = opened(self.provider, self._entry(), PATIENCE, lambda _: None)
        counting.close()
        with SqliteJournal(self.path, read_only=True) as recorded, SqliteJournal(self.folder / "again.sqlite") as again:
            model = ReplayModel(
                recorded, recorded=self.name, context_tokens=CONTEXT_TOKENS, count=counting.count_tokens
            )
            run(again, model, self.bench, ledger or Ledger(Budget()), self.settings)
            return candidates(again)

    def _entry(self, **fields: Any) -> ModelEntry:
        usual = {"context_tokens": CONTEXT_TOKENS, "api": self.stage.api}
        return entry_for(self.provider, self.server.url, **{**usual, **fields})


def opened(provider: Provider, entry: ModelEntry, patience: Patience, note: Callable[[str], None]) -> ProviderModel:
    """A model as the product opens it, with a breaker of its own and quick retries."""
    return open_model(
        f"{provider.value}/{NAMES[provider]}",
        entry,
        environment={VARIABLE: KEY},
        patience=patience,
        breakers=Breakers(QUICK),
        token=CancelToken(),
        note=note,
    )


def run(
    journal: SqliteJournal, model: LanguageModel, bench: Bench, ledger: Ledger, settings: Settings = SETTINGS
) -> RunResult:
    """The run, from its beginning or from where its journal ends."""
    ports = RunPorts(
        model=model, evaluator=bench, analyst=bench, disclosure=PlainDisclosure(), journal=journal, ledger=ledger
    )
    return run_agentic_evolve(run_id="run-1", settings=settings, task=task_view(), ports=ports, cancel=CancelToken())


def spending_of(journal: SqliteJournal) -> Spending:
    """What the journal says of the model, all islands together."""
    spending = (one for one in read_ledger(journal) if one.account.role == "agent")
    return sum(spending, Spending(account=Account(role="agent")))


def server_for(provider: Provider, stage: Stage) -> ModelServer:
    """One that takes long conversations."""
    if provider is Provider.ANTHROPIC:
        return AnthropicServer(stage, models={NAMES[provider]: (2 * CONTEXT_TOKENS, 64_000)})
    if stage.api == "responses":
        return ResponsesServer(stage, models=(NAMES[provider],))
    return OpenAIServer(stage, models=(NAMES[provider],))


def rename(server: Any, name: str) -> None:
    """The model has another name from now on; nothing else changes."""
    models = server.models
    server.models = dict.fromkeys([name], next(iter(models.values()))) if isinstance(models, dict) else (name,)


def check_ledger(went: Went) -> None:
    """The ledger of a process that has met all records of the run says what the journal says."""
    said, spent = went.spending, went.snapshot.by_role.get("agent", Spend())
    assert went.snapshot.reserved == Spend()
    assert went.snapshot.lost_count == said.lost
    assert went.snapshot.lost.usage == said.lost_usage
    assert spent == Spend(requests=said.requests + said.lost, usage=said.whole)


def check_account(went: Went, stage: Stage, *, estimated: bool = False) -> None:
    """Journal and server agree on what was paid for.

    Args:
        went: A process whose end left nothing in flight.
        stage: Of the server.
        estimated: Whether a usage was not reported, so that the journal has more.
    """
    said, reported = went.spending, stage.reported
    assert stage.failures == []
    assert (said.requests, said.lost) == (stage.count("whole"), stage.count("broken"))
    assert stage.answered_twice == []
    if estimated:
        assert said.usage.tokens > reported.tokens
    else:
        assert replace(said.usage, usd=reported.usd) == reported
        assert said.usage.usd == cost(PRICE, reported)


def check_end(world: World, went: Went, *, ledger: Ledger | None = None) -> None:
    """A run that has ended is over, its ledger too, and its recording, which holds no key, makes the same candidates.

    Args:
        world: Of the run.
        went: The process that ended it.
        ledger: For the replay; None: one without ceilings.
    """
    assert (went.error, went.pause) == (None, None)
    asked = len(world.stage.taken)
    again = world.go()
    assert (again.error, again.keys) == (None, went.keys)
    assert len(world.stage.taken) == asked
    assert again.snapshot == went.snapshot
    check_ledger(again)
    assert world.replayed(ledger) == went.candidates
    assert not [file.name for file in world.folder.glob("*.sqlite*") if KEY.encode() in file.read_bytes()]
