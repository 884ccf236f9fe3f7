"""Examines this installation: what it needs, what is weak, and what to do about each.

`examine` gathers; every judgement is a pure function of what was gathered. A key's value is never read into a finding.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestrator.domain.model_access import PROVIDER_KEYS
from orchestrator.domain.policies import Policy, ProvenLimit, Runtime
from orchestrator.errors import EngineUnavailable, EvolvariumError, SandboxError
from orchestrator.ports import AuditLog
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageState, ImageStatus, ImageStore
from orchestrator.sandbox.probes import ProbeResult
from orchestrator.sandbox.proofs import GVISOR_LACKS, GVISOR_POLICY, Proofs

API_KEYS = tuple(PROVIDER_KEYS.values())
OLDEST_MAINTAINED_ENGINE = (25, 0)
FIRST_RUNC_WITHOUT_LEAK = (1, 1, 12)  # CVE-2024-21626
GIB = 1 << 30
FREE_TO_WORK_BYTES = 2 * GIB
FREE_TO_START_BYTES = GIB // 4


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warning"
    """Works, with a weakness."""
    FAIL = "error"
    """Something will not work until it is mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing examined."""

    topic: str
    status: Status
    found: str
    remedy: str = ""
    """Never empty unless the status is ok."""


def examine(
    home: Path,
    policy: Policy,
    audit: AuditLog,
    *,
    environment: Mapping[str, str],
    key_files: Sequence[Path] = (),
    host: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """Examine everything; a part that cannot be examined becomes a finding itself.

    Args:
        home: The installation's state directory, which exists.
        policy: Its runtimes are proved, and its accepted limits are only warned about.
        audit: Takes the records of the probes' containers.
        environment: For API keys, by name.
        key_files: Secret files of the installation, where they would be.
        host: The engine's address; None: as `Engine.connect`.
        progress: Told when something takes seconds.
    """
    findings = [*judge_keys(environment, key_files), *judge_space("home", home)]
    try:
        engine = Engine.connect(host)
    except EngineUnavailable as error:
        return [Finding(topic="engine", status=Status.FAIL, found=_found(error), remedy=_remedy(error)), *findings]
    with engine:
        try:
            info = engine.info()
            findings = [*judge_engine(info), *judge_runtimes(info, policy), *findings]
            findings += judge_space("engine's disk", Path(str(info.get("DockerRootDir", "/nonexistent"))))
            images = ImageStore(engine, home)
            states = images.list()
            findings += judge_images(states)
            if all(state.status is ImageStatus.LOCKED for state in states):
                proofs = Proofs(engine, images, home, policy, audit, progress=progress)
                for runtime in _runtimes(info):
                    findings += _examine_runtime(runtime, proofs, policy)
            else:
                found = "not examined: the probes run in our images, which are not ready"
                findings.append(_warn("limits", found, "run `evolvarium images build`, then `evolvarium doctor`"))
        except EvolvariumError as error:
            findings.append(Finding(topic="engine", status=Status.FAIL, found=_found(error), remedy=_remedy(error)))
    return findings


def _examine_runtime(runtime: Runtime, proofs: Proofs, policy: Policy) -> list[Finding]:
    try:
        return list(judge_proofs(runtime, proofs.prove(runtime), policy))
    except SandboxError as error:
        is_used = any(grant.runtime is runtime for grant in policy.purposes.values())
        status = Status.FAIL if is_used else Status.WARN
        remedy = f"mend {runtime.value} or take it out of the engine's daemon.json; its own log says more"
        return [Finding(topic=f"runtime {runtime.value}", status=status, found=str(error), remedy=remedy)]


def judge_engine(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Version and confinement, from the engine's description of itself."""
    version = str(info.get("ServerVersion", "unknown"))
    if _numbers(version)[:2] < OLDEST_MAINTAINED_ENGINE:
        found = f"Docker {version}, a release line that its makers no longer maintain"
        yield _warn(
            "engine", found, "install Docker 25 or newer, or make sure that the distribution maintains this one"
        )
    else:
        yield _ok("engine", f"Docker {version}")
    runc = str((info.get("RuncCommit") or {}).get("ID", ""))
    if re.match(r"v?\d+\.\d+", runc) and _numbers(runc) < FIRST_RUNC_WITHOUT_LEAK:
        found = f"runc {runc}, whose original release leaks a descriptor into containers (CVE-2024-21626)"
        yield _warn(
            "runc", found, "make sure that the distribution's package has the fix, or install runc 1.1.12 or newer"
        )
    options = " ".join(str(option) for option in info.get("SecurityOptions") or ())
    if "name=seccomp" in options:
        yield _ok("seccomp", "the engine filters system calls")
    else:
        found = "the engine cannot filter system calls"
        yield Finding(topic="seccomp", status=Status.FAIL, found=found, remedy="install an engine built with seccomp")
    if "name=apparmor" in options or "name=selinux" in options:
        yield _ok("security module", "a Linux security module confines containers")
    else:
        found = "no Linux security module (AppArmor, SELinux) confines containers"
        yield _warn(
            "security module",
            found,
            f"boot with AppArmor (`apt-get install apparmor`), or use gVisor: `--policy {GVISOR_POLICY}`",
        )
    if "name=rootless" in options:
        found = "the engine is rootless, which often leaves limits without effect"
        yield _warn("rootless", found, "rely on the findings on limits, or use an engine that runs as root")
    yield from _judge_control_groups(info)


