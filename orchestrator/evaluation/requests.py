"""Asking the sandbox for the containers of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from orchestrator.domain.policies import MountRole, Policy, Purpose
from orchestrator.errors import SandboxError
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Sandbox, Session, SessionRequest


def task_request(
    policy: Policy,
    task: Task,
    purpose: Purpose,
    run_id: str,
    attempt_id: str,
    mounts: Mapping[MountRole, str],
) -> SessionRequest:
    """A request whose limits are the policy's, lowered where the task asks for less."""
    grant = policy.purposes.get(purpose)
    limits = None if grant is None else task.spec.tightened(grant.limits, purpose)
    return SessionRequest(purpose=purpose, run_id=run_id, attempt_id=attempt_id, mounts=mounts, limits=limits)


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
