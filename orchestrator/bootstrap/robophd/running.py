"""An evolution begun, gone on with and ended; resumable at any moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.bootstrap.bench import containers_of
from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.pauses import pausing
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.copying import complete_copy
from orchestrator.bootstrap.robophd.data import data_view
from orchestrator.bootstrap.robophd.header import Earlier, evolution_header, read_header, require_same, split_seed
from orchestrator.bootstrap.robophd.packages import initial_packages
from orchestrator.bootstrap.robophd.ports import JournalJudge, SharedDatabases
from orchestrator.bootstrap.robophd.site import (
    BEFORE,
    FindModel,
    Site,
    evaluable_questions,
    evolution_models,
    open_site,
)
from orchestrator.bootstrap.runs import find_run, new_run, run_store
from orchestrator.bootstrap.sql.databases import compare_digests
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Budget, LedgerSnapshot
from orchestrator.domain.policies import Purpose
from orchestrator.domain.records import to_record
from orchestrator.errors import InputError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.robophd.events import Progress
from orchestrator.methods.robophd.members import load_members
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.questions import DataView
from orchestrator.methods.robophd.results import RunResult
from orchestrator.methods.robophd.run import RUN, run_record, run_robophd
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.sampling import DatabaseSplit

UNCHANGED = "run/unchanged"
"""Key of what says that a run has ended, that its databases are what they were, and what it has spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An evolution that has its journal."""

    run_id: str
    choices: EvolveChoices
    settings: Settings
    split: DatabaseSplit
    select_questions: int
    """On the databases that the champion is chosen by, whether they can be evaluated or not."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """How an evolution is followed and stopped from outside."""

    token: CancelToken
    note: Callable[[str], None]
    """Told what takes a while, and what may be other than it was meant."""
    on_start: Callable[[Begun], object] = lambda _: None
    """Told once the run can be resumed."""
    on_event: Callable[[Progress], object] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An evolution that came to its end."""

    run_id: str
    result: RunResult | None
    """None: it had ended already."""
    spent: LedgerSnapshot | None
    """Likewise."""
    refusal: str | None
    """What the budget did not cover; None: it sufficed, or the run had ended already."""
    containers_left: int | None
    """None: it had ended already, and no engine answers."""


def begin_evolution(
    places: Places, choices: EvolveChoices, settings: Settings, watch: Watch, models: FindModel | None = None
) -> Ended:
    """An evolution from its beginning.

    Args:
        places: Hold the home.
        choices: What was asked for.
        settings: Of the method.
        watch: Of the caller.
        models: Finds models by name and role; None: those that the choices name.

    Raises:
        EvolvariumError: See the exception tree; once `on_start` was called, the run is kept and can be resumed, unless
            it failed before anything was recorded of it.
    """
    packages = initial_packages(choices.packages)
    with (
        evolution_models(
            places,
            choices,
            access=choices.access,
            wanted=choices.wanted,
            in_usd=choices.budget.usd is not None,
            token=watch.token,
            note=watch.note,
        ) as found,
        open_site(
            places, choices, settings, run_id=BEFORE, token=watch.token, note=watch.note, models=models or found.find
        ) as site,
        new_run(run_store(places)) as (run_id, journal),
    ):
        journal.put(RUN, header_of_run(site, packages, ()))
        return performed(site, packages, (), run_id, journal, watch)


def resume_evolution(places: Places, name: str, watch: Watch, given: GivenAccess = NOTHING_GIVEN) -> Ended:
    """Continue an evolution where its journal ends; one that has ended needs nothing.

    Args:
        places: Hold the home.
        name: Of the run.
        watch: Of the caller.
        given: What is said anew about its models.

    Raises:
        RunStateError: There is no such run, it is in use, or data, policy or images have changed.
        EvolvariumError: Otherwise as `begin_evolution`.
    """
    store = run_store(places)
    run_id = find_run(store, name)
    with store.open(run_id) as journal:
        header, choices, settings, earlier = read_header(run_id, journal)
        if journal.get(UNCHANGED) is not None:
            watch.note(f"run {run_id} is done already")
            return Ended(run_id=run_id, result=None, spent=None, refusal=None, containers_left=containers_of(run_id))
        complete_copy(store, choices.branch, journal)
        packages = recorded_packages(header, journal) or initial_packages(choices.packages)
        before = access_in_force(journal, choices.access)
        access = given.over(before)
        with (
            evolution_models(
                places,
                choices,
                access=access,
                wanted=choices.wanted,
                in_usd=choices.budget.usd is not None,
                token=watch.token,
                note=watch.note,
                context_tokens=header.get("context_tokens", {}),
                said=given,
            ) as models,
            open_site(
                places,
                choices,
                settings,
                run_id=run_id,
                token=watch.token,
                note=watch.note,
                models=models.find,
                split_seed=split_seed(settings, earlier),
            ) as site,
        ):
            require_same(header, site.conditions)
            record_access(journal, before, access)
            return performed(site, packages, earlier, run_id, journal, watch)


