"""The doctor's judgements, from what engines say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Grant, Policy, ProvenLimit, Purpose, Runtime
from orchestrator.errors import PrerequisiteError
from orchestrator.ports import SessionRequest
from orchestrator.sandbox import probe_scripts, probes
from orchestrator.sandbox.doctor import (
    Finding,
    Status,
    judge_engine,
    judge_images,
    judge_keys,
    judge_proofs,
    judge_runtimes,
)
from orchestrator.sandbox.images import ImageState, ImageStatus
from orchestrator.sandbox.probes import ProbeResult, Seen
from orchestrator.sandbox.proofs import GVISOR_LACKS, configuration_digest, refusal
from orchestrator.sandbox.settings import granted_limits

SOUND: Mapping[str, Any] = {
    "ServerVersion": "28.2.2",
    "RuncCommit": {"ID": "v1.2.5-0-g59923ef"},
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin"],
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "Runtimes": {"runc": {"path": "runc"}, "runsc": {"path": "/usr/bin/runsc"}},
}
POLICY = Policy(version=1, name="p", purposes={Purpose.ANALYSIS: Grant(image="analysis")})


def _bad(findings: list[Finding]) -> dict[str, Status]:
    assert all(finding.remedy for finding in findings if finding.status is not Status.OK)
    return {finding.topic: finding.status for finding in findings if finding.status is not Status.OK}


def test_a_sound_engine_has_nothing_to_mend() -> None:
    assert _bad([*judge_engine(SOUND), *judge_runtimes(SOUND, POLICY)]) == {}


@pytest.mark.parametrize(
    ("facts", "topic", "status"),
    [
        ({"ServerVersion": "20.10.24+dfsg1"}, "engine", Status.WARN),
        ({"RuncCommit": {"ID": "1.1.5+ds1-1+deb12u1"}}, "runc", Status.WARN),
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, "security module", Status.WARN),
        ({"SecurityOptions": ["name=apparmor"]}, "seccomp", Status.FAIL),
        ({"SecurityOptions": [*SOUND["SecurityOptions"], "name=rootless"]}, "rootless", Status.WARN),
        ({"MemoryLimit": False}, "control groups", Status.FAIL),
        ({"SwapLimit": False}, "control groups", Status.WARN),
    ],
)
def test_a_known_weakness_is_named_with_its_remedy(facts: dict[str, Any], topic: str, status: Status) -> None:
    assert _bad(list(judge_engine({**SOUND, **facts}))) == {topic: status}


def test_a_policy_on_a_runtime_that_is_not_there_is_an_error() -> None:
    grant = Grant(image="analysis", runtime=Runtime.RUNSC)
    policy = Policy(version=1, name="p", purposes={Purpose.ANALYSIS: grant})
    assert _bad(list(judge_runtimes({"Runtimes": {"runc": {}}}, policy))) == {"runtimes": Status.FAIL}


def test_a_limit_without_effect_is_an_error_unless_the_policy_accepts_it() -> None:
    results = {ProvenLimit.MEMORY: ProbeResult(is_proved=False, detail="x")}
    relaxed = POLICY.model_copy(update={"accept_unproven": frozenset({ProvenLimit.MEMORY})})
    assert set(_bad(list(judge_proofs(Runtime.RUNC, results, POLICY))).values()) == {Status.FAIL}
    assert set(_bad(list(judge_proofs(Runtime.RUNC, results, relaxed))).values()) == {Status.WARN}
    assert set(_bad(list(judge_proofs(Runtime.RUNSC, results, POLICY))).values()) == {Status.WARN}


def test_the_remedy_for_what_gvisor_does_not_keep_is_the_policy_made_for_it_and_not_to_do_without() -> None:
    results = {limit: ProbeResult(is_proved=False, detail="x") for limit in GVISOR_LACKS}
    (finding,) = judge_proofs(Runtime.RUNSC, results, POLICY)
    (missing,) = judge_runtimes({"Runtimes": {"runc": {}}}, POLICY)
    (no_module,) = (one for one in judge_engine({**SOUND, "SecurityOptions": ["name=seccomp"]}) if one.remedy)
    assert all("`--policy gvisor`" in one.remedy for one in (finding, missing, no_module))
    assert "do not run" not in finding.remedy
    assert "--runtime" not in missing.remedy


def test_a_limit_that_the_policy_accepts_is_said_to_be_accepted() -> None:
    relaxed = POLICY.model_copy(update={"accept_unproven": frozenset({ProvenLimit.TMPFS})})
    (finding,) = judge_proofs(Runtime.RUNSC, {ProvenLimit.TMPFS: ProbeResult(is_proved=False, detail="x")}, relaxed)
    assert "policy 'p' accepts that" in finding.remedy


def test_a_refusal_names_every_limit_at_once_and_the_policy_for_gvisor_where_it_helps() -> None:
    lacking = {ProvenLimit.PIDS: "saw this", ProvenLimit.TMPFS: "saw that"}
    for runtime in Runtime:
        message = refusal(POLICY, runtime, lacking)
        assert "pids (saw this), tmpfs (saw that)" in message
        assert "accept_unproven: [pids, tmpfs]" in message
        assert "--policy gvisor" not in message
    only_tmpfs = {ProvenLimit.TMPFS: "saw that"}
    assert "`--policy gvisor`" in refusal(POLICY, Runtime.RUNSC, only_tmpfs)
    assert "--policy gvisor" not in refusal(POLICY, Runtime.RUNC, only_tmpfs)
    accepting = POLICY.model_copy(update={"accept_unproven": frozenset({ProvenLimit.TMPFS})})
    assert "accept_unproven: [pids, tmpfs]" in refusal(accepting, Runtime.RUNSC, {ProvenLimit.PIDS: "saw this"})


@pytest.mark.parametrize("status", [status for status in ImageStatus if status is not ImageStatus.LOCKED])
def test_an_image_that_differs_from_its_lock_is_an_error(status: ImageStatus) -> None:
    state = ImageState(role="base", status=status, locked=None, found=None, detail="x")
    assert _bad(list(judge_images([state]))) == {"image base": Status.FAIL}


def test_a_key_that_others_may_read_is_an_error_and_no_value_is_told(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("the-secret")
    key.chmod(0o640)
    findings = list(judge_keys({"OPENAI_API_KEY": "sk-secret"}, [key]))
    assert _bad(findings) == {"keys": Status.FAIL}
    assert "secret" not in str(findings)
    assert "OPENAI_API_KEY" in str(findings)
    key.chmod(0o600)
    assert _bad(list(judge_keys({}, [key, tmp_path / "absent"]))) == {}


@pytest.mark.parametrize(
    "facts", [{"ID": "other"}, {"ServerVersion": "29"}, {"KernelVersion": "7"}, {"Runtimes": {"runc": {"path": "x"}}}]
)
def test_a_proof_holds_for_one_configuration_only(facts: dict[str, Any]) -> None:
    assert configuration_digest(SOUND, Runtime.RUNC) != configuration_digest({**SOUND, **facts}, Runtime.RUNC)


def test_a_proof_under_a_runtime_that_is_not_there_is_refused() -> None:
    with pytest.raises(PrerequisiteError, match=r"no runtime 'runsc'"):
        configuration_digest({"Runtimes": {"runc": {}}}, Runtime.RUNSC)


def _seen(
    printed: str,
    ending: Ending = Ending.OK,
    *,
    cpu: float | None = 1.0,
    wall: float = 3.0,
    left: int = 0,
    detail: str = "",
) -> Seen:
    outcome = Outcome(
        ending=ending,
        exit_code=0,
        wall_seconds=wall,
        cpu_seconds=cpu,
        memory_peak_bytes=None,
        output=b"",
        output_truncated=False,
        detail=detail,
    )
    return Seen(printed=printed, outcome=outcome, left=left)


@pytest.mark.parametrize(
    ("limit", "seen", "is_proved"),
    [
        (ProvenLimit.MEMORY, _seen("240", Ending.MEMORY), True),
        (ProvenLimit.MEMORY, _seen("768"), False),
        (ProvenLimit.PIDS, _seen("", Ending.PROCESSES), True),
        (ProvenLimit.PIDS, _seen("29"), True),
        (ProvenLimit.PIDS, _seen("112", Ending.PROCESSES), False),
        (ProvenLimit.PIDS, _seen("", Ending.MEMORY), False),
        (ProvenLimit.CPU, _seen("8", cpu=1.7), True),
        (ProvenLimit.CPU, _seen("8", cpu=5.9), False),
        (ProvenLimit.CPU, _seen("8", cpu=None), False),
        (ProvenLimit.CPU, _seen("", Ending.ERROR), False),
        (ProvenLimit.NETWORK, _seen("end"), True),
        (ProvenLimit.NETWORK, _seen("a route for TCP\nend"), False),
        (ProvenLimit.NETWORK, _seen("", Ending.ERROR), False),
        (ProvenLimit.TMPFS, _seen(f"{probe_scripts.LIMITS.tmpfs_bytes} 120"), True),
        (ProvenLimit.TMPFS, _seen(f"{probe_scripts.LIMITS.tmpfs_bytes * 4} 120"), False),
        (ProvenLimit.TMPFS, _seen(f"{probe_scripts.LIMITS.tmpfs_bytes} 512"), False),
        (ProvenLimit.TMPFS, _seen("", Ending.MEMORY), False),
        (ProvenLimit.READ_ONLY, _seen("the file /etc/passwd\nend"), False),
        (ProvenLimit.KILL, _seen("", Ending.TIMEOUT, wall=2.2), True),
        (ProvenLimit.KILL, _seen("", Ending.TIMEOUT, wall=2.2, left=1), False),
        (ProvenLimit.KILL, _seen("", Ending.TIMEOUT, wall=30), False),
        (ProvenLimit.KILL, _seen(""), False),
    ],
)
def test_a_limit_is_proved_by_what_was_seen_and_by_nothing_less(
    limit: ProvenLimit, seen: Seen, is_proved: bool
) -> None:
    assert probes.PROBES[limit].judge(seen).is_proved is is_proved


@pytest.mark.parametrize("limit", [limit for limit in ProvenLimit if limit is not ProvenLimit.MEMORY])
def test_a_probe_that_ended_too_early_says_so_and_why_and_invents_no_figure(limit: ProvenLimit) -> None:
    why = "wanted more than 256 MiB of memory (memory_bytes)"
    found = probes.PROBES[limit].judge(_seen("", Ending.MEMORY, detail=why))
    assert not found.is_proved
    assert "?" not in found.detail
    assert found.detail.endswith(f"(ending: memory, {why})")


def test_findings_give_sizes_in_one_unit() -> None:
    over = f"{4 * probe_scripts.LIMITS.tmpfs_bytes} 512"
    assert "32.0 MiB and 512 files under limits of 8 MiB and 128 files" in (
        probes.PROBES[ProvenLimit.TMPFS].judge(_seen(over)).detail
    )


def test_the_policy_of_the_probes_grants_what_each_of_them_asks_for() -> None:
    granted = probes.probe_policy(Runtime.RUNC).purposes[Purpose.ANALYSIS]
    for probe in probes.PROBES.values():
        request = SessionRequest(purpose=Purpose.ANALYSIS, run_id="r", attempt_id="a", limits=probe.limits)
        assert granted_limits(granted, request) == probe.limits
