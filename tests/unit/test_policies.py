"""Policies as files, and what `explain` says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.domain.data_access import find_rule
from orchestrator.domain.policies import MIB, Policy, Purpose, Runtime
from orchestrator.errors import PolicyError
from orchestrator.sandbox.explain import explain
from orchestrator.sandbox.policy_files import REFERENCE, load_policy, parse_policy
from orchestrator.sandbox.proofs import GVISOR_LACKS, GVISOR_POLICY

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "policies").glob("*.yaml"))
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
    assert policy.accept_unproven == (GVISOR_LACKS if policy.name == GVISOR_POLICY else frozenset())


def test_there_are_shipped_policies() -> None:
    assert {path.stem for path in SHIPPED} >= {"default", "strict"}


def test_the_strict_policy_grants_no_more_than_the_default_one() -> None:
    default, strict = (load_policy(path) for path in SHIPPED if path.stem in ("default", "strict"))
    for purpose, grant in strict.purposes.items():
        assert grant.mounts <= default.purposes[purpose].mounts
        wide = default.purposes[purpose].limits.model_dump()
        over = {name: value for name, value in grant.limits.model_dump().items() if value > wide[name]}
        assert over == {}, purpose


def test_the_policy_for_gvisor_is_the_default_one_under_runsc_with_more_memory_for_candidates() -> None:
    default, gvisor = (load_policy(path) for path in SHIPPED if path.stem in ("default", GVISOR_POLICY))
    assert (gvisor.data, gvisor.disclosure) == (default.data, default.disclosure)
    for purpose, grant in gvisor.purposes.items():
        same = default.purposes[purpose]
        limits = same.limits
        if purpose is Purpose.CANDIDATE:
            limits = limits.model_copy(update={"memory_bytes": 1024 * MIB})
        assert grant == same.model_copy(update={"runtime": Runtime.RUNSC, "limits": limits})


def test_the_strict_policy_shows_no_more_of_any_database_than_the_default_one() -> None:
    default, strict = (load_policy(path) for path in SHIPPED if path.stem in ("default", "strict"))
    for name in ("any", "shop"):
        wide, narrow = (find_rule(policy.data, name) for policy in (default, strict))
        assert wide is not None
        assert narrow is not None
        for limit in ("max_rows", "max_bytes", "query_seconds"):
            assert getattr(narrow[1], limit) <= getattr(wide[1], limit)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{databases: [hr], allow: [person]}", "data.0.allow is not a field of a policy"),
        ("{deny: [person]}", "data.0.databases is missing; add it"),
        ("{databases: [hr], max_rows: .inf}", "data.0.max_rows is inf"),
        ("{databases: []}", "data.0.databases is []"),
        ("{databases: [hr], deny: ['']}", "data.0.deny.0 is ''"),
    ],
)
def test_a_data_rule_is_refused_with_its_place(rule: str, message: str) -> None:
    assert message in refusal(f"{GOOD}data: [{rule}]\n")


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
    said = refusal(GOOD.replace("name: p\n", ""))
    assert said == "team.yaml: name is missing; add it; a policy stands alone: copy policies/default.yaml and change it"


def test_a_part_of_a_policy_is_told_that_it_is_none() -> None:
    said = refusal("release: {approvals: 0}\n")
    assert [field for field in ("version", "name", "purposes") if f"{field} is missing" in said] == [
        "version",
        "name",
        "purposes",
    ]
    assert said.count("a policy stands alone: copy policies/default.yaml and change it") == 1
    assert "stands alone" not in refusal(GOOD + "data: [{deny: [person]}]\n")


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


@pytest.mark.parametrize("content", [(ROOT / "SECURITY.md").read_bytes(), b"text", b"\x89PNG\r\n", b"a: [", b""])
def test_a_file_that_is_no_yaml_file_is_said_to_be_no_policy_and_where_an_example_is(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "README.md").write_bytes(content)
    with pytest.raises(PolicyError, match=rf"README\.md' is no policy, which is a YAML file \({REFERENCE}"):
        load_policy(tmp_path / "README.md")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (GOOD + "net: host\n", "accept_unproven, data"),
        (GOOD.replace("pids", "pid"), "tmpfs_bytes"),
        (GOOD + "data: [{databases: [a], rows: 1}]\n", "max_rows"),
        (GOOD + "disclosure: {lines: true}\n", "failure_line"),
        (GOOD + "models: [{models: ['*'], urls: ['*']}]\n", "base_urls, models, roles"),
    ],
)
def test_an_unknown_key_is_answered_with_the_keys_beside_it_and_the_page_on_them(text: str, known: str) -> None:
    message = refusal(text)
    assert known in message
    assert message.endswith(f"(see {REFERENCE})")
    assert (ROOT / REFERENCE).is_file()


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
    assert set(explanation.refused) == {"analysis", "evaluator", "import", "sql", "derive", "tool"}


def test_explain_says_what_each_data_rule_keeps_back_and_grants() -> None:
    rules = (
        "data:\n"
        "- {databases: [hr, 'hr_*'], tables: [person], deny: [person.salary], redact: ['*.email', person.born],"
        " max_rows: 10, max_bytes: 2048, query_seconds: 2.5}\n"
        "- {databases: ['*']}\n"
    )
    first, second = explain(parse_policy((GOOD + rules).encode(), "team.yaml")).data
    assert first.words == (
        "Of databases named 'hr' and 'hr_*', the tables and views named 'person' alone may be read.",
        "Kept back is 'person.salary', denied.",
        "Kept back is '*.email' and 'person.born', redacted because it is personal.",
        (
            "Generated SQL and tools, and gold queries as well, see a database that is rebuilt without what is kept"
            " back and without what depends on it."
        ),
        (
            "One result holds at most 10 rows and 2 KiB, what is over it is cut and flagged; one query computes for at"
            " most 1.25 s if it was generated, and a gold query for 2.5 s."
        ),
    )
    assert second.words[0] == "Of every database that no rule before it names, all tables and views may be read."
    assert len(second.words) == 2
    assert (first.number, first.rule.tables, second.number) == (1, ("person",), 2)


def test_without_data_rules_no_database_can_be_read() -> None:
    assert explain(parse_policy(GOOD.encode(), "team.yaml")).data == ()


def test_explain_needs_no_image_and_shows_the_digest_of_the_policy(policy: Policy) -> None:
    assert explain(policy).digest == policy.digest()


def test_explain_says_which_models_may_be_asked_where_and_in_which_role() -> None:
    rules = """\
