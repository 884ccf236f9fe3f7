"""Engine, images, proofs, audit and sandbox, wired together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.domain.policies import Policy
from orchestrator.errors import Cancelled, EvolvariumError, PrerequisiteError, SandboxError
from orchestrator.evaluation.seeds import KEY_FILE
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.doctor import Finding, examine
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_pruning import ImagePruneReport, OldImage, prune_images
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.sandbox.proofs import Proofs
from orchestrator.sandbox.sweep import SweepReport, prune
from orchestrator.storage.audit import AuditChain


@contextmanager
def image_store(places: Places) -> Iterator[ImageStore]:
    """The images of this installation.

    Raises:
        InputError: The home cannot be used.
        EngineUnavailable: No engine answers.
    """
    home = writable_home(places)
    with Engine.connect() as engine:
        yield ImageStore(engine, home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What containers are made with."""

    sandbox: DockerSandbox
    images: ImageStore


@contextmanager
def open_bench(places: Places, policy: Policy, token: CancelToken, progress: Callable[[str], None]) -> Iterator[Bench]:
    """A sandbox under a policy; every container it made is removed on every way out, and at once on `token`.

    Args:
        places: Holds the home.
        policy: In force.
        token: Of the caller.
        progress: Told when limits have to be proved first, which takes seconds.

    Raises:
        InputError: The home cannot be used.
        EngineUnavailable: No engine answers.
        AuditError: What runs could not be recorded.
        SandboxError: The engine failed.
    """
    home = writable_home(places)
    with Engine.connect() as engine:
        images, audit = ImageStore(engine, home), AuditChain(home)
        audit.require_writable()
        sandbox = DockerSandbox(
            policy=policy,
            engine=engine,
            images=images,
            proofs=Proofs(engine, images, home, policy, audit, progress=progress),
            audit=audit,
        )
        with sandbox, token.on_cancel(sandbox.close):
            yield Bench(sandbox=sandbox, images=images)


@contextmanager
def stops_as_cancelled(token: CancelToken) -> Iterator[None]:
    """Within the block, an operator's stop always comes out as `Cancelled`, whatever it made fail.

    Raises:
        Cancelled: An operator asked to stop.
    """
    try:
        yield
    except EvolvariumError as error:
        if token.is_cancelled and not isinstance(error, Cancelled):
            msg = "stopped by the operator"
            raise Cancelled(msg) from error
        raise


def containers_of(run_id: str) -> int | None:
    """How many containers of a run exist, in any state; None: no engine says so."""
    try:
        with Engine.connect() as engine:
            return len(engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))
    except (PrerequisiteError, SandboxError):
        return None


def pruned(*, dry_run: bool) -> SweepReport:
    """Remove what dead owners left, and data that no container uses.

    Args:
        dry_run: Remove nothing.

    Raises:
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed, or something is still there.
    """
    with Engine.connect() as engine:
        return prune(engine, dry_run=dry_run)


def images_pruned(
    places: Places, *, other_homes: bool, dry_run: bool, tell: Callable[[Sequence[OldImage]], None]
) -> ImagePruneReport:
    """Remove images of ours that this home does not need.

    Args:
        places: Holds the home, whose lock says what is needed.
        other_homes: Also those with the tag of another home.
        dry_run: Remove nothing.
        tell: Called once with what is about to be removed.

    Raises:
        InputError: The home cannot be used.
        ImageMissing: The lock cannot be read.
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed.
    """
    home = writable_home(places)
    with Engine.connect() as engine:
        return prune_images(engine, home, other_homes=other_homes, dry_run=dry_run, tell=tell)


def examined(places: Places, policy: Policy, progress: Callable[[str], None]) -> list[Finding]:
    """What the doctor finds; a missing engine is a finding.

    Args:
        places: Holds the home.
        policy: Its runtimes are proved, and its accepted limits are only warned about.
        progress: Told when something takes seconds.

    Raises:
        InputError: The home cannot be used.
    """
    home = writable_home(places)
    secrets = [home / "secrets" / KEY_FILE, home / "audit" / "key.pem"]
    audit = AuditChain(home)
    return examine(home, policy, audit, environment=os.environ, key_files=secrets, progress=progress)
