"""Running untrusted code, and the record of what ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.exchanges import Exchange, Wrapping
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Everything a caller may say about a container; images and settings follow from the policy."""

    purpose: Purpose
    run_id: str
    attempt_id: str
    """The journal id of the step it belongs to, for instance `i1-c07`."""
    mounts: Mapping[MountRole, str] = field(default_factory=dict)
    """Role to volume digest, as `Sandbox.import_volume` returned it."""
    limits: Limits | None = None
    """None: the policy's. Otherwise none may be over the policy's."""


class Session(Protocol):
    """One live container, used once. Not thread-safe, except `cancel`."""

    @property
    def image_digest(self) -> str:
        """Digest of the image it runs."""
        ...

    def send(self, frame: Frame) -> None:
        """Send a frame; a container that has ended swallows it, and `receive` tells.

        Raises:
            SandboxError: The engine failed.
            Cancelled: `cancel` was called.
        """
        ...

    def receive(self) -> Frame | None:
        """The next frame, or None once the container has ended, broke the framing, or met a limit.

        Waits at most until the wall or CPU limit. After None, `finish` tells the ending.

        Raises:
            SandboxError: The engine failed.
            Cancelled: `cancel` was called.
        """
        ...

    def exchange(self, answerer: Session, wrapping: Wrapping, clock: Callable[[], float]) -> Exchange:
        """Pass on what this container asks, and what the other one answers, until this one says something else.

        Answers go back in the order in which they come, one for each question; what comes without having been asked for
        waits for the next question. Several questions may be under way at once.

        Args:
            answerer: A session of the same sandbox.
            wrapping: How questions and answers travel.
            clock: Seconds, monotonic.

        Raises:
            ProtocolError: This container sent a question that is no frame.
            SandboxError: The engine failed.
            Cancelled: `cancel` was called for either of them.
        """
        ...

    def cap_cpu(self, total_seconds: float) -> None:
        """Let the container use at most this much CPU time in all, from now on; never more than its limits."""
        ...

    def finish(self, claim: Ending = Ending.OK) -> Outcome:
        """Kill, inspect, remove and audit the container; idempotent.

        Args:
            claim: What the frames said, as far as the caller understood them. A limit event overrides it; `ok`
                needs that no event contradicts it.

        Raises:
            SandboxError: The engine failed, or the container ended through no fault of its code.
        """
        ...

    def cancel(self) -> None:
        """Kill the container from another thread; pending calls raise `Cancelled`."""
        ...


class Sandbox(Protocol):
    """Runs untrusted code. Thread-safe."""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        ...

    def session(self, request: SessionRequest) -> AbstractContextManager[Session]:
        """A virgin container whose `ready` frame has been consumed; killed and removed on every way out.

        Raises:
            PolicyError: The purpose has no grant, a mount is not granted, or a limit is over the policy's.
            PrerequisiteError: Engine or image missing, or a limit is unproven.
            SandboxError: The engine failed.
        """
        ...

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:
        """Put files into a volume named by their digest, unless it is there; returns the digest.

        Raises:
            SandboxError: The engine failed.
        """
        ...

    def has_volume(self, digest: str) -> bool:
        """Whether a volume with this content is there, so that a mount can name it without importing it again.

        Raises:
            SandboxError: The engine failed, or `digest` is none.
        """
        ...

    def warm(self, request: SessionRequest, count: int) -> None:
        """Keep up to `count` virgin containers ready for requests of this purpose, mounts and limits."""
        ...

    def live_containers(self, run_id: str) -> int:
        """How many containers of this run exist, in any state.

        Raises:
            SandboxError: The engine failed.
        """
        ...

    def close(self) -> None:
        """Remove every container this sandbox made; idempotent."""
        ...


class AuditLog(Protocol):
    """An append-only hash chain. Thread-safe, and safe across processes."""

    def append(self, record: AuditRecord) -> None:
        """Add a record; durable when this returns.

        Raises:
            AuditError: The log cannot be written.
        """
        ...
