"""AgenticEvolve (Peng et al.) from beginning to end: the journal, the initial program, the islands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from orchestrator.domain.candidates import Candidate
from orchestrator.domain.tasks import TaskView
from orchestrator.errors import Cancelled, InputError, RunStateError
from orchestrator.methods.agentic_evolve import texts
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import (
    INITIAL,
    Entry,
    check_verdict,
    entry_from_record,
    entry_record,
)
from orchestrator.methods.agentic_evolve.events import Progress
from orchestrator.methods.agentic_evolve.exchange import Exchange
from orchestrator.methods.agentic_evolve.history import read_history
from orchestrator.methods.agentic_evolve.island import Island
from orchestrator.methods.agentic_evolve.ports import RunPorts
from orchestrator.methods.agentic_evolve.results import RunResult
from orchestrator.methods.agentic_evolve.settings import Settings
from orchestrator.runtime.workers import CancelToken, WorkerGroup
from orchestrator.search.replay import Mode, Steps

_COMPARED = ("method", "seed", "settings", "task")


def run_record(settings: Settings, task: TaskView, model: str) -> dict[str, Any]:
    """What the record `run` must hold for this method; whoever writes it first may add to it, also inside `task`."""
    return {
        "method": settings.method,
        "model": model,
        "seed": settings.seed,
        "settings": settings.model_dump(mode="json"),
        "task": {
            "name": task.name,
            "initial": task.initial.digest,
            "entry": task.entry,
            "fitness": task.fitness,
            "features": list(task.features),
        },
    }


def run_agentic_evolve(
    *,
    run_id: str,
    settings: Settings,
    task: TaskView,
    ports: RunPorts,
    cancel: CancelToken,
    on_event: Callable[[Progress], object] = lambda _: None,
    mode: Mode = Mode.PERFORM,
) -> RunResult:
    """Run, resume or replay.

    The journal decides which: steps it holds are not performed again. An error of one island stops the others between
    two steps; the run is then paused, and calling this again with the same journal and an empty ledger continues it.

    Args:
        run_id: Labels containers and results.
        settings: Equal to those the run was started with.
        task: Likewise.
        ports: Everything outside.
        cancel: An operator's wish to stop.
        on_event: Called for every event, never from two threads at once.
        mode: `REPLAY` performs nothing.

    Raises:
        InputError: Settings, task and ports do not fit each other.
        RunStateError: The journal belongs to another run, or a replay came to its end.
        SandboxError: The sandbox failed; the run is paused.
        EvaluatorError: The task's own code failed; the run is paused.
        ModelError: The model failed; the run is paused.
        Cancelled: Somebody asked to stop; the run is paused.
        EvolvariumError: An island waited too long for its neighbours; the run is paused.
    """
    if settings.analysis and ports.analyst is None:
        msg = "runs with analyses need an analyst; start the run with --no-analysis to do without"
        raise InputError(msg)
    steps = Steps(ports.journal, mode)
    _open(steps, run_record(settings, task, ports.model.name))
    initial = _initial(steps, run_id, task, ports, cancel)
    group = WorkerGroup("agentic-evolve", limit=settings.islands, token=cancel, stop_seconds=settings.stop_seconds)
    context = RunContext(
        run_id=run_id,
        settings=settings,
        task=task,
        ports=ports,
        initial=initial,
        steps=steps,
        exchange=Exchange(group.token, wait_seconds=settings.migration_wait_seconds),
        token=group.token,
        system=texts.system_prompt(settings, task),
        tools=texts.tool_specs(settings, task),
        on_event=on_event,
    )
    with group, suppress(Cancelled):  # where one island has failed before all are there, the group raises its error
        for number in range(settings.islands):
            group.spawn(f"island-{number}", Island(context, number).run)
    history = read_history(ports.journal)
    best = history.best
    steps.once("run/end", lambda: {"best": None if best is None else best.id})
    return history.result(run_id)


def _open(steps: Steps, record: Mapping[str, Any]) -> None:
    known = steps.recorded("run") or steps.once("run", lambda: record)
    for field in _COMPARED:
        _compare(field, record[field], known.get(field))
    read_history(steps.journal)  # what is damaged in it is named before anything is done, and by its key


def _compare(field: str, ours: Any, theirs: Any) -> None:  # noqa: ANN401 - any part of a JSON document
    """Refuse a journal that says otherwise; it may say more, or nothing."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for name, value in ours.items():
            _compare(f"{field}.{name}", value, theirs.get(name))
    elif theirs is not None and theirs != ours:
        msg = f"the run was started with {field} {theirs!r}, now it is {ours!r}; use the former, or start a new run"
        raise RunStateError(msg)


def _initial(steps: Steps, run_id: str, task: TaskView, ports: RunPorts, cancel: CancelToken) -> Entry:
    def perform() -> Mapping[str, Any]:
        cancel.check()
        verdict = ports.evaluator.evaluate(task.initial, run_id=run_id, attempt_id=INITIAL)
        entry = Entry(
            candidate=Candidate(id=INITIAL, payload=task.initial),
            verdict=check_verdict(verdict, task, INITIAL),
            island=None,
            number=0,
        )
        return entry_record(entry, ports.journal)

    record = steps.once(INITIAL, perform, identity={"payload": task.initial.digest})
    return entry_from_record(INITIAL, record, ports.journal)
