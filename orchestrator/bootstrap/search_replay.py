"""A recorded search made again, as a new run, without model or container."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from orchestrator.bootstrap.finals import copy_finals
from orchestrator.bootstrap.header import run_header
from orchestrator.bootstrap.model_choices import access_in_force
from orchestrator.bootstrap.models import REPLAY_PREFIX, Models
from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.search import Finished, SearchRun, Watch, recorded_run
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Policy
from orchestrator.errors import RunStateError
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.replay import ReplayAnalyst, ReplayEvaluator
from orchestrator.evaluation.task_families import package_name
from orchestrator.llm.replay import ReplayModel
from orchestrator.llm.unasked import UnaskedModel
from orchestrator.methods.agentic_evolve import RunPorts, run_agentic_evolve
from orchestrator.ports import Journal, LanguageModel
from orchestrator.runtime.workers import CancelToken


def replay(places: Places, name: str, task_name: str, watch: Watch) -> Finished:
    """Make a recorded run again, as a new run, from its replies and measurements alone: without model or container.

    Args:
        places: Of this invocation.
        name: Of the recorded run.
        task_name: Which must be the recorded one's task.
        watch: Of the caller.

    Raises:
        RunStateError: The recorded run is not of this task, or takes another course with this version.
        EvolvariumError: Otherwise as `begin`.
    """
    source = find_run(run_store(places), name)
    with run_store(places).open(source, read_only=True) as recorded:
        run = recorded_run(places, source, recorded)
        if package_name(places.task(task_name)) != run.task.name:
            msg = f"run {source} is of task {run.task.name!r}, not {task_name!r}"
            raise RunStateError(msg)
        policy = find_policy(places, run.choices.policy, run.choices.runtime)
        header = recorded.get("run") or {}
        model = ReplayModel(
            recorded,
            recorded=header["model"],
            context_tokens=header["context_tokens"],
            count=stand_in(run, policy, recorded, watch.token, watch.note).count_tokens,
        )
        choices = run.choices.model_copy(update={"model": f"{REPLAY_PREFIX}{source}"})
        in_force = {part: header[part] for part in ("policy", "images")}
        writable_home(places)
        run_id, journal = run_store(places).create()
        with journal:
            written = run_header(run.settings, run.task, model, choices, in_force)
            public = header["task"]["public"]  # which is generated for some tasks, and here nothing is
            journal.put("run", {**written, "task": {**written["task"], "public": public}})
            watch.on_start(run_id, run.settings, run.task)
            ledger = run.ledger()
            run_agentic_evolve(
                run_id=run_id,
                settings=run.settings,
                task=run.task.view,
                ports=RunPorts(
                    model=model,
                    evaluator=ReplayEvaluator(recorded),
                    analyst=ReplayAnalyst(recorded) if run.settings.analysis else None,
                    disclosure=TaskDisclosure(policy.disclosure, run.task),
                    journal=journal,
                    ledger=ledger,
                ),
                cancel=watch.token,
                on_event=watch.on_event,
            )
            copy_finals(recorded, journal)
    return Finished(run_id=run_id, containers_left=None, refusal=ledger.refusal)


def stand_in(
    run: SearchRun, policy: Policy, recorded: Journal, token: CancelToken, note: Callable[[str], None]
) -> LanguageModel:
    """The recorded model as one that nobody asks, so that neither key nor server is needed."""
    models = Models(
        access_in_force(recorded, run.choices.access),
        policy.models,
        token=token,
        note=note,
        unasked=partial(UnaskedModel, is_priced=run.choices.budget_usd is not None),
    )
    name = str((recorded.get("run") or {})["model"])
    while name.startswith(REPLAY_PREFIX):  # a replay may be replayed
        name = name.removeprefix(REPLAY_PREFIX)
    return models.find(name, ModelRole.AGENT)
