"""How much a container has used, read from outside while it lives.

Where the engine runs on this machine, its control groups are read directly: exact, in microseconds, with the kernel's
own count of refused forks and of out-of-memory kills. Elsewhere the engine's statistics serve; Docker 20.10 refreshes
them once a second, so limits on CPU time are met up to a second later there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from orchestrator.sandbox.engine import Engine

_CGROUPS = Path("/sys/fs/cgroup")
_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Totals since the container started; None means that the runtime does not account for it."""

    cpu_seconds: float | None
    memory_peak_bytes: int | None
    at_process_limit: bool
    """A fork or thread was refused, or the next one would be."""
    out_of_memory: bool
    """The kernel killed a process of it for memory."""


class Meter(Protocol):
    """Reads one container."""

    def read(self) -> Reading | None:
        """The totals now; None: nothing can be read (any more).

        Raises:
            SandboxError: The engine failed.
        """
        ...

    def wants_cpu(self) -> bool | None:
        """Whether a process or thread of it runs or waits for a processor; None: that cannot be seen."""
        ...


def meter_for(engine: Engine, container: str, pid: int, *, processes: Path = _PROCESSES) -> Meter:
    """The best meter for a running container.

    Args:
        engine: Whose container it is.
        container: Full id.
        pid: Its first process, as the engine sees it; trusted only if that process is in a group named by the id.
        processes: Where processes are listed.
    """
    groups = _groups(processes / str(pid) / "cgroup", container)
    if groups is not None and CgroupMeter(groups, processes=processes).read() is not None:
        return CgroupMeter(groups, processes=processes)
    return StatisticsMeter(engine, container)


class CgroupMeter:
    """Reads the control groups (version 1 or 2) of a container on this machine."""

    def __init__(self, groups: Mapping[str, Path], *, processes: Path = _PROCESSES) -> None:
        """Read these directories.

        Args:
            groups: By controller (version 1), or one under the empty name (version 2).
            processes: Where processes are listed.
        """
        self._groups = groups
        self._processes = processes

    def read(self) -> Reading | None:
        """As `Meter`; None once the container has ended."""
        try:
            # A hybrid machine lists both, and its controllers are in version 1.
            return self._separate() if "memory" in self._groups else self._unified(self._groups[""])
        except (OSError, KeyError, ValueError):
            return None

    def wants_cpu(self) -> bool | None:
        """As `Meter`."""
        group = self._groups.get("pids", self._groups.get(""))
        try:
            processes = [] if group is None else (group / "cgroup.procs").read_text().split()
        except OSError:
            return None
        return any(_is_runnable(self._processes / process) for process in processes)

    def _separate(self) -> Reading:
        memory, pids = self._groups["memory"], self._groups["pids"]
        return Reading(
            cpu_seconds=int((self._groups["cpuacct"] / "cpuacct.usage").read_text()) / 1e9,
            memory_peak_bytes=int((memory / "memory.max_usage_in_bytes").read_text()),
            at_process_limit=_counter(pids / "pids.events", "max") > 0,
            out_of_memory=_counter(memory / "memory.oom_control", "oom_kill") > 0,
        )

    def _unified(self, group: Path) -> Reading:
        peak = group / "memory.peak"  # since Linux 5.19
        return Reading(
            cpu_seconds=_counter(group / "cpu.stat", "usage_usec") / 1e6,
            memory_peak_bytes=int(peak.read_text()) if peak.exists() else None,
            at_process_limit=_counter(group / "pids.events", "max") > 0,
            out_of_memory=_counter(group / "memory.events", "oom_kill") > 0,
        )


class StatisticsMeter:
    """Asks the engine."""

    def __init__(self, engine: Engine, container: str) -> None:
        """Ask `engine` for `container`."""
        self._engine = engine
        self._container = container

    def read(self) -> Reading | None:
        """As `Meter`."""
        stats = self._engine.stats(self._container)
        return None if stats is None else reading_of(stats)

    def wants_cpu(self) -> bool | None:
        """As `Meter`; the engine does not say."""
        return None


def reading_of(stats: Mapping[str, Any]) -> Reading | None:
    """The engine's statistics as a reading; None: they are those of a container that does not run."""
    pids = stats.get("pids_stats") or {}
    total = ((stats.get("cpu_stats") or {}).get("cpu_usage") or {}).get("total_usage")
    if not pids.get("current") and not total:
        return None
    current, limit = pids.get("current"), pids.get("limit")
    return Reading(
        cpu_seconds=None if total is None else total / 1e9,
        memory_peak_bytes=(stats.get("memory_stats") or {}).get("max_usage"),
        at_process_limit=bool(current and limit and current >= limit),
        out_of_memory=False,
    )


def _groups(path: Path, container: str) -> dict[str, Path] | None:
    """Directories by controller of a process that is in groups of this container; None: it is not, or is not here."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    groups: dict[str, Path] = {}
    for line in lines:
        _, controllers, group = line.split(":", 2)
        for controller in controllers.split(","):
            if container in group:
                groups[controller] = _CGROUPS / controller / os.path.relpath(group, "/")
    return groups or None


def _is_runnable(process: Path) -> bool:
    """Whether a thread of a process is in state R; one that has ended meanwhile is not."""
    try:
        # The name stands in brackets and may hold anything, brackets and spaces too.
        return any(
            (thread / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "R"
            for thread in (process / "task").iterdir()
        )
    except (OSError, IndexError):
        return False


def _counter(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    msg = f"{path} has no {name}"
    raise KeyError(msg)
