"""A policy grants what it names, within bounds, and cannot even say the rest."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.domain.frames import MAX_BODY_BYTES, PREFIX, Frame, encode
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Grant, Limits, MountRole, Policy, ProvenLimit, Purpose

MINIMAL: dict[str, Any] = {"version": 1, "name": "p", "purposes": {"candidate": {"image": "python"}}}
ALLOWED = {
    Purpose.CANDIDATE: set[MountRole](),
    Purpose.ANALYSIS: {MountRole.PUBLIC},
    Purpose.EVALUATOR: {MountRole.TASK},
    Purpose.IMPORT: {MountRole.TARGET},
    Purpose.SQL: {MountRole.DATABASE},
    Purpose.DERIVE: set[MountRole](),
    Purpose.TOOL: {MountRole.DATABASE},
}


@pytest.mark.parametrize(
    "field",
    [
        "network",
        "network_mode",
        "privileged",
        "cap_add",
        "devices",
        "volumes",
        "binds",
        "environment",
        "user",
        "socket",
    ],
)
@pytest.mark.parametrize("where", ["policy", "grant", "limits", "disclosure"])
def test_what_must_never_be_granted_has_no_field(field: str, where: str) -> None:
    grant: dict[str, Any] = {"image": "python", "limits": {}}
    document: dict[str, Any] = {**MINIMAL, "purposes": {"candidate": grant}, "disclosure": {}}
    places = {"policy": document, "grant": grant, "limits": grant["limits"], "disclosure": document["disclosure"]}
    Policy.model_validate(document)
    places[where][field] = True
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Policy.model_validate(document)


@pytest.mark.parametrize(("purpose", "role"), list(itertools.product(Purpose, MountRole)))
def test_each_purpose_mounts_only_what_it_is_for(purpose: Purpose, role: MountRole) -> None:
    document = {**MINIMAL, "purposes": {purpose: {"image": "python", "mounts": [role]}}}
    if role in ALLOWED[purpose]:
        assert Policy.model_validate(document).purposes[purpose].mounts == {role}
    else:
        with pytest.raises(ValidationError, match=f"purpose '{purpose}' may not mount .*{role}"):
            Policy.model_validate(document)


def test_no_purpose_sees_both_a_candidate_and_the_evaluator() -> None:
    assert all(MountRole.TASK not in ALLOWED[purpose] for purpose in Purpose if purpose is not Purpose.EVALUATOR)


def test_nothing_is_granted_by_default() -> None:
    policy = Policy.model_validate({**MINIMAL, "purposes": {}})
    assert policy.purposes == {}
    assert policy.accept_unproven == frozenset()
    assert Grant(image="python").mounts == frozenset()


@pytest.mark.parametrize("name", list(Limits.model_fields))
@pytest.mark.parametrize("value", [-1, math.inf, math.nan, 1e30, None, "unlimited"])
def test_every_limit_is_finite_and_bounded(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate({name: value})
    assert math.isfinite(getattr(Limits(), name))


@pytest.mark.parametrize(
    "image", ["python:latest", "docker.io/python", "../x", "", "Python", "a b", "x@sha256:0", "-x", "x" * 40]
)
def test_an_image_is_a_role_and_never_a_reference(image: str) -> None:
    with pytest.raises(ValidationError, match="image"):
        Grant(image=image)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"version": "1"}, {"name": "No Spaces"}, {"purposes": {"root": {}}}]
)
def test_a_policy_of_another_form_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(MINIMAL | change)


def test_a_policy_cannot_be_changed_after_it_was_read() -> None:
    policy = Policy.model_validate(MINIMAL)
    with pytest.raises(ValidationError, match="frozen"):
        policy.name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        policy.purposes[Purpose.CANDIDATE].limits.pids = 4000  # type: ignore[misc]


@given(st.permutations(list(ProvenLimit)), st.permutations(["candidate", "analysis", "evaluator"]))
def test_the_digest_depends_on_what_is_granted_and_not_on_how_it_is_written(
    accepted: list[ProvenLimit], purposes: list[str]
) -> None:
    grants = {
        "candidate": {"image": "python"},
        "analysis": {"image": "analysis", "mounts": ["public"]},
        "evaluator": {"image": "evaluator", "mounts": ["task"]},
    }
    ordered = {**MINIMAL, "purposes": grants, "accept_unproven": sorted(ProvenLimit)}
    shuffled = {**MINIMAL, "purposes": {name: grants[name] for name in purposes}, "accept_unproven": accepted}
    digest = Policy.model_validate(ordered).digest()
    assert Policy.model_validate(shuffled).digest() == digest
    fewer = {**shuffled, "accept_unproven": accepted[1:]}
    assert Policy.model_validate(fewer).digest() != digest


def test_every_limit_is_in_the_digest() -> None:
    digests = {Policy.model_validate(MINIMAL).digest()}
    for name in Limits.model_fields:
        grant = {"image": "python", "limits": {name: getattr(Limits(), name) / 2}}
        digests.add(Policy.model_validate({**MINIMAL, "purposes": {"candidate": grant}}).digest())
    assert len(digests) == 1 + len(Limits.model_fields)


@pytest.mark.parametrize("cpus", [0, -1, 1e-10, 0.0099, math.inf, math.nan])
def test_a_share_of_a_processor_that_the_kernel_cannot_enforce_is_refused(cpus: float) -> None:
    with pytest.raises(ValidationError, match="cpus"):
        Limits(cpus=cpus)


candidates = st.builds(
    Limits,
    wall_seconds=st.floats(1, 3600),
    frame_head_bytes=st.integers(1024, 1 << 20),
    frame_body_bytes=st.integers(0, 64 << 20),
    channel_bytes=st.integers(1024, 4 << 30),
)


@given(candidates, candidates)
def test_whatever_a_candidate_may_send_fits_through_its_evaluators_limits(candidate: Limits, evaluator: Limits) -> None:
    lowered = Limits.model_validate(candidate.under_evaluator(evaluator).model_dump())
    for name in Limits.model_fields:
        assert getattr(lowered, name) <= getattr(candidate, name)
    assert lowered.wall_seconds <= evaluator.wall_seconds
    inner = PREFIX.size + lowered.frame_head_bytes + lowered.frame_body_bytes
    assert inner <= max(evaluator.frame_body_bytes, PREFIX.size + lowered.frame_head_bytes)
    assert inner <= MAX_BODY_BYTES
    shortest = len(encode(Frame({"type": ""})))
    wrapped = len(encode(Frame({"type": "from-candidate"}, b"x" * shortest)))
    if evaluator.channel_bytes >= 4096:
        assert lowered.channel_bytes * wrapped / shortest < evaluator.channel_bytes


def test_rules_on_models_are_in_the_digest_and_a_policy_without_any_has_the_digest_it_always_had() -> None:
    rule = {"models": ["openai/*"], "base_urls": ["*"]}

    def digest(*rules: dict[str, Any]) -> str:
        return Policy.model_validate({**MINIMAL, "models": list(rules)}).digest()

    document = Policy.model_validate(MINIMAL).model_dump(mode="json")
    del document["models"]
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    before = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    assert digest() == Policy.model_validate(MINIMAL).digest() == before
    assert digest({**rule, "roles": ["agent", "critic"]}) == digest({**rule, "roles": ["critic", "agent"]})
    assert digest(rule) == digest({**rule, "roles": [role.value for role in ModelRole]})
    different = {digest(), digest(rule), digest({**rule, "roles": ["agent"]}), digest({**rule, "models": ["*"]})}
    assert len(different | {digest({**rule, "base_urls": ["http://127.0.0.1:*"]})}) == 5


@pytest.mark.parametrize(
    "rule", [{"models": ["*"]}, {"models": [], "base_urls": ["*"]}, {"models": ["*"], "base_urls": ["*"], "roles": []}]
)
def test_a_rule_on_models_names_models_servers_and_roles(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({**MINIMAL, "models": [rule]})
