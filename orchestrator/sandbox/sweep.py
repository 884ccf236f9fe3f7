"""Removing what dead owners left: containers in every state, leases, half-filled volumes; on demand unused data too."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.leases import current_leases
from orchestrator.sandbox.owners import (
    CONTAINER_KIND,
    DATA_KIND,
    HOLDER,
    INDEX_KIND,
    KIND,
    LEASE_KIND,
    PROCESS,
    Process,
    may_be_swept,
)

MAX_PASSES = 10
SETTLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep did: all of it was looked for again and is gone. Of a dry run, what it would begin with."""

    containers: tuple[str, ...] = ()
    """Ids of removed containers."""
    volumes: tuple[str, ...] = ()
    """Names of removed volumes."""
    kept_containers: int = 0
    """Containers of owners that live, or whose lease runs."""


def sweep(engine: Engine) -> SweepReport:
    """Remove what owners left that are dead, or cannot be seen from here and whose lease has run out.

    Raises:
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed, or something is still there after its removal.
    """
    return _sweep(engine, with_unused_data=False)


def prune(engine: Engine, *, dry_run: bool = False) -> SweepReport:
    """A sweep that also removes imported data, unless a container uses it or another owner lives, who may rely on it.

    Data are imported again when they are needed.

    Args:
        engine: To look at.
        dry_run: Remove nothing.

    Raises:
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed, or something is still there after its removal.
    """
    return _pass(engine, with_unused_data=True, dry_run=True) if dry_run else _sweep(engine, with_unused_data=True)


def _sweep(engine: Engine, *, with_unused_data: bool) -> SweepReport:
    """Pass after pass until one finds nothing.

    What a process asked for just before it was killed, the engine may still be making while the first pass looks.
    """
    containers: list[str] = []
    volumes: list[str] = []
    for number in range(MAX_PASSES):
        if number:
            time.sleep(SETTLE_SECONDS)
        report = _pass(engine, with_unused_data=with_unused_data)
        containers += report.containers
        volumes += report.volumes
        if not (report.containers or report.volumes):
            break
    return SweepReport(containers=tuple(containers), volumes=tuple(volumes), kept_containers=report.kept_containers)


def _pass(engine: Engine, *, with_unused_data: bool, dry_run: bool = False) -> SweepReport:
    here, now, leases = Process.current(), time.time(), current_leases(engine)

    def is_orphan(labels: Mapping[str, str]) -> bool:
        return may_be_swept(labels, leases, here=here, now=now)

    found = engine.containers({KIND: CONTAINER_KIND})
    orphans = [str(container["Id"]) for container in found if is_orphan(container.get("Labels") or {})]
    if dry_run:
        volumes = _volumes(engine, is_orphan, with_unused_data, orphans)
    else:
        for container in orphans:
            engine.remove(container)
        wanted = _volumes(engine, is_orphan, with_unused_data, orphans)
        volumes = [name for name in wanted if engine.remove_volume(name)]
        _verify(engine, orphans, volumes)
    return SweepReport(containers=tuple(orphans), volumes=tuple(volumes), kept_containers=len(found) - len(orphans))


def _volumes(
    engine: Engine, is_orphan: Callable[[Mapping[str, str]], bool], with_unused_data: bool, orphans: Collection[str]
) -> list[str]:
    """Names of volumes to try to remove; indexes come before what they point to, so that none points to nothing."""
    indexes = engine.volumes({KIND: INDEX_KIND})
    held = {str((index.get("Labels") or {}).get(HOLDER, "")) for index in indexes}
    data = engine.volumes({KIND: DATA_KIND})
    all_leases = engine.volumes({KIND: LEASE_KIND})
    leases = [volume for volume in all_leases if is_orphan(volume.get("Labels") or {})]
    here = str(Process.current())
    others = [volume for volume in all_leases if (volume.get("Labels") or {}).get(PROCESS) != here]
    # Another living owner knows the names of data that it will mount next, whether or not a container does so now.
    if with_unused_data and len(others) == sum(volume in leases for volume in others):
        used = _used(engine, orphans)
        indexes = [index for index in indexes if (index.get("Labels") or {}).get(HOLDER) not in used]
        unheld = [volume for volume in data if volume["Name"] not in used]
        unheld = [volume for volume in unheld if volume["Name"] in held or is_orphan(volume.get("Labels") or {})]
        return [str(volume["Name"]) for volume in (*indexes, *unheld, *leases)]
    unheld = [volume for volume in data if volume["Name"] not in held and is_orphan(volume.get("Labels") or {})]
    return [str(volume["Name"]) for volume in (*unheld, *leases)]


def _used(engine: Engine, orphans: Collection[str]) -> set[str]:
    """Names of the volumes that any container mounts which stays."""
    return {
        str(mount["Name"])
        for container in engine.containers({KIND: ""})
        if container["Id"] not in orphans
        for mount in container.get("Mounts") or []
        if mount.get("Name")
    }


def _verify(engine: Engine, containers: list[str], volumes: list[str]) -> None:
    """See to it that all of it is gone: what its dead owner had just asked to start can come back once.

    Raises:
        SandboxError: Something is still there, however often it was removed.
    """
    for _ in range(MAX_PASSES):
        left = [container for container in containers if engine.inspect(container) is not None]
        if not left:
            break
        time.sleep(SETTLE_SECONDS)
        for container in left:
            engine.remove(container)
    left = [container[:12] for container in containers if engine.inspect(container) is not None]
    left += [volume for volume in volumes if engine.volume(volume) is not None]
    if left:
        msg = f"still there after their removal: {', '.join(left)}; look with `docker ps -a` and `docker volume ls`"
        raise SandboxError(msg)
