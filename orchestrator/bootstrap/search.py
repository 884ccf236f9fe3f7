"""A run of a search method, begun, resumed or replayed, with every part of it wired together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from orchestrator.bootstrap.bench import Bench, open_bench, stops_as_cancelled
from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.finals import final_splits, measure_finals, pending, require_readable
from orchestrator.bootstrap.first_requests import require_room
from orchestrator.bootstrap.header import policy_record, require_conditions, require_same, run_header
from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.models import REPLAY_PREFIX, ready_models
from orchestrator.bootstrap.pauses import pausing
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import SEARCH, find_run, header_of, in_words, kind_of, new_run, run_store
from orchestrator.bootstrap.splits import split_store, unused_data
from orchestrator.bootstrap.turns import AnalystInTurn, EvaluatorInTurn, Turns
from orchestrator.domain.budgets import Budget
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Purpose
from orchestrator.errors import RunStateError
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.public_data import with_public_data
from orchestrator.evaluation.requests import task_request
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.methods.agentic_evolve import Progress, RunPorts, Settings, run_agentic_evolve
from orchestrator.ports import Journal, LanguageModel
from orchestrator.runtime.workers import CancelToken

_BEFORE = "before-run"
"""Labels what is done before a run has an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that came to its end."""

    run_id: str
    containers_left: int | None
    """None: no engine was needed."""
    refusal: str | None = None
    """What the budget did not cover, in words; None: it covered everything."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """How a run is followed and stopped from outside."""

    token: CancelToken
    on_start: Callable[[str, Settings, Task], object]
    """Told the run's id once it has a journal: from then on it can be resumed."""
    on_event: Callable[[Progress], object]
    note: Callable[[str], None]
    """Told what takes a while before the run begins."""
    on_work: Callable[[str, str], object] = lambda _attempt, _work: None
    """Told an attempt's id and what it is, when its evaluation or analysis really begins; from several threads."""


@dataclass(frozen=True, kw_only=True)
class SearchRun:
    """One run and what it was asked for."""

    run_id: str
    journal: Journal
    settings: Settings
    task: Task
    choices: Choices

    def ledger(self) -> RememberingLedger:
        """Empty; an earlier process's spending is charged again from the journal."""
        return RememberingLedger(Budget(), per_island=self.choices.budget_per_island(self.settings.islands))


def begin(places: Places, choices: Choices, settings: Mapping[str, Any], watch: Watch) -> Finished:
    """Run a search from its beginning.

    Args:
        places: Of this invocation.
        choices: What was asked for.
        settings: Fields of the method's settings; None stands for the task's default.
        watch: Of the caller.

    Raises:
        InputError: What was asked for does not fit together, or the model's context is too small for the task.
        EvolvariumError: See the exception tree; once `on_start` was called, the run is kept and can be resumed,
            unless it failed before anything was recorded of it.
    """
    task = load_task(places.task(choices.task))
    chosen = method_settings(task.spec, **settings)
    policy = find_policy(places, choices.policy, choices.runtime)
    store = split_store(places, public_seed=choices.public_seed, data=choices.data)
    others = task.spec.splits if choices.final_splits is None else choices.final_splits
    unused = unused_data(task, list(dict.fromkeys([task.spec.search_split, *others])), choices.data)
    if unused is not None:
        watch.note(unused)
    with ready_models(
        choices.access,
        policy,
        [(ModelRole.AGENT, choices.model)],
        in_usd=choices.budget_usd is not None,
        token=watch.token,
        note=watch.note,
    ) as models:
        model = models.find(choices.model, ModelRole.AGENT)
        require_room(model, chosen, task.view)
        with open_bench(places, policy, watch.token, watch.note) as bench:
            in_force = policy_record(policy, bench.images.digest)
            task = with_public_data(task, store, bench.sandbox, run_id=_BEFORE)
            splits = final_splits(task, store, bench.sandbox, choices.final_splits, watch.note)
            host = _host(bench, task, store)
            _require_startable(bench, host, task, chosen)
            require_readable(task, splits, _BEFORE, lambda split: EvaluatorHost(bench.sandbox, task, split, store))
            with new_run(run_store(places)) as (run_id, journal):
                journal.put("run", run_header(chosen, task, model, choices, in_force))
                run = SearchRun(run_id=run_id, journal=journal, settings=chosen, task=task, choices=choices)
                with pausing(journal):
                    return _perform(run, model, bench, host, store, splits, watch)


