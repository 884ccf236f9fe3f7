"""Leases: until when an owner that cannot be seen from here is taken to be alive.

Labels of containers are immutable, and a file of the owner is not visible to others that share the engine. So a lease
is an object of the engine itself: an empty volume whose name and labels say whose it is and until when. Renewing means
making the next one, then removing the last. An owner that dies leaves one or two of them, which the sweep removes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from orchestrator.errors import EvolvariumError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.owners import KIND, LEASE, LEASE_KIND, OWNER, Owner

LEASE_SECONDS = 900.0
RENEWAL_SECONDS = LEASE_SECONDS / 3
_RETRY_SECONDS = 15.0
_STOP_SECONDS = 30.0


class Lease:
    """Keeps an owner's lease renewed by a thread of its own, until it is closed."""

    def __init__(self, engine: Engine, owner: Owner, *, clock: Callable[[], float] = time.time) -> None:
        """Take the first lease.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed.
        """
        self._engine = engine
        self._owner = owner
        self._clock = clock
        self._stopping = threading.Event()
        self._name = ""
        self.renew()
        self._worker: Worker[None] = spawn("lease", self._keep)

    @property
    def until(self) -> float:
        """Unix time up to which something made now is safe from others without any further renewal."""
        return self._clock() + LEASE_SECONDS

    def renew(self) -> None:
        """Extend the lease.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed; the lease before it stands.
        """
        until = self.until
        name = f"evolvarium-lease-{self._owner.id}-{int(until)}"
        if name == self._name:
            return
        self._engine.create_volume(name, self._owner.labels(LEASE_KIND, until))
        last, self._name = self._name, name
        if last:
            self._engine.remove_volume(last)

    def close(self) -> None:
        """End the lease; idempotent. What the engine refuses to remove, a sweep will."""
        self._stopping.set()
        self._worker.join(_STOP_SECONDS)
        if self._name:
            self._engine.remove_volume(self._name)
            self._name = ""

    def _keep(self) -> None:
        pause = RENEWAL_SECONDS
        while not self._stopping.wait(pause):
            try:
                self.renew()
                pause = RENEWAL_SECONDS
            except EvolvariumError:  # the engine may be back in time; until then containers cannot be made either
                pause = _RETRY_SECONDS


def current_leases(engine: Engine) -> dict[str, float]:
    """Owner id to the end of its latest lease, Unix time.

    Raises:
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed.
    """
    leases: dict[str, float] = {}
    for volume in engine.volumes({KIND: LEASE_KIND}):
        labels = volume.get("Labels") or {}
        owner, until = str(labels.get(OWNER, "")), str(labels.get(LEASE, ""))
        if until.isdecimal():
            leases[owner] = max(leases.get(owner, 0.0), float(until))
    return leases
