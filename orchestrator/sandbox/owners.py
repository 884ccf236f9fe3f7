"""Who made a container or volume, and whether that process still lives.

Labels cannot be changed once a container exists, so they hold what never changes: the owner and its first lease. A
process id means something only within one pid namespace of one boot, so both are part of the identity; elsewhere only
the lease counts.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from orchestrator.domain.policies import Purpose

KIND = "evolvarium.kind"
RUN = "evolvarium.run"
PURPOSE = "evolvarium.purpose"
OWNER = "evolvarium.owner"
PROCESS = "evolvarium.owner.process"
LEASE = "evolvarium.lease"
DIGEST = "evolvarium.digest"
HOLDER = "evolvarium.holder"

CONTAINER_KIND = "container"
DATA_KIND = "data"
INDEX_KIND = "index"
LEASE_KIND = "lease"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, distinguishable from every other one of any machine, and from a later one of the same id."""

    pid: int
    start_ticks: int
    """Clock ticks from the boot to its start."""
    boot_id: str
    pid_namespace: str

    @classmethod
    def current(cls, proc: Path = _PROC) -> Self:
        """This process."""
        pid = os.getpid()
        ticks = start_ticks(pid, proc)
        return cls(
            pid,
            -1 if ticks is None else ticks,
            (proc / "sys/kernel/random/boot_id").read_text().strip(),
            str((proc / "self/ns/pid").readlink()).partition(":")[2].strip("[]"),
        )

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The inverse of `str`; None: not such a text."""
        parts = text.split("/")
        if len(parts) != 4 or not (parts[0].isdecimal() and parts[1].isdecimal()):
            return None
        return cls(int(parts[0]), int(parts[1]), parts[2], parts[3])

    def __str__(self) -> str:
        return f"{self.pid}/{self.start_ticks}/{self.boot_id}/{self.pid_namespace}"

    def is_visible_from(self, other: Process) -> bool:
        """Whether `other` can tell if this one lives."""
        return (self.boot_id, self.pid_namespace) == (other.boot_id, other.pid_namespace)

    def is_alive(self, proc: Path = _PROC) -> bool:
        """Whether it still runs; ask only for a visible one."""
        return start_ticks(self.pid, proc) == self.start_ticks


@dataclass(frozen=True, slots=True)
class Owner:
    """One sandbox of one process."""

    id: str
    process: Process

    @classmethod
    def new(cls) -> Self:
        """An owner in this process, with a random id."""
        return cls(secrets.token_hex(8), Process.current())

    def labels(self, kind: str, lease_until: float) -> dict[str, str]:
        """Labels of something it makes.

        Args:
            kind: One of the kinds above.
            lease_until: Unix time.
        """
        return {KIND: kind, OWNER: self.id, PROCESS: str(self.process), LEASE: str(int(lease_until))}

    def container_labels(self, run_id: str, purpose: Purpose, lease_until: float) -> dict[str, str]:
        """Labels of a container of a run."""
        return self.labels(CONTAINER_KIND, lease_until) | {RUN: run_id, PURPOSE: purpose.value}


def may_be_swept(
    labels: Mapping[str, str], leases: Mapping[str, float], *, here: Process, now: float, proc: Path = _PROC
) -> bool:
    """Whether nobody alive can still want what carries these labels.

    Args:
        labels: Of a container or volume of ours.
        leases: Owner id to the end (Unix time) of its latest renewed lease.
        here: The process that asks.
        now: Unix time.
        proc: Where processes are listed.
    """
    process = Process.parse(labels.get(PROCESS, ""))
    if process is not None and process.is_visible_from(here):
        return not process.is_alive(proc)
    first = labels.get(LEASE, "")
    until = float(first) if first.isdecimal() else 0.0
    return now > max(until, leases.get(labels.get(OWNER, ""), 0.0))


def start_ticks(pid: int, proc: Path = _PROC) -> int | None:
    """When a process started, in clock ticks since the boot; None: there is none, or only its corpse."""
    try:
        text = (proc / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
