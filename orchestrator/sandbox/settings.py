"""Everything that seals a container, as one pure function from what a policy grants to the body of the create call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Self

from orchestrator.domain.policies import Grant, Limits, MountRole, Purpose, Runtime
from orchestrator.errors import PolicyError
from orchestrator.ports import SessionRequest

TARGETS = {
    MountRole.TASK: "/task",
    MountRole.PUBLIC: "/work/data",
    MountRole.TARGET: "/target",
    MountRole.DATABASE: "/data",
}
SHM_BYTES = 1 << 20
SHM_INODES = 64
OPEN_FILES = 1024
HOSTNAME = "sandbox"
GUEST_KERNEL_TASKS = 40
"""Of gVisor itself, measured: 38."""
GUEST_PROCESS_TASKS = 5
"""Of gVisor for every process inside, measured: 5.2 to 5.5; rounded down, so that never more fit than are granted."""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - a path inside the container: its own tmpfs
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}
# A list given to the engine replaces its own, so the engine's defaults (through version 28) come first.
MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    # What tells of the host's load, hardware and command line.
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/key-users",
    "/proc/kallsyms",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/loadavg",
    "/proc/locks",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/vmallocinfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices/virtual",
    "/sys/fs",
    "/sys/hypervisor",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
    # The host's resolver; there is no network to reach it.
    "/etc/resolv.conf",
    # Message queues would be one more writable place.
    "/dev/mqueue",
)
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """What determines a container; the same blueprint, uid and name give the same settings."""

    purpose: Purpose
    run_id: str
    image_digest: str
    """`sha256:` and 64 hex digits; never a name or tag."""
    grant: Grant
    limits: Limits
    """The policy's or stricter ones."""
    mounts: Mapping[MountRole, str] = field(default_factory=dict)
    """Role to digest of a volume's content."""
    volumes: Mapping[MountRole, str] = field(default_factory=dict)
    """Role to the name of the volume that holds it."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for containers that can stand in for each other."""
        mounts = tuple(sorted((role.value, digest) for role, digest in self.mounts.items()))
        return self.purpose, self.run_id, self.image_digest, self.grant, self.limits, mounts

    def with_volumes(self, volumes: Mapping[MountRole, str]) -> Self:
        """The same with the volumes that hold its mounts."""
        return replace(self, volumes=dict(volumes))

    def with_mount(self, role: MountRole, digest: str, volume: str) -> Self:
        """The same with one mount more."""
        return replace(self, mounts={**self.mounts, role: digest}, volumes={**self.volumes, role: volume})


def granted_limits(grant: Grant, request: SessionRequest) -> Limits:
    """The limits a request gets: the policy's, or its own if none of them is over the policy's.

    Raises:
        PolicyError: A mount is not granted, or a limit is over the policy's.
    """
    excess = set(request.mounts) - grant.mounts
    if excess:
        names = sorted(role.value for role in excess)
        msg = f"purpose {request.purpose.value!r} asks for mounts {names}, which the policy does not grant"
        raise PolicyError(msg)
    if request.limits is None:
        return grant.limits
    for name in Limits.model_fields:
        asked, allowed = getattr(request.limits, name), getattr(grant.limits, name)
        if asked > allowed:
            msg = (
                f"purpose {request.purpose.value!r} asks for {name} {asked}, the policy grants {allowed};"
                " ask for less, or grant more in the policy"
            )
            raise PolicyError(msg)
    return request.limits


