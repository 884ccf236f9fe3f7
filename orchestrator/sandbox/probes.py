"""Probes: scripts that try to exceed one limit each, and what must be seen from outside for the limit to be in force.

An engine may accept a limit and not enforce it, and say nothing (rootless engines, gVisor with `--ignore-cgroups`). So
each limit is attacked through the `Sandbox` port, exactly as a candidate could, with the container's own settings.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import MIB, Grant, Limits, Policy, ProvenLimit, Purpose, Runtime
from orchestrator.ports import Sandbox, SessionRequest
from orchestrator.sandbox.probe_scripts import (
    CPU_SCRIPT,
    CROWDED,
    KILL_SCRIPT,
    LIMITS,
    MEMORY_SCRIPT,
    NETWORK_SCRIPT,
    PIDS_SCRIPT,
    READ_ONLY_SCRIPT,
    ROOMY,
    TMPFS_SCRIPT,
)

KILL_WALL_SECONDS = 2.0
KILL_GRACE_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one probe found."""

    is_proved: bool
    detail: str
    """What was seen, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came out of a probe's container."""

    printed: str
    outcome: Outcome
    left: int
    """How many containers of the probe still exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A script, and the judgement of what it did."""

    script: str
    judge: Callable[[Seen], ProbeResult]
    limits: Limits = LIMITS


def probe_policy(runtime: Runtime) -> Policy:
    """The policy under which probes run."""
    most = {name: max(getattr(limits, name) for limits in (ROOMY, CROWDED)) for name in Limits.model_fields}
    grant = Grant(image="analysis", runtime=runtime, limits=Limits.model_validate(most))
    return Policy(version=1, name="limit-probes", purposes={Purpose.ANALYSIS: grant})


def run_probe(sandbox: Sandbox, limit: ProvenLimit) -> ProbeResult:
    """Attack one limit.

    Raises:
        PrerequisiteError: Engine or image missing.
        SandboxError: The engine failed, which proves nothing.
    """
    probe = PROBES[limit]
    run_id = f"limit-probes-{secrets.token_hex(4)}"  # of its own, so that it counts no other process's containers
    table, body = pack_blobs({"probe.py": probe.script.encode()})
    request = SessionRequest(
        purpose=Purpose.ANALYSIS, run_id=run_id, attempt_id=f"probe-{limit.value}", limits=probe.limits
    )
    printed = b""
    claim = Ending.NO_RESULT
    with sandbox.session(request) as session:
        session.send(Frame({"type": "start", "script": "probe.py", "blobs": table}, body))
        while (frame := session.receive()) is not None:
            if frame.type == "output":
                printed += frame.body
            elif frame.type == "done":
                claim = Ending.OK if frame.head.get("exit_code") == 0 else Ending.ERROR
                break
        outcome = session.finish(claim)
    text = printed.decode("utf-8", "replace").strip()
    return probe.judge(Seen(printed=text, outcome=outcome, left=sandbox.live_containers(run_id)))


def judge_memory(seen: Seen) -> ProbeResult:
    """The kernel must have killed it; a script that got everything it asked for says so."""
    limit = LIMITS.memory_bytes // MIB
    if seen.outcome.ending is Ending.MEMORY:
        return ProbeResult(is_proved=True, detail=f"killed when it went over {limit} MiB")
    taken = _number(seen)
    if taken is None:
        return _not("it ended before it had taken any memory", seen)
    return _not(f"it took {taken} MiB under a limit of {limit} MiB", seen)


def judge_pids(seen: Seen) -> ProbeResult:
    """No more processes than the limit may have come into being."""
    started, limit = _number(seen), CROWDED.pids
    if started is not None and started < limit:
        return ProbeResult(is_proved=True, detail=f"refused after {started} processes under a limit of {limit}")
    if started is None and seen.outcome.ending is Ending.PROCESSES:
        return ProbeResult(is_proved=True, detail=f"ended at the limit of {limit} processes")
    if started is None:
        return _not(f"it ended before it had met the limit of {limit} processes", seen)
    return _not(f"it started {started} processes under a limit of {limit}", seen)


