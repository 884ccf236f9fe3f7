"""Asking the sandbox for the containers of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose
from orchestrator.errors import SandboxError
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Sandbox, Session, SessionRequest
from orchestrator.runtime.workers import spawn

_FINISH_SECONDS = 120.0  # the engine's own deadlines are shorter


def task_request(
    policy: Policy,
    task: Task,
    purpose: Purpose,
    run_id: str,
    attempt_id: str,
    mounts: Mapping[MountRole, str],
) -> SessionRequest:
    """A request whose limits are the policy's, lowered where the task asks for less.

    Those of a candidate are also lowered below its evaluator's (`Limits.under_evaluator`).
    """
    limits = _limits(policy, task, purpose)
    if limits is not None and purpose is Purpose.CANDIDATE:
        evaluator = _limits(policy, task, Purpose.EVALUATOR)
        limits = limits if evaluator is None else limits.under_evaluator(evaluator)
    return SessionRequest(purpose=purpose, run_id=run_id, attempt_id=attempt_id, mounts=mounts, limits=limits)


def _limits(policy: Policy, task: Task, purpose: Purpose) -> Limits | None:
    grant = policy.purposes.get(purpose)
    return None if grant is None else task.spec.tightened(grant.limits, purpose)


@contextmanager
def open_session(sandbox: Sandbox, request: SessionRequest) -> Iterator[Session]:
    """A virgin container; when the engine fails to make one it is asked once more, since nothing has run yet.

    Raises:
        PolicyError: The policy does not grant it.
        PrerequisiteError: Engine or image missing, or a limit is unproven.
        SandboxError: The engine failed twice.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(sandbox.session(request))
        except SandboxError:
            session = stack.enter_context(sandbox.session(request))
        yield session


def finish_both(candidate: Session, claim: Ending, evaluator: Session) -> tuple[Outcome, Outcome]:
    """Finish both containers of an evaluation at once: the engine takes most of its time for each of them alone.

    Args:
        candidate: Finished with `claim`.
        claim: What the frames said.
        evaluator: Finished as having ended well.

    Raises:
        SandboxError: As `Session.finish`, of the candidate first; the other has been finished nevertheless.
        Cancelled: Likewise.
        PrerequisiteError: This machine allows no further thread.
    """
    finishing = spawn("finish-evaluator", lambda: evaluator.finish(Ending.OK))
    try:
        outcome = candidate.finish(claim)
    finally:
        has_ended = finishing.join(_FINISH_SECONDS)
    if not has_ended:
        evaluator.cancel()
        msg = f"finishing the evaluator's container took more than {_FINISH_SECONDS:g} s"
        raise SandboxError(msg)
    return outcome, finishing.result()