def recorded_packages(header: Mapping[str, Any], journal: Journal) -> dict[str, AgentPackage]:
    """The initial packages as the journal has them; empty: the run ended before they were recorded."""
    members = {member.id: member.package for member in load_members(journal)}
    return {name: members[name] for name in header["initial"]} if set(header["initial"]) <= set(members) else {}


def header_of_run(site: Site, packages: Mapping[str, AgentPackage], earlier: Earlier) -> dict[str, Any]:
    """The record `run` of a new run.

    Args:
        site: Of it.
        packages: The initial ones, by id.
        earlier: Of a branch.
    """
    method = run_record(site.settings, packages, evolver=site.evolver.name, answerer=site.answerer.name)
    contexts = {model.name: model.context_tokens for model in (site.evolver, site.answerer)}
    return {
        **evolution_header(method, site.choices, site.data, site.conditions, earlier),
        "context_tokens": contexts,
    }


def performed(
    site: Site,
    packages: Mapping[str, AgentPackage],
    earlier: Earlier,
    run_id: str,
    journal: Journal,
    watch: Watch,
) -> Ended:
    """Perform what is not recorded yet, and see that no database has changed meanwhile.

    Args:
        site: Of the run.
        packages: The initial ones, by id.
        earlier: Of a branch.
        run_id: Of the run.
        journal: Of the run, with its record `run`.
        watch: Of the caller.

    Raises:
        EvolvariumError: As `begin_evolution`.
    """
    site = site.of_run(run_id)
    watch.on_start(
        Begun(
            run_id=run_id,
            choices=site.choices,
            settings=site.settings,
            split=site.split,
            select_questions=len(site.data.of(site.split.select)),
        )
    )
    judge = SqlJudge(journal, dataset=site.data.digest)
    evaluable = evaluable_questions(site, (*site.split.evolve, *site.split.select), judge, watch.note)
    data = data_view(evaluable, site.split)
    _require_both(data, site.split, run_id)
    ledger = RememberingLedger(Budget(usd=site.choices.budget.usd, tokens=site.choices.budget.tokens))
    sandbox = site.place.sandbox
    with pausing(journal):
        result = run_robophd(
            settings=site.settings,
            data=data,
            initial=packages,
            ports=RunPorts(
                evolver=site.evolver,
                answerer=site.answerer,
                tools=SandboxDatabaseTools(sandbox, run_id=run_id),
                tool_limits=sandbox.policy.purposes[Purpose.TOOL].limits,
                databases=SharedDatabases(site.place),
                judge=JournalJudge(judge, journal, {question.id: question for question in evaluable}),
                journal=journal,
                ledger=ledger,
                cancel=watch.token,
                workers=site.place.workers,
                on_event=watch.on_event,
            ),
            earlier=earlier,
        )
    watch.note("comparing the databases with what they were")
    compare_digests(site.place, site.conditions["databases"])
    spent = ledger.snapshot()
    journal.put(UNCHANGED, {"databases": sorted(site.data.paths), "spent": spent_record(spent)})
    sandbox.close()
    return Ended(
        run_id=run_id,
        result=result,
        spent=spent,
        refusal=ledger.refusal,
        containers_left=sandbox.live_containers(run_id),
    )


def spent_record(spent: LedgerSnapshot) -> dict[str, Any]:
    """What the journal keeps of a ledger, for a replay to come to the same."""
    return {
        "requests": spent.spent.requests,
        "usage": to_record(spent.spent.usage),
        "lost": spent.lost_count,
        "by_role": {role: to_record(one.usage) for role, one in sorted(spent.by_role.items())},
    }


def _require_both(data: DataView, split: DatabaseSplit, run_id: str) -> None:
    parts = (("contests", data.evolve, split.evolve), ("selection", data.select, split.select))
    for purpose, questions, databases in parts:
        if not questions:
            msg = (
                f"none of the questions on {_few(databases)} can be evaluated, so there are none for {purpose} "
                f"(`evolvarium show {run_id}` says why of each); start anew with other data, seed or shares, or under "
                "a policy that lets their gold queries run"
            )
            raise InputError(msg)


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