def judge_cpu(seen: Seen) -> ProbeResult:
    """Many busy processes together may use what the quota gives, measured outside."""
    used, wall = seen.outcome.cpu_seconds, seen.outcome.wall_seconds
    allowed = 1.3 * LIMITS.cpus * wall + 0.5  # the start-up of the container runs ahead of the quota
    if used is None:
        return _not("its CPU time is not accounted for", seen)
    if seen.outcome.ending is Ending.OK and _number(seen) is not None and used <= allowed:
        return ProbeResult(is_proved=True, detail=f"used {used:.1f} s in {wall:.1f} s under {LIMITS.cpus:g} CPUs")
    return _not(f"it used {used:.1f} s of CPU in {wall:.1f} s under {LIMITS.cpus:g} CPUs", seen)


def judge_listing(what: str) -> Callable[[Seen], ProbeResult]:
    """For scripts that print each thing they could do, and `end`."""

    def judge(seen: Seen) -> ProbeResult:
        *found, last = seen.printed.splitlines() or [""]
        if seen.outcome.ending is Ending.OK and last == "end" and not found:
            return ProbeResult(is_proved=True, detail=f"no {what}")
        return _not(f"{what}: {', '.join(found[:5])}" if found else f"{what}: unknown", seen)

    return judge


def judge_tmpfs(seen: Seen) -> ProbeResult:
    """All writable places together must have refused before the limits, in bytes and in files."""
    try:
        written, files = (int(part) for part in _last(seen).split())
    except ValueError:
        return _not("it ended before it had filled the writable places", seen)
    roof = LIMITS.tmpfs_bytes + 2 * MIB, 2 * LIMITS.tmpfs_inodes  # and /dev/shm with a small limit of its own
    if written <= roof[0] and files <= roof[1]:
        return ProbeResult(is_proved=True, detail=f"full after {written / MIB:.1f} MiB and after {files} files")
    limits = f"{LIMITS.tmpfs_bytes // MIB} MiB and {LIMITS.tmpfs_inodes} files"
    return _not(f"it wrote {written / MIB:.1f} MiB and {files} files under limits of {limits}", seen)


def judge_kill(seen: Seen) -> ProbeResult:
    """Processes that refuse to end must be gone soon after the deadline."""
    wall = seen.outcome.wall_seconds
    in_time = wall <= KILL_WALL_SECONDS + KILL_GRACE_SECONDS
    if seen.outcome.ending is Ending.TIMEOUT and in_time and seen.left == 0:
        return ProbeResult(
            is_proved=True, detail=f"gone {wall:.1f} s after its start, deadline {KILL_WALL_SECONDS:g} s"
        )
    return _not(f"{seen.left} containers are left, {wall:.1f} s after the start", seen)


def _not(what: str, seen: Seen) -> ProbeResult:
    why = f"{seen.outcome.ending.value}, {seen.outcome.detail}".removesuffix(", ")
    return ProbeResult(is_proved=False, detail=f"{what} (ending: {why})")


def _last(seen: Seen) -> str:
    return (seen.printed.splitlines() or [""])[-1]


def _number(seen: Seen) -> int | None:
    return int(_last(seen)) if _last(seen).isdecimal() else None


PROBES: dict[ProvenLimit, Probe] = {
    ProvenLimit.MEMORY: Probe(script=MEMORY_SCRIPT, judge=judge_memory),
    ProvenLimit.PIDS: Probe(script=PIDS_SCRIPT, judge=judge_pids, limits=CROWDED),
    ProvenLimit.CPU: Probe(script=CPU_SCRIPT, judge=judge_cpu, limits=ROOMY),
    ProvenLimit.NETWORK: Probe(script=NETWORK_SCRIPT, judge=judge_listing("way out")),
    ProvenLimit.TMPFS: Probe(script=TMPFS_SCRIPT, judge=judge_tmpfs),
    ProvenLimit.READ_ONLY: Probe(script=READ_ONLY_SCRIPT, judge=judge_listing("writable place")),
    ProvenLimit.KILL: Probe(
        script=KILL_SCRIPT,
        judge=judge_kill,
        limits=ROOMY.model_copy(update={"wall_seconds": KILL_WALL_SECONDS}),
    ),
}
