"""Public data that a task generates: named files of one of its splits, for analyses."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.errors import EvaluatorError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.task_spec import PublicSplit
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Sandbox


def with_public_data(task: Task, store: SplitStore, sandbox: Sandbox, *, run_id: str) -> Task:
    """The task with its public data at hand; the same task if none are generated.

    Args:
        task: Well formed.
        store: Has or makes the split's data.
        sandbox: Where `generate` runs.
        run_id: Labels the container.

    Raises:
        EvaluatorError: The task's code failed, or does not generate a file that `public` names.
        EvolvariumError: Otherwise as `SplitStore.load`.
    """
    public = task.spec.public
    if not isinstance(public, PublicSplit):
        return task
    files = store.load(sandbox, task, public.split, run_id=run_id).files
    missing = [name for name in public.files if name not in files]
    if missing:
        msg = (
            f"task {task.name!r} generates no file {missing[0]!r} for split {public.split!r}, which `public.files` "
            f"names; it generates {', '.join(sorted(files))}"
        )
        raise EvaluatorError(msg)
    return replace(task, public={name: files[name] for name in public.files})