def _judge_control_groups(info: Mapping[str, Any]) -> Iterator[Finding]:
    missing = [name for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota") if info.get(name) is False]
    found = (
        f"control groups version {info.get('CgroupVersion', 'unknown')}, driver {info.get('CgroupDriver', 'unknown')}"
    )
    if missing:
        remedy = (
            "mount the control groups for memory, pids and cpu (`apt-get install cgroupfs-mount`), restart the engine"
        )
        found = f"{found}, without {', '.join(missing)}"
        yield Finding(topic="control groups", status=Status.FAIL, found=found, remedy=remedy)
    elif info.get("SwapLimit") is False:
        found = f"{found}, without a limit on swap"
        yield _warn("control groups", found, "boot with `swapaccount=1`, or without swap")
    else:
        yield _ok("control groups", found)


def judge_runtimes(info: Mapping[str, Any], policy: Policy) -> Iterator[Finding]:
    """Which runtimes there are, against those the policy uses."""
    offered = _runtimes(info)
    used = {grant.runtime for grant in policy.purposes.values()}
    for runtime in sorted(used - set(offered)):
        found = f"policy {policy.name!r} uses {runtime.value}, which the engine does not have"
        remedy = f"register {runtime.value} in the engine's daemon.json, or name another runtime in the policy"
        yield Finding(topic="runtimes", status=Status.FAIL, found=found, remedy=remedy)
    if Runtime.RUNSC in offered:
        yield _ok("runtimes", f"{', '.join(runtime.value for runtime in offered)}")
    elif Runtime.RUNSC not in used:
        found = "gVisor (runsc) is not registered, so all containers share the host's kernel"
        remedy = (
            "install runsc, add it to 'runtimes' in /etc/docker/daemon.json, restart the engine, use "
            f"`--policy {GVISOR_POLICY}`"
        )
        yield _warn("runtimes", found, remedy)


def judge_images(states: Sequence[ImageState]) -> Iterator[Finding]:
    """Images against their lock."""
    for state in states:
        if state.status is ImageStatus.LOCKED:
            yield _ok(f"image {state.role}", f"{str(state.locked)[:19]}, as locked")
        else:
            found = f"{state.status.value} ({state.detail})"
            remedy = f"run `evolvarium images build {state.role}`"
            yield Finding(topic=f"image {state.role}", status=Status.FAIL, found=found, remedy=remedy)


def judge_proofs(runtime: Runtime, results: Mapping[ProvenLimit, ProbeResult], policy: Policy) -> Iterator[Finding]:
    """Limits under one runtime; one that is not in force is an error where the policy relies on it."""
    is_used = any(grant.runtime is runtime for grant in policy.purposes.values())
    for limit, result in results.items():
        topic = f"limit {limit.value} ({runtime.value})"
        if result.is_proved:
            yield _ok(topic, f"in force: {result.detail}")
            continue
        is_refused = limit not in policy.accept_unproven
        status = Status.FAIL if is_used and is_refused else Status.WARN
        remedy = _remedy_of_limit(runtime, limit, policy, is_refused=is_refused)
        yield Finding(topic=topic, status=status, found=f"not in force: {result.detail}", remedy=remedy)


def _remedy_of_limit(runtime: Runtime, limit: ProvenLimit, policy: Policy, *, is_refused: bool) -> str:
    if not is_refused:
        return f"policy {policy.name!r} accepts that; take it out of accept_unproven if it must not run then"
    if runtime is Runtime.RUNSC and limit in GVISOR_LACKS:
        return f"under runsc use `--policy {GVISOR_POLICY}`, which accepts that and says why; others are refused"
    return (
        f"use another engine or runtime; under {runtime.value} runs are refused here, unless the policy names "
        f"{limit.value!r} in accept_unproven"
    )


def judge_keys(environment: Mapping[str, str], key_files: Sequence[Path]) -> Iterator[Finding]:
    """Modes of secret files, and which API keys are set; only names are told."""
    for path in key_files:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except OSError:
            yield _ok("keys", f"{path.name} is not there yet; it is made when it is first needed")
            continue
        if mode & 0o077:
            found = f"{path} has mode {mode:04o}, so others on this machine may read it"
            yield Finding(topic="keys", status=Status.FAIL, found=found, remedy=f"run `chmod 600 {path}`")
        else:
            yield _ok("keys", f"{path.name} is its owner's alone")
    present = [name for name in API_KEYS if environment.get(name)]
    yield _ok("keys", f"set: {', '.join(present)}" if present else "no API key is set; the offline engine needs none")


def judge_space(what: str, path: Path) -> Iterator[Finding]:
    """Free space where something is written; nothing for a place that is not on this machine."""
    if not path.is_dir() or not os.access(path, os.X_OK):
        return
    free = shutil.disk_usage(path).free
    found = f"{free / GIB:.1f} GiB are free for the {what} ({path})"
    if free < FREE_TO_START_BYTES:
        yield Finding(
            topic="space", status=Status.FAIL, found=found, remedy="make room; images alone take about 0.5 GiB"
        )
    elif free < FREE_TO_WORK_BYTES:
        yield _warn("space", found, "make room; builds and runs want 2 GiB")
    else:
        yield _ok("space", found)


def _runtimes(info: Mapping[str, Any]) -> list[Runtime]:
    return [runtime for runtime in Runtime if runtime.value in (info.get("Runtimes") or {})]


def _ok(topic: str, found: str) -> Finding:
    return Finding(topic=topic, status=Status.OK, found=found)


def _warn(topic: str, found: str, remedy: str) -> Finding:
    return Finding(topic=topic, status=Status.WARN, found=found, remedy=remedy)


def _found(error: EvolvariumError) -> str:
    return str(error).partition("; ")[0]


def _remedy(error: EvolvariumError) -> str:
    return str(error).partition("; ")[2] or "run `evolvarium doctor` again; if it stays, look at the engine's own log"


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for instance (20, 10, 24)."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else (0,)
