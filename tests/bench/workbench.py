"""The sandbox that is measured: the installation's images and proofs, everything else in a folder that goes away."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose
from orchestrator.errors import SandboxError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.requests import task_request
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.ports import SessionRequest
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.proofs import Proofs
from orchestrator.storage.audit import AuditChain
from tests.bench.figures import Machine

TASK = "online_bin_packing"
POLICY = "default"
_WARM_SECONDS = 120.0
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What every benchmark gets."""

    engine: Engine
    sandbox: DockerSandbox
    task: Task
    store: SplitStore
    """Of the published seed."""
    run_id: str

    def request(self, purpose: Purpose, **lowered: float) -> SessionRequest:
        """What the task's own requests of this purpose look like, with some limits lowered."""
        mounts = {}
        if purpose is Purpose.ANALYSIS and self.task.public:
            mounts = {MountRole.PUBLIC: self.sandbox.import_volume(self.task.public, run_id=self.run_id)}
        request = task_request(self.sandbox.policy, self.task, purpose, self.run_id, "bench", mounts)
        if not lowered:
            return request
        limits = Limits.model_validate({**(request.limits or Limits()).model_dump(), **lowered})
        return SessionRequest(
            purpose=purpose, run_id=self.run_id, attempt_id="bench", mounts=request.mounts, limits=limits
        )

    def await_pool(self, request: SessionRequest, count: int = 1) -> None:
        """Wait until so many virgin containers stand ready.

        Raises:
            SandboxError: They do not come.
        """
        deadline = time.monotonic() + _WARM_SECONDS
        while self.sandbox.ready(request) < count:
            if time.monotonic() > deadline:
                msg = f"the pool has no {count} {request.purpose.value} containers after {_WARM_SECONDS:g} s"
                raise SandboxError(msg)
            time.sleep(_POLL_SECONDS)


@contextmanager
def open_workbench(
    places: Places, state: Path, run_id: str, token: CancelToken, note: Callable[[str], None]
) -> Iterator[Workbench]:
    """A sandbox under the shipped policy; every container it made is removed on every way out.

    Args:
        places: Their home has the lock of the images and the proofs.
        state: An empty folder, for the audit chain and the split; nothing is added to the installation's own.
        run_id: On every container.
        token: Of the caller.
        note: Told when limits have to be proved first, which takes seconds.

    Raises:
        PrerequisiteError: Engine or images are missing.
        SandboxError: The engine failed.
    """
    home = writable_home(places)
    policy = find_policy(places, POLICY)
    with Engine.connect() as engine:
        images, audit = ImageStore(engine, home), AuditChain(state)
        proofs = Proofs(engine, images, home, policy, audit, progress=note)
        sandbox = DockerSandbox(policy=policy, engine=engine, images=images, proofs=proofs, audit=audit)
        with sandbox, token.on_cancel(sandbox.close):
            yield Workbench(
                engine=engine,
                sandbox=sandbox,
                task=load_task(places.task(TASK)),
                store=SplitStore(home=state, seeds=SeedSource.public()),
                run_id=run_id,
            )


def machine_of(engine: Engine, policy: Policy) -> Machine:
    """The machine, engine and runtime that figures belong to."""
    runtimes = sorted({grant.runtime.value for grant in policy.purposes.values()})
    return Machine(
        processors=len(os.sched_getaffinity(0)),
        load=round(os.getloadavg()[0], 2),
        python=platform.python_version(),
        engine=str(engine.info().get("ServerVersion", "unknown")),
        runtime=", ".join(runtimes),
    )
