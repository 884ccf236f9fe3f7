"""`doctor --models FILE`: every model of a file is looked for, with a remedy for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.bootstrap.model_files import ModelFile
from orchestrator.bootstrap.model_findings import examine_models
from orchestrator.domain.policies import Policy
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.doctor import Finding, Status
from orchestrator.sandbox.policy_files import load_policy
from tests.in_process import without_engine
from tests.model_servers.base import KEY, Turn
from tests.model_servers.openai import MODEL, OpenAIServer

POLICIES = Path(__file__).parents[3] / "policies"
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "default.yaml")


def found(policy: Policy, models: Mapping[str, Any]) -> dict[str, list[Finding]]:
    file = ModelFile.model_validate({"models": models})
    findings = examine_models(file, policy, CancelToken(), {"CANARY_KEY": KEY})
    for finding in findings:
        assert finding.remedy or finding.status is Status.OK
        assert KEY not in finding.found + finding.remedy
    return {f"model {name}": [one for one in findings if one.topic == f"model {name}"] for name in models}


def entry(url: str, **more: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": MODEL, "base_url": url, "key": {"env": "CANARY_KEY"}, **more}


def test_every_model_is_judged_by_itself(policy: Policy) -> None:
    with OpenAIServer([Turn(text="never asked")]) as server:
        findings = found(
            policy,
            {
                "good": entry(server.url, price={"input": 0, "output": 0}),
                "unpriced": entry(server.url),
                "keyless": {**entry(server.url), "key": {"env": "NO_SUCH_VARIABLE"}},
                "unserved": {**entry(server.url), "model": "test-modle"},
                "nowhere": entry(NOBODY),
                "forbidden": entry("http://10.0.0.1/v1"),
            },
        )
        assert server.requests == []
    statuses = {topic: [one.status for one in of_model] for topic, of_model in findings.items()}
    assert statuses == {
        "model good": [Status.OK],
        "model unpriced": [Status.OK, Status.WARN],
        "model keyless": [Status.FAIL, Status.WARN],
        "model unserved": [Status.FAIL, Status.WARN],
        "model nowhere": [Status.FAIL, Status.WARN],
        "model forbidden": [Status.WARN],
    }
    assert "is there, and may be asked in every role" in findings["model good"][0].found
    assert "price of 'unpriced'" in findings["model unpriced"][1].found
    assert "NO_SUCH_VARIABLE is not set" in findings["model keyless"][0].found
    assert "no model 'test-modle'" in findings["model unserved"][0].found
    assert "policy 'default' lets nobody ask openai/test-model" in findings["model forbidden"][0].found


def test_roles_that_the_policy_allows_are_told(policy: Policy) -> None:
    with OpenAIServer([Turn(text="never asked")]) as server:
        rule = {"models": ["*"], "base_urls": ["*"], "roles": ["critic"]}
        narrow = Policy.model_validate({**policy.model_dump(), "models": [rule]})
        (finding,) = found(narrow, {"good": entry(server.url, price={"input": 0, "output": 0})})["model good"]
    assert finding.found.endswith("may be asked as critic")


def test_doctor_looks_at_a_file_of_models_and_ends_with_3_where_one_is_not_to_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    file = tmp_path / "models.yaml"
    file.write_text(yaml.safe_dump({"models": {"nowhere": {"provider": "openai", "model": "m", "base_url": NOBODY}}}))
    code, out, _ = call("doctor", "--models", str(file), "--json")
    assert code == 3
    findings = {one["topic"]: one for one in json.loads(out)["findings"]}
    assert findings["model nowhere"]["status"] in ("error", "warning")
    assert {"engine", "keys"} <= set(findings)


def test_ensembles_are_listed_with_what_is_wrong_with_their_members(policy: Policy) -> None:
    with OpenAIServer([Turn(text="never asked")]) as server:
        file = ModelFile.model_validate(
            {
                "models": {"good": entry(server.url, price={"input": 0, "output": 0}), "away": entry(NOBODY)},
                "ensembles": {
                    "team": [{"model": "good", "weight": 3}, {"model": "offline"}],
                    "torn": [{"model": "good"}, {"model": "away"}],
                    "typo": [{"model": "god"}],
                },
            }
        )
        findings = examine_models(file, policy, CancelToken(), {"CANARY_KEY": KEY})
    told = {one.topic: one for one in findings if one.topic.startswith("ensemble ")}
    assert list(told) == ["ensemble team", "ensemble torn", "ensemble typo"]
    assert told["ensemble team"].status is Status.OK
    assert told["ensemble team"].found == "for `run --model team`: good (weight 3), offline (weight 1)"
    assert told["ensemble torn"].status is Status.FAIL
    assert "'away' cannot be asked as agent" in told["ensemble torn"].found
    assert "no model 'god'; did you mean 'good'?" in told["ensemble typo"].found
    assert told["ensemble typo"].remedy
