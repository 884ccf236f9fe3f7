"""Policies as files, and what `explain` says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.domain.policies import Policy, Purpose
from orchestrator.errors import PolicyError
from orchestrator.sandbox.explain import explain
from orchestrator.sandbox.policy_files import load_policy, parse_policy

SHIPPED = sorted((Path(__file__).parents[2] / "policies").glob("*.yaml"))
GOOD = "version: 1\nname: p\npurposes: {candidate: {image: python, limits: {pids: 8}}}\n"


def refusal(text: str | bytes) -> str:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text if isinstance(text, bytes) else text.encode(), "team.yaml")
    return str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_policy_loads_and_is_named_like_its_file(path: Path) -> None:
    policy = load_policy(path)
    assert policy.name == path.stem
    assert set(policy.purposes) == set(Purpose)
    assert policy.accept_unproven == frozenset()


def test_there_are_shipped_policies() -> None:
    assert {path.stem for path in SHIPPED} >= {"default", "strict"}


def test_the_strict_policy_grants_no_more_than_the_default_one() -> None:
    default, strict = (load_policy(path) for path in SHIPPED if path.stem in ("default", "strict"))
    for purpose, grant in strict.purposes.items():
        assert grant.mounts <= default.purposes[purpose].mounts
        wide = default.purposes[purpose].limits.model_dump()
        over = {name: value for name, value in grant.limits.model_dump().items() if value > wide[name]}
        assert over == {}, purpose


@pytest.mark.parametrize(
    "field", ["network: host", "privileged: true", "cap_add: [SYS_ADMIN]", "volumes: [/etc]", "env: {A: b}", "user: 0"]
)
def test_e2_what_must_never_be_granted_has_no_field(field: str) -> None:
    message = refusal(GOOD.replace("image: python,", f"image: python, {field},"))
    assert "team.yaml" in message
    assert f"purposes.candidate.{field.split(':', maxsplit=1)[0]} is not a field of a policy" in message


def test_a_refusal_names_file_field_value_and_way_out() -> None:
    message = refusal(GOOD.replace("pids: 8", "pids: 99999"))
    assert message == "team.yaml: purposes.candidate.limits.pids is 99999: input should be less than or equal to 4096"


def test_a_refusal_lists_every_fault() -> None:
    message = refusal(GOOD.replace("pids: 8", "pids: 1, cpus: 0"))
    assert "limits.pids is 1" in message
    assert "limits.cpus is 0" in message


@pytest.mark.parametrize("value", [".inf", ".nan", "-1", "null", "'many'"])
def test_a_limit_is_a_finite_number(value: str) -> None:
    assert "limits.wall_seconds is" in refusal(GOOD.replace("pids: 8", f"wall_seconds: {value}"))


def test_a_key_that_occurs_twice_is_refused_with_its_line() -> None:
    assert refusal(GOOD + "name: q\n") == "team.yaml: line 4, column 1: key 'name' occurs twice; keep one of them"


def test_a_key_that_occurs_twice_deep_inside_is_refused() -> None:
    assert "key 'pids' occurs twice" in refusal(GOOD.replace("pids: 8", "pids: 8, pids: 4096"))


def test_aliases_and_merges_are_refused() -> None:
    assert "aliases" in refusal("a: &a {version: 1}\nb: *a\n")
    assert "aliases" in refusal("a: &a {version: 1}\n<<: *a\n")


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system [id]", "a: !x 1", "a: [", b"\xff\xfe", "\t- x"])
def test_what_is_not_plain_yaml_is_refused(text: str | bytes) -> None:
    assert refusal(text).startswith("team.yaml: ")


@pytest.mark.parametrize("text", ["", "- a", "text", "3"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    assert "a policy is a mapping" in refusal(text)


def test_a_missing_field_is_named() -> None:
    assert "name is missing; add it" in refusal(GOOD.replace("name: p\n", ""))


def test_a_mount_must_fit_its_purpose() -> None:
    assert "'candidate' may not mount ['task']" in refusal(GOOD.replace("limits", "mounts: [task], limits"))


def test_a_file_that_cannot_be_read_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"missing\.yaml"):
        load_policy(tmp_path / "missing.yaml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"#" * (1 << 20))
    with pytest.raises(PolicyError, match="over 262144 bytes"):
        load_policy(path)


@pytest.fixture
def policy() -> Policy:
    return load_policy(next(path for path in SHIPPED if path.stem == "default"))


def test_explain_shows_the_exact_settings_of_every_purpose(policy: Policy) -> None:
    for explanation in explain(policy).purposes:
        limits = policy.purposes[Purpose(explanation.purpose)].limits
        host = explanation.settings["HostConfig"]
        assert host["NetworkMode"] == "none"
        assert host["Memory"] == limits.memory_bytes
        assert host["SecurityOpt"][1]["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"


def test_explain_names_every_limit_in_plain_words(policy: Policy) -> None:
    words = " ".join(next(e for e in explain(policy).purposes if e.purpose == "candidate").words)
    limits = policy.purposes[Purpose.CANDIDATE].limits
    assert f"{limits.wall_seconds:g} s" in words
    assert f"{limits.memory_bytes >> 20} MiB" in words
    assert f"{limits.pids} processes" in words
    assert "no network" in words


def test_explain_lists_purposes_that_cannot_run() -> None:
    explanation = explain(parse_policy(GOOD.encode(), "team.yaml"))
    assert set(explanation.refused) == {"analysis", "evaluator", "import"}


def test_explain_needs_no_image_and_shows_the_digest_of_the_policy(policy: Policy) -> None:
    assert explain(policy).digest == policy.digest()