def resume(
    places: Places,
    name: str,
    watch: Watch,
    *,
    accept_policy_change: bool = False,
    given: GivenAccess = NOTHING_GIVEN,
) -> Finished:
    """Continue a run where its journal ends; one that has ended is only measured where that is missing.

    Args:
        places: Of this invocation.
        name: Of the run.
        watch: Of the caller.
        accept_policy_change: Go on although the policy is not the one the run began with.
        given: What is said anew about its models.

    Raises:
        RunStateError: There is no such run, it is in use, or its task, images or policy have changed.
        EvolvariumError: Otherwise as `begin`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        run = recorded_run(places, run_id, journal)
        if run.choices.model.startswith(REPLAY_PREFIX):
            msg = f"run {run_id} is a replay; replay again with `evolvarium run --model {run.choices.model}`"
            raise RunStateError(msg)
        policy = find_policy(places, run.choices.policy, run.choices.runtime)
        store = split_store(places, public_seed=run.choices.public_seed, data=run.choices.data)
        before = access_in_force(journal, run.choices.access)
        access = given.over(before)
        with (
            ready_models(
                access,
                policy,
                [(ModelRole.AGENT, run.choices.model)],
                in_usd=run.choices.budget_usd is not None,
                token=watch.token,
                note=watch.note,
                context_tokens={run.choices.model: header_of(run_id, journal)["context_tokens"]},
                asks=journal.get("run/end") is None,  # one that has ended is only measured
                said=given,
            ) as models,
            open_bench(places, policy, watch.token, watch.note) as bench,
            pausing(journal),
        ):
            model = models.find(run.choices.model, ModelRole.AGENT)
            in_force = policy_record(policy, bench.images.digest)
            run = replace(run, task=with_public_data(run.task, store, bench.sandbox, run_id=run_id))
            require_same(journal, run.task, in_force, accept_policy_change=accept_policy_change)
            splits = final_splits(run.task, store, bench.sandbox, run.choices.final_splits, watch.note)
            record_access(journal, before, access)
            return _perform(run, model, bench, _host(bench, run.task, store), store, splits, watch)


def recorded_run(places: Places, run_id: str, journal: Journal) -> SearchRun:
    """A run as its record says; its task as it is now."""
    header = header_of(run_id, journal)
    if (kind := kind_of(journal)) != SEARCH:
        msg = f"run {run_id} is {in_words(kind)}, which cannot be replayed; `evolvarium show {run_id}` shows it"
        raise RunStateError(msg)
    try:
        choices = Choices.model_validate(header["choices"])
        settings = Settings.model_validate(header["settings"])
        require_conditions(header)
    except (KeyError, TypeError, ValueError) as error:  # a ValidationError is one
        msg = f"the record of run {run_id} was made by another version; continue it with that one"
        raise RunStateError(msg) from error
    task = load_task(places.task(choices.task))
    return SearchRun(run_id=run_id, journal=journal, settings=settings, task=task, choices=choices)


def _host(bench: Bench, task: Task, store: SplitStore) -> EvaluatorHost:
    return EvaluatorHost(bench.sandbox, task, task.spec.search_split, store)


def _require_startable(bench: Bench, host: EvaluatorHost, task: Task, settings: Settings) -> None:
    """Meet what would keep a run from its first step before anything is recorded of it.

    Raises:
        EvolvariumError: As `EvaluatorHost.prepare`; or a runtime, an image, a proof or a grant is missing.
    """
    host.prepare(run_id=_BEFORE)
    for purpose in (Purpose.CANDIDATE, Purpose.EVALUATOR, *([Purpose.ANALYSIS] if settings.analysis else [])):
        request = task_request(bench.sandbox.policy, task, purpose, _BEFORE, _BEFORE, {})
        bench.sandbox.warm(request, 0)  # plans the container and makes none


def _perform(
    run: SearchRun,
    model: LanguageModel,
    bench: Bench,
    host: EvaluatorHost,
    store: SplitStore,
    splits: Sequence[str],
    watch: Watch,
) -> Finished:
    """Search to the end, then measure; an operator's stop always comes out as `Cancelled`."""
    watch.on_start(run.run_id, run.settings, run.task)
    with stops_as_cancelled(watch.token):
        return _searched(run, model, bench, host, store, splits, watch)


def _searched(
    run: SearchRun,
    model: LanguageModel,
    bench: Bench,
    host: EvaluatorHost,
    store: SplitStore,
    splits: Sequence[str],
    watch: Watch,
) -> Finished:
    workers = run.choices.workers or len(os.sched_getaffinity(0))
    turns = Turns(workers, watch.token, watch.on_work)
    ledger = run.ledger()
    analyst = SandboxAnalyst(bench.sandbox, run.task) if run.settings.analysis else None
    has_ended = run.journal.get("run/end") is not None
    if has_ended:
        missing = "; what is missing of its final measurements is made now" if pending(run.journal, splits) else ""
        watch.note(f"run {run.run_id} is done already{missing}")
    host.prepare(run_id=run.run_id, warm=0 if has_ended else workers)
    if analyst is not None:
        analyst.prepare(run_id=run.run_id, warm=0 if has_ended else workers)
    run_agentic_evolve(
        run_id=run.run_id,
        settings=run.settings,
        task=run.task.view,
        ports=RunPorts(
            model=model,
            evaluator=EvaluatorInTurn(host, turns),
            analyst=None if analyst is None else AnalystInTurn(analyst, turns),
            disclosure=TaskDisclosure(bench.sandbox.policy.disclosure, run.task),
            journal=run.journal,
            ledger=ledger,
        ),
        cancel=watch.token,
        on_event=(lambda _: None) if has_ended else watch.on_event,  # which would be told all of it again
    )

    @cache
    def evaluator_of(split: str) -> EvaluatorHost:
        watch.token.check()
        return EvaluatorHost(bench.sandbox, run.task, split, store)

    measure_finals(run.journal, run.run_id, splits, evaluator_of)
    bench.sandbox.close()
    return Finished(
        run_id=run.run_id, containers_left=bench.sandbox.live_containers(run.run_id), refusal=ledger.refusal
    )