def container_settings(blueprint: Blueprint, *, name: str, uid: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """Body of the engine's create call, with the container's name as `Name`.

    Args:
        blueprint: What it is for and may use.
        name: Random, so that nobody can guess or occupy it.
        uid: No other live container may have it: limits per uid would be shared, and signals could pass.
        labels: By whom and until when it may live.

    Raises:
        PolicyError: A limit comes to what the engine takes for no limit.
    """
    return {
        "Name": name,
        "Image": blueprint.image_digest,
        "Cmd": [f"--idle-seconds={blueprint.limits.idle_seconds:g}"],
        "Env": [f"{key}={value}" for key, value in ENVIRONMENT.items()],
        "Hostname": HOSTNAME,
        "Domainname": "",
        "User": f"{uid}:{uid}",
        "WorkingDir": "/tmp",  # noqa: S108 - a path inside the container: its own tmpfs
        "Labels": dict(labels),
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,  # the runner meets end-of-file when we are gone, however we went
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        "Healthcheck": {"Test": ["NONE"]},  # an image must not bring commands of its own
        "HostConfig": _confinement(blueprint)
        | _ceilings(blueprint.limits, blueprint.grant.runtime)
        | _file_systems(blueprint, uid),
    }


def _confinement(blueprint: Blueprint) -> dict[str, Any]:
    return {
        "Runtime": blueprint.grant.runtime.value,
        "NetworkMode": "none",
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "DnsOptions": [],
        "ExtraHosts": [],
        "PublishAllPorts": False,
        "Privileged": False,
        "CapAdd": [],
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={seccomp_profile()}"],
        "Devices": [],
        "DeviceRequests": [],
        "DeviceCgroupRules": [],
        "GroupAdd": [],
        "IpcMode": "none",  # a namespace of its own, and no /dev/shm but the one of `_file_systems`
        "PidMode": "",  # empty means a namespace of its own
        "UTSMode": "",
        "UsernsMode": "",
        "CgroupnsMode": "private",
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READ_ONLY_PATHS),
        "Init": True,  # reaps orphans, and is a PID 1 that the code cannot kill
        "AutoRemove": False,  # after it the out-of-memory flag could not be read
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "none", "Config": {}},  # a flood must not reach the host's disk
    }


def _ceilings(limits: Limits, runtime: Runtime) -> dict[str, Any]:
    return {
        "Memory": _bounded("memory_bytes", limits.memory_bytes),
        "MemorySwap": _bounded("memory_bytes", limits.memory_bytes),  # equal to Memory means: no swap
        "PidsLimit": _bounded("pids", _engine_pids(limits.pids, runtime)),
        "NanoCpus": _bounded("cpus", round(limits.cpus * 1e9)),
        "OomKillDisable": False,
        "OomScoreAdj": 1000,  # if the host itself runs out, this goes first
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": OPEN_FILES, "Hard": OPEN_FILES},
            {"Name": "memlock", "Soft": 0, "Hard": 0},
            {"Name": "msgqueue", "Soft": 0, "Hard": 0},
        ],
    }


def _bounded(name: str, value: int) -> int:
    """The value, unless the engine or the kernel reads it as "without a limit", which they do for 0 and below.

    Raises:
        PolicyError: They do.
    """
    if value < 1:
        msg = f"the limit {name} comes to {value}, which the engine takes for no limit at all; grant more"
        raise PolicyError(msg)
    return value


def _engine_pids(pids: int, runtime: Runtime) -> int:
    """What the host must count so that about `pids` processes fit inside: a guest kernel has tasks of its own there."""
    return GUEST_KERNEL_TASKS + GUEST_PROCESS_TASKS * pids if runtime is Runtime.RUNSC else pids


def _file_systems(blueprint: Blueprint, uid: int) -> dict[str, Any]:
    limits = blueprint.limits
    # The limit holds for all writable places together, so an analysis has half of it in each of its two.
    places = ["/tmp", "/work"] if blueprint.purpose is Purpose.ANALYSIS else ["/tmp"]  # noqa: S108 - in the container
    size, inodes = limits.tmpfs_bytes // len(places), max(8, limits.tmpfs_inodes // len(places))
    tmpfs = {place: _tmpfs(size, inodes, uid) for place in places}
    tmpfs["/dev/shm"] = _tmpfs(SHM_BYTES, SHM_INODES, uid)  # noqa: S108 - in the container; POSIX semaphores live here
    return {
        "ReadonlyRootfs": True,
        "Tmpfs": tmpfs,
        "ShmSize": SHM_BYTES,
        "Binds": [],
        "VolumesFrom": [],
        "Mounts": [_mount(role, blueprint.volumes[role]) for role in sorted(blueprint.volumes)],
    }


def _tmpfs(size_bytes: int, inodes: int, uid: int) -> str:
    size, files = _bounded("tmpfs_bytes", size_bytes), _bounded("tmpfs_inodes", inodes)
    return f"rw,nosuid,nodev,noexec,size={size},nr_inodes={files},mode=0700,uid={uid},gid={uid}"


def _mount(role: MountRole, volume: str) -> dict[str, Any]:
    return {
        "Type": "volume",
        "Source": volume,
        "Target": TARGETS[role],
        "ReadOnly": role is not MountRole.TARGET,
        # Nothing of the image may leak into a volume; an import's target alone takes its owner and mode from the image.
        "VolumeOptions": {"NoCopy": role is not MountRole.TARGET},
    }


@cache
def seccomp_profile() -> str:
    """Our allow-list of system calls, as the engine takes it: compact JSON."""
    text = files("orchestrator.sandbox").joinpath("seccomp.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))
