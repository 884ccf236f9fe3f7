"""Evolutions on small databases without an engine: real files behind the real gate, tools run here, offline models."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.model_names import offline_model
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.copying import COPIED, copy_until
from orchestrator.bootstrap.robophd.data import data_view, load_evolve_data
from orchestrator.bootstrap.robophd.header import Earlier, conditions_of, read_header, split_seed
from orchestrator.bootstrap.robophd.packages import initial_packages
from orchestrator.bootstrap.robophd.ports import JournalJudge, SharedDatabases
from orchestrator.bootstrap.robophd.running import UNCHANGED, header_of_run, spent_record
from orchestrator.bootstrap.robophd.site import FindModel, Site, evaluable_questions
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.bootstrap.sql.databases import Place, examine
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Budget
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Purpose
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.results import RunResult
from orchestrator.methods.robophd.run import RUN, run_robophd
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import Database, Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.runs import RunStore
from tests.evolution_data import write_list
from tests.evolution_world import run_locally
from tests.plain_database import PlainDatabase

SETTINGS = Settings.model_validate({"iterations": 2, "seed": 5, "evolver": {"deep_focus": 0}})


def _offline(name: str, role: ModelRole) -> OfflineModel:
    assert role in (ModelRole.EVOLVER, ModelRole.ANSWERER)
    model = offline_model(name)
    assert model is not None
    return model


class PlainStore:
    """Opens files itself, for every domain alike, each with a digest of its own; notes what is open."""

    def __init__(self) -> None:
        self.open_now: list[str] = []
        self.opened: list[str] = []

    @contextmanager
    def open(
        self, path: Path, name: str, domain: object, *, run_id: str, query_seconds: float | None = None
    ) -> Iterator[PlainDatabase]:
        assert domain
        assert run_id
        assert query_seconds is None or query_seconds > 0
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        database = PlainDatabase(connection, name, digest="sha256:" + f"{sum(name.encode()):064x}")
        self.open_now.append(name)
        self.opened.append(name)
        try:
            yield database
        finally:
            self.open_now.remove(name)
            database.close()


class PlainTools:
    """`ports.DatabaseTools` that runs tools here."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        assert attempt_id
        assert not observe
        return run_locally(package, self._paths[database.name])


class RecordedEvolutions:
    """A home with runs in it, and what they were made of."""

    def __init__(self, folder: Path, **data: Any) -> None:
        self.home = folder / "home"
        self.questions = write_list(folder / "data", **data)
        self.places = find_places(self.home, None)
        self.store = RunStore(self.home)
        self.choices = EvolveChoices(datasets=(DatasetChoice(kind=Layout.JSONL, root=str(self.questions)),))
        self.models: FindModel = _offline
        self.notes: list[str] = []
        self.databases = PlainStore()

    def site(
        self, settings: Settings = SETTINGS, choices: EvolveChoices | None = None, seed: int | None = None
    ) -> Site:
        """What a run is opened with."""
        asked = choices or self.choices
        policy = find_policy(self.places, asked.policy)
        sandbox: Any = SimpleNamespace(policy=policy)
        store: Any = self.databases
        data = load_evolve_data(asked)
        place = Place(
            sandbox=sandbox,
            store=store,
            paths=data.paths,
            run_id="r",
            query_seconds=30,
            workers=1,
            token=CancelToken(),
        )
        split = data.split(settings.seed if seed is None else seed, asked.shares)
        in_force = {"policy": {"name": policy.name, "digest": policy.digest()}, "images": {"tool": "sha256:0"}}
        return Site(
            choices=asked,
            settings=settings,
            data=data,
            split=split,
            place=place,
            models=self.models,
            conditions=conditions_of(data, split, databases=examine(place), in_force=in_force),
            seed=settings.seed if seed is None else seed,
        )

    def made(self, settings: Settings = SETTINGS, choices: EvolveChoices | None = None) -> str:
        """The id of a run that has ended."""
        site = self.site(settings, choices)
        packages = initial_packages(site.choices.packages)
        run_id, journal = self.store.create()
        with journal:
            journal.put(RUN, header_of_run(site, packages, ()))
            self.run(site, packages, (), journal)
        return run_id

    def branched(self, source: str, from_iteration: int, settings: Settings) -> str:
        """The id of a branch that has ended."""
        run_id, journal = self.store.create()
        with journal, self.store.open(source, read_only=True) as other:
            _, _, before, _ = read_header(source, other)
            earlier = [(from_iteration - 1, before)]
            site = self.site(settings, seed=split_seed(settings, earlier))
            packages = initial_packages(site.choices.packages)
            journal.put(RUN, header_of_run(site, packages, earlier))
            copy_until(other, journal, from_iteration)
            assert journal.get(COPIED)
            self.run(site, packages, earlier, journal)
        return run_id

    def run(self, site: Site, packages: Mapping[str, AgentPackage], earlier: Earlier, journal: Journal) -> RunResult:
        """As `bootstrap.robophd.running.performed`, without an engine."""
        judge = SqlJudge(journal, dataset=site.data.digest)
        databases = (*site.split.evolve, *site.split.select)
        evaluable = evaluable_questions(site, databases, judge, self.notes.append)
        ledger = RememberingLedger(Budget(usd=site.choices.budget.usd, tokens=site.choices.budget.tokens))
        ports = RunPorts(
            evolver=site.evolver,
            answerer=site.answerer,
            tools=PlainTools(site.data.paths),
            tool_limits=site.place.sandbox.policy.purposes[Purpose.TOOL].limits,
            databases=SharedDatabases(site.place),
            judge=JournalJudge(judge, journal, {question.id: question for question in evaluable}),
            journal=journal,
            ledger=ledger,
            cancel=site.place.token,
        )
        result = run_robophd(
            settings=site.settings,
            data=data_view(evaluable, site.split),
            initial=packages,
            ports=ports,
            earlier=earlier,
        )
        if journal.get(UNCHANGED) is None:
            spent = spent_record(ledger.snapshot())
            journal.put(UNCHANGED, {"databases": sorted(site.data.paths), "spent": spent})
        return result
