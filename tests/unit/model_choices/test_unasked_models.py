"""What stands in for models whose replies are all recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.models import Models, ready_models
from orchestrator.domain.conversation import Conversation, Sampling, UserMessage
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import Policy
from orchestrator.errors import ModelError
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.policy_files import load_policy

AGENT = ModelRole.AGENT
ASKED = Conversation(system="", messages=(UserMessage(text="hello"),))
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(Path(__file__).parents[3] / "policies" / "default.yaml")


def entry(**more: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "m", "base_url": NOBODY, "key": {"env": "NO_SUCH_VARIABLE"}, **more}


def test_a_walk_through_a_recorded_run_needs_no_key_no_server_and_no_rule(policy: Policy) -> None:
    access = ModelAccess.model_validate({"models": {"gone": entry()}})
    opening = ready_models(
        access,
        policy.model_copy(update={"models": ()}),
        [(AGENT, "gone")],
        in_usd=True,
        token=CancelToken(),
        note=lambda _: None,
        context_tokens={"gone": 12_345},
        asks=False,
    )
    with opening as found:
        model = found.find("gone", AGENT)
        assert (model.name, model.context_tokens, model.is_repeatable) == ("gone", 12_345, False)
        assert (model.worst_case(ASKED, (), Sampling(seed=0)).usd or 0) > 10**9
        with pytest.raises(ModelError, match="is not in the journal"):
            model.complete(ASKED, (), Sampling(seed=0))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_stand_in_counts_as_its_model_does(policy: Policy, provider: str) -> None:
    access = ModelAccess.model_validate({"models": {"fast": {**entry(key=None), "provider": provider}}})
    long = Conversation(system="be brief", messages=(UserMessage(text="12345 words " * 50),))
    anything = [ModelRule(models=("*",), base_urls=("*",))]
    with Models(access, anything, token=CancelToken(), note=lambda _: None) as live:
        counted = live.find("fast", AGENT).count_tokens(long, ())
    opening = ready_models(
        access,
        policy,
        [(AGENT, "fast")],
        in_usd=False,
        token=CancelToken(),
        note=lambda _: None,
        asks=False,
    )
    with opening as recorded:
        assert recorded.find("fast", AGENT).count_tokens(long, ()) == counted