models:
  - {models: ["openai/*", anthropic/claude-x], base_urls: ["http://127.0.0.1:*"], roles: [critic, agent]}
  - {models: ["*"], base_urls: ["*"]}
"""
    assert explain(parse_policy((GOOD + rules).encode(), "team.yaml")).models == (
        "Models named 'openai/*' and 'anthropic/claude-x' may be asked at 'http://127.0.0.1:*', as agent and critic.",
        "Every model may be asked anywhere, in every role.",
    )
    assert explain(parse_policy(GOOD.encode(), "team.yaml")).models == ()


@pytest.mark.parametrize("pattern", ["claude-opus-5", "claude*", "openai", "openai/", "opnai/*", "Anthropic/*", "?"])
def test_a_rule_that_no_model_can_have_the_name_of_is_refused(pattern: str) -> None:
    rules = f'models:\n  - {{models: ["{pattern}"], base_urls: ["*"]}}\n'
    with pytest.raises(PolicyError, match=r"models.0.models.0 is .*matches no PROVIDER/NAME, so it allows nothing"):
        parse_policy((GOOD + rules).encode(), "team.yaml")


@pytest.mark.parametrize(
    "pattern", ["*", "*claude*", "openai/*", "openai/?", "a*", "??????/gpt-5", "anthropic/claude-x"]
)
def test_a_rule_that_a_model_can_have_the_name_of_is_accepted(pattern: str) -> None:
    rules = f'models:\n  - {{models: ["{pattern}"], base_urls: ["*"]}}\n'
    assert parse_policy((GOOD + rules).encode(), "team.yaml").models[0].models == (pattern,)


def test_shipped_policies_but_strict_have_the_same_rules_on_models() -> None:
    rules = {path.stem: load_policy(path).models for path in (ROOT / "policies").glob("*.yaml")}
    assert rules["strict"] == ()
    assert rules["default"] == rules["gvisor"] == rules["web_shop"] != ()
