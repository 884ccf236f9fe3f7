"""One formal evaluation outside of any run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.bootstrap.bench import open_bench, stops_as_cancelled
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.splits import split_store, unused_data
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.policies import Policy
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.tasks import Task
from orchestrator.runtime.workers import CancelToken


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitChoice:
    """What a program is evaluated on."""

    split: str
    public_seed: bool
    data: str | None
    """File or folder that splits from files are looked for in."""


def judge(
    places: Places,
    task: Task,
    program: FileTree,
    choice: SplitChoice,
    policy: Policy,
    *,
    token: CancelToken,
    note: Callable[[str], None],
) -> Verdict:
    """Evaluate a program.

    Raises:
        InputError: The task has no such split, or the home cannot be used.
        PrerequisiteError: Engine, images or data are missing.
        SandboxError: The sandbox failed; the program stays unscored.
        EvaluatorError: The task's own code failed; likewise.
        Cancelled: An operator asked to stop.
    """
    unused = unused_data(task, [choice.split], choice.data)
    if unused is not None:
        note(unused)
    store = split_store(places, public_seed=choice.public_seed, data=choice.data)
    run_id = f"evaluate-{secrets.token_hex(6)}"
    with stops_as_cancelled(token), open_bench(places, policy, token, note) as bench:
        host = EvaluatorHost(bench.sandbox, task, choice.split, store)
        return host.evaluate(program, run_id=run_id, attempt_id="evaluate")
