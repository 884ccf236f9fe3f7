"""`policy explain`: what a reader needs first stands first, and exact settings are shown of what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.cli.main import execute

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `policy explain`; gives exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(["policy", "explain", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_purposes_come_first_then_data_then_what_a_model_sees_and_settings_last(call: Call) -> None:
    headings = [
        "Policy web_shop (",
        "Every container\n",
        "candidate: one program under formal evaluation",
        "sql: queries against one database",
        "Which databases can be read",
        "Which language models may be asked",
        "What a model sees",
        "Settings of candidate",
        "Settings of sql",
    ]
    out = call("web_shop", "--settings")[1]
    places = [out.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "HostConfig" not in out[: out.index("Settings of candidate")]
    assert "HostConfig" not in call("web_shop")[1]


def test_what_holds_for_every_container_is_said_once(call: Call) -> None:
    assert call("default")[1].count("It has no network") == 1
    assert call("default", "--purpose", "sql")[1].count("It has no network") == 1


def test_one_purpose_can_be_picked_with_its_settings(call: Call) -> None:
    code, out, _ = call("default", "--purpose", "sql", "--settings")
    assert code == 0
    assert "sql: queries against one database" in out
    assert "Which databases can be read" in out
    assert "Settings of sql" in out
    assert "candidate:" not in out
    assert "Settings of candidate" not in out
    assert "What a model sees" not in out
    _, out, _ = call("default", "--purpose", "candidate")
    assert "What a model sees" in out
    assert "Which databases can be read" not in out
    document: dict[str, Any] = json.loads(call("default", "--purpose", "sql", "--json")[1])
    assert [one["purpose"] for one in document["purposes"]] == ["sql"]


def test_a_purpose_that_is_unknown_or_not_granted_is_wrong_input(call: Call, tmp_path: Any) -> None:
    code, out, err = call("default", "--purpose", "gold")
    assert (code, out) == (2, "")
    assert "'gold' is not one of" in err
    policy = tmp_path / "few.yaml"
    policy.write_text("version: 1\nname: few\npurposes:\n  candidate:\n    image: python\n")
    code, out, err = call(str(policy), "--purpose", "sql")
    assert (code, out) == (2, "")
    assert "policy 'few' does not grant purpose 'sql', so it cannot run; it grants candidate" in err


def test_a_policy_without_rules_on_models_says_that_none_may_be_asked(call: Call) -> None:
    assert (
        "- None: no rule names any; the offline engine and replays of recorded runs need no rule." in call("strict")[1]
    )
    assert "- No other model may be asked; the offline engine" in call("default")[1]
    assert json.loads(call("default", "--json")[1])["models"]
    assert "Which language models" not in call("default", "--purpose", "sql")[1]
