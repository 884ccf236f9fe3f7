"""The table of what models take, and what is learned from refusals."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise
from typing import Any

import anthropic.types.model_param
import openai.types.shared.chat_model
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.errors import InputError
from orchestrator.llm.providers.capabilities import (
    SYSTEM_ROLE,
    Capabilities,
    find_capabilities,
    learned,
    read_table,
)

TABLE = files("orchestrator.llm.providers").joinpath("capabilities.yaml").read_bytes()


def found(provider: str, model: str, url: str | None = None, **entry: Any) -> Capabilities:
    return find_capabilities(ModelEntry(provider=Provider(provider), model=model, base_url=url, **entry))


def names_in(module: Any) -> list[str]:
    with open(module.__file__) as source:  # noqa: PTH123 - the SDK's own list, which is nothing but a type
        return re.findall(r'^ +"([a-z][\w.-]+)",$', source.read(), re.MULTILINE)


CLAUDE = names_in(anthropic.types.model_param)
OPENAI = [name for name in names_in(openai.types.shared.chat_model) if "audio" not in name and "search" not in name]


def test_the_sdks_name_models() -> None:
    assert len(CLAUDE) > 10
    assert len(OPENAI) > 30


@pytest.mark.parametrize("model", CLAUDE)
def test_every_model_of_anthropics_sdk_has_sizes(model: str) -> None:
    capabilities = found("anthropic", model)
    assert capabilities.cache_marks
    assert capabilities.samples == 1
    assert capabilities.output_field == "max_tokens"
    assert capabilities.max_output_tokens in (64_000, 128_000)
    assert capabilities.context_tokens == (200_000 if re.search(r"-4-5\b", model) else 1_000_000)
    assert capabilities.temperature is bool(re.search(r"-4-[56]\b", model))


@pytest.mark.parametrize("model", OPENAI)
def test_every_model_of_openais_sdk_has_sizes(model: str) -> None:
    capabilities = found("openai", model)
    assert capabilities.context_tokens is not None
    assert capabilities.max_output_tokens is not None
    assert capabilities.max_output_tokens < capabilities.context_tokens
    is_newer = re.match(r"gpt-(5\.[4-9]|6)", model) is not None
    assert capabilities.api == ("responses" if is_newer else "chat")
    assert capabilities.output_field == ("max_output_tokens" if is_newer else "max_completion_tokens")
    assert capabilities.cache_marks


@pytest.mark.parametrize(
    ("model", "temperature", "role", "context"),
    [
        ("gpt-6.2-astra", False, "developer", 1_050_000),
        ("gpt-5.4", False, "developer", 1_050_000),
        ("gpt-5.4-mini", False, "developer", 400_000),
        ("gpt-5", False, "developer", 400_000),
        ("gpt-5-chat-latest", True, "system", 128_000),
        ("gpt-5.2-chat-latest", True, "system", 128_000),
        ("gpt-4.1-mini", True, "system", 1_047_576),
        ("gpt-4o", True, "system", 128_000),
        ("gpt-4-turbo", True, "system", 128_000),
        ("gpt-4", True, "system", 8192),
        ("o3-mini", False, "developer", 200_000),
        ("o1-mini", False, "user", 128_000),
        ("a-model-of-next-year", False, "system", 128_000),
    ],
)
def test_reasoning_models_of_openai_are_told_from_others(
    model: str, temperature: bool, role: str, context: int
) -> None:
    capabilities = found("openai", model)
    assert (capabilities.temperature, capabilities.system_role) == (temperature, role)
    assert capabilities.context_tokens == context


@pytest.mark.parametrize(
    ("model", "url", "expected"),
    [
        ("deepseek-v4-pro", "https://api.deepseek.com", {"reasoning_field": "reasoning_content", "seed": False}),
        ("deepseek-flash", "https://api.deepseek.com/v1", {"context_tokens": 1_000_000}),
        ("glm-5.2", "https://api.z.ai/api/paas/v4", {"stream_usage": False, "context_tokens": 1_000_000}),
        ("glm-4.7", "https://open.bigmodel.cn/api/paas/v4", {"context_tokens": 200_000}),
        ("qwen3.8-max", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", {"seed": True, "samples": 1}),
        ("llama3", "http://localhost:11434/v1", {"seed": True, "samples": 1, "context_tokens": None}),
        ("Qwen/Qwen3", "http://gpu-7:8000/v1", {"seed": True, "samples": 8}),
        ("x.gguf", "http://127.0.0.1:8080/v1", {"seed": True, "samples": 1}),
    ],
)
def test_known_servers_are_known_by_their_address(model: str, url: str, expected: dict[str, Any]) -> None:
    capabilities = found("openai", model, url)
    assert {name: getattr(capabilities, name) for name in expected} == expected
    assert capabilities.output_field == "max_tokens"
    assert not capabilities.cache_marks


@pytest.mark.parametrize("model", ["gpt-5", "deepseek-v4", "anything"])
def test_of_a_server_that_nobody_knows_only_the_usual_is_asked(model: str) -> None:
    assert found("openai", model, "https://proxy.example:9999/v1") == Capabilities(
        other_output_fields=("max_completion_tokens",)
    )


def test_another_server_of_anthropics_protocol_gets_no_marks() -> None:
    capabilities = found("anthropic", "claude-opus-5", "https://api.deepseek.com/anthropic")
    assert capabilities == Capabilities(temperature=False)


def test_the_users_word_goes_before_the_table() -> None:
    capabilities = found(
        "openai",
        "gpt-4o",
        context_tokens=50_000,
        max_output_tokens=2_000,
        without=("temperature", "n", "max_completion_tokens", "top_k", "stream_options", "prompt_cache_key"),
    )
    assert (capabilities.context_tokens, capabilities.max_output_tokens) == (50_000, 2_000)
    assert not capabilities.temperature
    assert capabilities.samples == 1
    assert capabilities.output_field == "max_tokens"
    assert not capabilities.stream_usage
    assert not capabilities.cache_marks
    assert not capabilities.accepts("top_k")


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning_effort", "seed", "anything"])
def test_what_a_user_leaves_out_is_not_even_sent_where_it_is_missed(name: str) -> None:
    capabilities = found("openai", "x", "http://proxy.example/v1", without=(name,))
    assert capabilities == Capabilities(other_output_fields=("max_completion_tokens",), refused=frozenset({name}))
    assert learned(capabilities, name) is None


@pytest.mark.parametrize(("model", "effort"), [("gpt-5.5", None), ("gpt-5.6-luna", "none"), ("gpt-6.1-sol", "none")])
def test_newer_models_of_openai_need_to_be_told_no_effort_with_tools(model: str, effort: str | None) -> None:
    assert found("openai", model, api="chat").effort_with_tools == effort


def test_an_effort_that_is_missed_is_said_once() -> None:
    said = learned(Capabilities(), "reasoning_effort")
    assert said == Capabilities(effort_with_tools="none")
    assert said is not None
    assert learned(said, "reasoning_effort") is None


@pytest.mark.parametrize("name", ["model", "messages", "n", "max_tokens", "models", "tools", "stream"])
def test_options_cannot_set_what_policy_and_budget_rest_on(name: str) -> None:
    with pytest.raises(InputError, match=rf"options of model 'x': '{name}' cannot be set there; leave it out"):
        found("openai", "x", options={name: 1, "top_p": 0.5})


def test_each_refusal_leads_to_something_else_or_to_the_end() -> None:
    capabilities = Capabilities(
        other_output_fields=("max_completion_tokens",),
        seed=True,
        samples=4,
        cache_marks=True,
        reasoning_field="reasoning",
    )
    steps = [capabilities]
    for parameter in ("temperature", "seed", "n", "stream_options.include_usage", "prompt_cache_key", "max_tokens"):
        after = learned(steps[-1], parameter)
        assert after is not None
        assert learned(after, parameter) is None
        steps.append(after)
    last = steps[-1]
    assert not any((last.temperature, last.seed, last.stream_usage, last.cache_marks))
    assert (last.samples, last.output_field, last.other_output_fields) == (1, "max_completion_tokens", ())
    assert learned(last, "max_completion_tokens") is None
    assert learned(last, "messages") is None
    assert learned(last, "top_p") is None
    assert all(before != after for before, after in pairwise(steps))


def test_the_role_of_the_system_prompt_is_changed_in_turn() -> None:
    roles = []
    capabilities: Capabilities | None = Capabilities(system_role="developer")
    while capabilities is not None:
        roles.append(capabilities.system_role)
        capabilities = learned(capabilities, SYSTEM_ROLE)
    assert roles == ["developer", "system", "user"]
    assert learned(Capabilities(), "messages[0].role") == Capabilities(system_role="user")


def test_reasoning_that_is_missed_is_sent_and_what_is_refused_then_is_never_sent_again() -> None:
    missed = learned(Capabilities(), "reasoning_content")
    assert missed == Capabilities(reasoning_field="reasoning_content")
    assert missed is not None
    refused = learned(missed, "reasoning_content")
    assert refused is not None
    assert refused.reasoning_field is None
    assert learned(refused, "reasoning_content") is None


def test_a_limit_that_a_server_names_is_kept() -> None:
    assert learned(Capabilities(), "max_output_tokens=4096") == Capabilities(max_output_tokens=4096)
    known = Capabilities(max_output_tokens=4096)
    assert learned(known, "max_output_tokens=2048") == Capabilities(max_output_tokens=2048)
    for nonsense in ("4096", "8192", "0", "-5", "", "many", "9" * 20):
        assert learned(known, f"max_output_tokens={nonsense}") is None


REFUSALS = (
    *("temperature", "seed", "n", "stream_options", "cache_control", "max_tokens", "max_completion_tokens"),
    *(
        "reasoning_content",
        "reasoning",
        "reasoning_effort",
        SYSTEM_ROLE,
        "max_output_tokens=99",
        "messages",
        "",
        "x[0].y",
    ),
)


@given(st.lists(st.sampled_from(REFUSALS)))
def test_a_server_that_refuses_everything_is_not_asked_for_ever(refusals: list[str]) -> None:
    capabilities = Capabilities(other_output_fields=("max_completion_tokens",), seed=True, samples=2, cache_marks=True)
    changes = 0
    for parameter in refusals * 3:
        after = learned(capabilities, parameter)
        if after is not None:
            assert after != capabilities
            capabilities, changes = after, changes + 1
    assert changes <= 16


def test_the_table_is_well_formed_and_dated() -> None:
    table = read_table(TABLE)
    assert table.dated.year >= 2026
    assert all(group.urls for group in table.groups)
    assert {group.provider for group in table.groups if group.urls == ("*",)} == set(Provider)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b"temperatur: true", r"groups\.0\.common\.temperatur: Extra inputs are not permitted"),
        (b"samples: 0", r"groups\.0\.common\.samples: .*greater than or equal to 1"),
        (b"seed: 1, seed: 2", "occurs twice"),
        (b"system_role: boss", r"groups\.0\.common\.system_role"),
    ],
)
def test_a_table_with_a_fault_names_its_place(wrong: bytes, message: str) -> None:
    raw = b"dated: 2026-12-01\ngroups:\n  - {provider: openai, urls: ['*'], common: {" + wrong + b"}}\n"
    with pytest.raises(InputError, match=rf"capabilities\.yaml: .*{message}"):
        read_table(raw)
