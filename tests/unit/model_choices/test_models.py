"""Models by name and role: what they mean, what the policy says, and what is missing; the servers are real."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.model_files import ModelFile
from orchestrator.bootstrap.models import Models, Wanted
from orchestrator.domain.conversation import Conversation, Sampling, UserMessage
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import Policy
from orchestrator.errors import InputError, PolicyError, PrerequisiteError
from orchestrator.llm.ensemble import EnsembleModel
from orchestrator.llm.offline import OfflineModel
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.policy_files import load_policy
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.base import KEY, Turn
from tests.model_servers.openai import MODEL, OpenAIServer

ROOT = Path(__file__).parents[3]
ANYTHING = (ModelRule(models=("*",), base_urls=("*",)),)
ASKED = Conversation(system="", messages=(UserMessage(text="hello"),))
NOBODY = "http://127.0.0.1:9/v1"
"""Port 9 is reserved for a service that nobody runs."""
KEYS = {"CANARY_KEY": KEY}
AGENT, CRITIC = ModelRole.AGENT, ModelRole.CRITIC


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer([Turn(text="hello")]) as running:
        yield running


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(ROOT / "policies" / "default.yaml")


def models(
    access: Mapping[str, Any] | None = None,
    rules: tuple[ModelRule, ...] = ANYTHING,
    environment: Mapping[str, str] = KEYS,
    **more: Any,
) -> Models:
    known = ModelAccess.model_validate(access or {})
    return Models(known, rules, token=CancelToken(), note=lambda _: None, environment=environment, **more)


def entry(url: str, **more: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": MODEL, "base_url": url, "key": {"env": "CANARY_KEY"}, **more}


def ready(found: Models, *wanted: tuple[ModelRole, str], in_usd: bool = False) -> None:
    found.require_ready(wanted, in_usd=in_usd)


def test_the_offline_engine_needs_no_rule_and_no_server() -> None:
    with models(rules=(), environment={}) as found:
        ready(found, (AGENT, "offline"), (CRITIC, "offline/effort-0.5"), in_usd=True)
        assert isinstance(found.find("offline", AGENT), OfflineModel)
        assert found.find("offline/effort-0.50", CRITIC).name == "offline/effort-0.5"


def test_a_model_by_its_provider_answers_and_is_opened_once(server: OpenAIServer) -> None:
    name = f"openai/{MODEL}"
    with models({"base_url": server.url, "key_env": "CANARY_KEY"}) as found:
        ready(found, (AGENT, name))
        model = found.find(name, AGENT)
        assert found.find(name, CRITIC) is model
        assert model.name == name
        assert model.complete(ASKED, (), Sampling(seed=1)).message.text == "hello"


def test_a_name_of_ones_own_is_the_name_in_records(server: OpenAIServer) -> None:
    with models({"models": {"fast": entry(server.url)}}) as found:
        ready(found, (AGENT, "fast"))
        assert found.find("fast", AGENT).name == "fast"


def test_an_entry_under_a_providers_name_says_how_that_model_is_reached(server: OpenAIServer) -> None:
    with models({"models": {"openai/gone": entry(server.url)}}) as found:
        ready(found, (AGENT, "openai/gone"))
        assert found.find("openai/gone", AGENT).complete(ASKED, (), Sampling(seed=1)).message.text == "hello"
    with pytest.raises(ValueError, match="with the provider that its entry names"):
        ModelAccess.model_validate({"models": {"anthropic/gone": entry(server.url)}})


def test_an_ensemble_is_for_the_agent_alone_and_of_models_alone(server: OpenAIServer) -> None:
    team: dict[str, Any] = {
        "models": {"fast": entry(server.url)},
        "ensembles": {"team": [{"model": "fast"}, {"model": "offline"}]},
    }
    with models(team) as found:
        ready(found, (AGENT, "team"))
        assert isinstance(found.find("team", AGENT), EnsembleModel)
        with pytest.raises(InputError, match="'team' is an ensemble, and only the model that improves programs"):
            found.find("team", CRITIC)
    nested = {**team, "ensembles": {**team["ensembles"], "teams": [{"model": "team"}]}}
    with (
        models(nested) as found,
        pytest.raises(
            InputError,
            match=r"ensemble 'teams': 'team' is an ensemble, and an ensemble's members are models; name a model",
        ),
    ):
        found.find("teams", AGENT)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ofline", "'offline'"),
        ("fasst", "'fast'"),
        ("Anthropic/claude-x", "'anthropic/claude-x'"),
        ("claude-x", "'anthropic/claude-x'"),
        ("gpt-x", "'openai/gpt-x'"),
    ],
)
def test_a_misspelt_name_is_answered_with_a_close_one(name: str, meant: str) -> None:
    with models({"models": {"fast": entry(NOBODY)}}) as found, pytest.raises(InputError) as error:
        found.find(name, AGENT)
    assert f"did you mean {meant}?" in str(error.value)


@pytest.mark.parametrize("name", ["", "offline/effort-0", "openai/", "openai/ x", "zebra", "anthropic/" + 200 * "x"])
def test_what_is_no_name_is_refused_with_what_there_is(name: str) -> None:
    with models() as found, pytest.raises(InputError, match=r"there are 'offline'.*'anthropic/NAME', 'openai/NAME'"):
        found.find(name, AGENT)


def test_a_policy_without_rules_lets_nothing_be_asked_and_the_message_has_the_rule_that_would(
    server: OpenAIServer,
) -> None:
    access = {"models": {"fast": entry(server.url)}}
    with models(access, rules=(), policy="tight") as found, pytest.raises(PolicyError) as error:
        ready(found, (CRITIC, "fast"))
    said = str(error.value)
    assert f"policy 'tight' does not let 'fast' (openai/{MODEL}) be asked at {server.url} as critic" in said
    rule = said.rpartition("policy: ")[2]
    assert rule == f'{{models: ["openai/{MODEL}"], base_urls: ["{server.url}"], roles: [critic]}}'
    allowed = ModelRule(models=(f"openai/{MODEL}",), base_urls=(server.url,), roles=frozenset({CRITIC}))
    with models(access, rules=(allowed,)) as found:
        ready(found, (CRITIC, "fast"))
        with pytest.raises(PolicyError, match="as agent"):
            found.find("fast", AGENT)


def test_a_policy_is_asked_before_a_key_is_read_or_a_server_is_met(server: OpenAIServer, tmp_path: Path) -> None:
    before = len(server.others)
    access = {"models": {"fast": {**entry(server.url), "key": {"file": str(tmp_path / "missing")}}}}
    with models(access, rules=(), environment={}) as found:
        for act in (lambda: ready(found, (AGENT, "fast")), lambda: found.find("fast", AGENT)):
            with pytest.raises(PolicyError):
                act()
    assert len(server.others) == before


def test_the_member_of_an_ensemble_needs_a_rule_like_any_other(server: OpenAIServer) -> None:
    team: dict[str, Any] = {
        "models": {"fast": entry(server.url)},
        "ensembles": {"team": [{"model": "offline"}, {"model": "fast"}]},
    }
    with models(team, rules=()) as found, pytest.raises(PolicyError, match="'fast'"):
        found.find("team", AGENT)


def test_shipped_policies_let_this_machine_be_asked_and_strict_lets_nobody(policy: Policy) -> None:
    strict = load_policy(ROOT / "policies" / "strict.yaml")
    assert strict.models == ()
    for url in ("http://127.0.0.1:8000/v1", "http://localhost:11434/v1", "http://[::1]:8080/v1"):
        assert any(rule.allows("openai/qwen", url, AGENT) for rule in policy.models), url
    elsewhere = (
        "http://127.0.0.1.evil.example:80/v1",
        "https://api.openai.com.evil.example/v1",
        "http://10.0.0.1:80/v1",
    )
    for url in elsewhere:
        assert not any(rule.allows("openai/qwen", url, AGENT) for rule in policy.models), url
    assert any(rule.allows("anthropic/claude-x", "https://api.anthropic.com", AGENT) for rule in policy.models)
    assert not any(rule.allows("openai/x", "https://api.anthropic.com", AGENT) for rule in policy.models)


def test_all_that_is_missing_is_told_at_once(server: OpenAIServer, tmp_path: Path) -> None:
    access = {
        "models": {
            "keyless": {**entry(server.url), "key": {"env": "NO_SUCH_VARIABLE"}},
            "unfiled": {**entry(server.url), "key": {"file": str(tmp_path / "key")}},
            "nowhere": entry(NOBODY),
            "unserved": {**entry(server.url), "model": "test-modle"},
            "free": entry(server.url, price={"input": 0, "output": 0}),
        }
    }
    wanted: Wanted = [(AGENT, name) for name in access["models"]]
    with models(access) as found, pytest.raises(PrerequisiteError) as error:
        found.require_ready(wanted, in_usd=True)
    said = str(error.value)
    for part in ("NO_SUCH_VARIABLE is not set", f"{tmp_path}/key", NOBODY, "no model 'test-modle'", MODEL):
        assert part in said, part
    for name in ("keyless", "unfiled", "nowhere", "unserved"):
        assert f"the price of {name!r}" in said
    assert "the price of 'free'" not in said
    assert KEY not in said


def test_a_key_that_several_models_lack_is_told_once(server: OpenAIServer) -> None:
    two = {name: {**entry(server.url), "key": {"env": "NO_SUCH_VARIABLE"}} for name in ("one", "two")}
    with models({"models": two}) as found, pytest.raises(PrerequisiteError) as error:
        ready(found, (AGENT, "one"), (CRITIC, "two"))
    assert str(error.value).count("NO_SUCH_VARIABLE is not set") == 1


def test_a_refused_key_is_missing_and_never_shown(server: OpenAIServer) -> None:
    access = {"base_url": server.url, "key_env": "CANARY_KEY"}
    wrong = "sk-wrong-canary-000111"
    with models(access, environment={"CANARY_KEY": wrong}) as found, pytest.raises(PrerequisiteError) as error:
        ready(found, (AGENT, f"openai/{MODEL}"))
    assert "CANARY_KEY" in str(error.value)
    assert wrong not in str(error.value)


def test_under_a_limit_in_dollars_an_unknown_price_is_wrong_input_with_the_ways_out(server: OpenAIServer) -> None:
    name = f"openai/{MODEL}"
    access: dict[str, Any] = {"base_url": server.url, "key_env": "CANARY_KEY"}
    with models(access) as found:
        ready(found, (AGENT, name))
        with pytest.raises(InputError, match=r"price of .* is unknown.*--price IN/CACHED/OUT.*--models file"):
            ready(found, (AGENT, name), in_usd=True)
    with models({**access, "price": {"input": 1, "output": 2}}) as found:
        ready(found, (AGENT, name), in_usd=True)
        worst = found.find(name, AGENT).worst_case(ASKED, (), Sampling(seed=0, max_output_tokens=100))
        assert worst.usd is not None
        assert worst.usd > Decimal("0.0002")


def test_a_price_of_ones_own_that_does_not_count_at_the_models_server_is_said(
    server: OpenAIServer, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    said = "{provider: openai, models: ['test-*'], as_of: 2026-11-30, source: our bill, price: {input: 1, output: 2}%s}"
    environment = {**KEYS, "EVOLVARIUM_PRICES": str(prices)}
    access = {"base_url": server.url, "key_env": "CANARY_KEY"}

    def refused(base_urls: str) -> str:
        prices.write_text(f"version: 1\nprices:\n  - {said % base_urls}\n")
        with models(access, environment=environment) as found, pytest.raises(InputError) as error:
            ready(found, (AGENT, f"openai/{MODEL}"), in_usd=True)
        return str(error.value)

    none = refused("")
    assert "names the model, but counts only at https://api.openai.com/v1, for it has no `base_urls`" in none
    assert f'give it `base_urls: ["{server.url}"]`' in none
    assert "counts only at http://10.0.0.1/v1: give" in refused(", base_urls: [http://10.0.0.1/v1]")
    prices.write_text(f"version: 1\nprices:\n  - {said % f', base_urls: [{server.url}]'}\n")
    with models(access, environment=environment) as found:
        ready(found, (AGENT, f"openai/{MODEL}"), in_usd=True)


def test_several_models_at_one_base_url_are_told_how_two_servers_are_named(server: OpenAIServer) -> None:
    access = {"base_url": server.url, "key_env": "CANARY_KEY"}
    with models(access) as found:
        with pytest.raises(PrerequisiteError, match=r"no model 'other'.*for two servers use a --models file"):
            ready(found, (AGENT, f"openai/{MODEL}"), (CRITIC, "openai/other"))
        with pytest.raises(PrerequisiteError) as alone:
            ready(found, (AGENT, "openai/other"))
    assert "two servers" not in str(alone.value)


def test_a_replay_where_none_can_be_made_is_refused_with_where_one_can() -> None:
    with models() as found, pytest.raises(InputError) as error:
        found.find("replay/latest", CRITIC)
    assert str(error.value) == (
        "'replay/latest' cannot be asked here: only `run --model replay/RUN` replays a search, and "
        "`sql evolve --replay RUN` an evolution; give another model"
    )


def test_a_misspelt_name_is_answered_with_close_ones_alone() -> None:
    close = r"^no model 'fastt'; did you mean 'fast' or 'fasts'\?$"
    with (
        models({"models": {"fast": entry(NOBODY), "fasts": entry(NOBODY)}}) as found,
        pytest.raises(InputError, match=close),
    ):
        found.find("fastt", AGENT)


def test_of_many_names_a_few_are_told_and_how_many_there_are() -> None:
    many = {f"model-{number:04d}": entry(NOBODY) for number in range(1000)}
    with models({"models": many}) as found:
        with pytest.raises(InputError, match="1000 names of the --models file") as unlike:
            found.find("zebra", AGENT)
        with pytest.raises(InputError, match=r"it names 'model-0000', 'model-0001', .* and 995 more") as unused:
            ready(found, (AGENT, "offline"))
        with pytest.raises(InputError, match=r"it names 'model-0999'.*asked are 'openai/model-0999'"):
            ready(found, (AGENT, "openai/model-0999"))
    assert max(len(str(error.value)) for error in (unlike, unused)) < 600


def test_options_that_concern_no_model_are_refused(server: OpenAIServer) -> None:
    fast = {"fast": entry(server.url)}
    with models({"models": fast, "base_url": server.url}) as found:
        for wanted in ((AGENT, "fast"), (AGENT, "offline"), (AGENT, "anthropic/claude-x")):
            with pytest.raises(InputError, match="--base-url is where models named openai/NAME are, and none"):
                ready(found, wanted)
    with models({"models": fast, "price": {"input": 1, "output": 1}}) as found:
        with pytest.raises(InputError, match="here is none"):
            ready(found, (AGENT, "fast"))
        with pytest.raises(InputError, match="here are 'openai/a', 'openai/b'"):
            ready(found, (AGENT, "openai/a"), (CRITIC, "openai/b"))


def test_a_file_of_which_no_model_is_used_is_refused_with_the_names_it_has(server: OpenAIServer) -> None:
    access = {
        "models": {"fast": entry(server.url), "slow": entry(server.url)},
        "ensembles": {"team": [{"model": "fast"}, {"model": "offline"}]},
    }
    with models(access) as found:
        with pytest.raises(InputError, match=r"no model of the --models file is used.*'fast', 'slow', 'team'.*--model"):
            ready(found, (AGENT, "offline"))
        ready(found, (AGENT, "team"))
        ready(found, (AGENT, "offline"), (CRITIC, "slow"))
        given = GivenAccess(file=ModelFile.model_validate({"models": {"fats": entry(server.url)}}))
        with pytest.raises(InputError, match=r"it names 'fats', and asked are 'fast'; say --model NAME"):
            found.require_ready([(AGENT, "fast")], in_usd=False, said=given)
        found.require_ready([(AGENT, "fast")], in_usd=False, said=GivenAccess())
        patient = GivenAccess(file=ModelFile.model_validate({"patience": {"chunk_seconds": 5}}))
        found.require_ready([(AGENT, "fast")], in_usd=False, said=patient)


def test_anthropics_protocol_is_spoken_to_a_server_of_ones_own() -> None:
    with AnthropicServer([Turn(text="good day")]) as running:
        mine = {
            "provider": "anthropic",
            "model": "claude-opus-5",
            "base_url": running.url,
            "key": {"env": "CANARY_KEY"},
        }
        with models({"models": {"mine": mine}}) as found:
            ready(found, (AGENT, "mine"))
            assert found.find("mine", AGENT).complete(ASKED, (), Sampling(seed=1)).message.text == "good day"


def test_a_context_that_was_recorded_stays_whatever_is_said_now(server: OpenAIServer) -> None:
    access = {
        "models": {"one": entry(server.url, context_tokens=50_000), "two": entry(server.url, context_tokens=90_000)},
        "ensembles": {"team": [{"model": "one"}, {"model": "two"}]},
    }
    with models(access, context_tokens={"one": 7000}) as found:
        assert found.find("one", AGENT).context_tokens == 7000
        assert found.find("team", AGENT).context_tokens == 7000
    with models(access, context_tokens={"team": 8000}) as found:
        assert found.find("team", AGENT).context_tokens == 8000
