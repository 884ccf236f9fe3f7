"""Whom the live tests ask, where a key is set; the models are cheap ones of the table of prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.domain.model_access import KeySource, ModelEntry, Provider


@dataclass(frozen=True, kw_only=True)
class LiveProvider:
    """A provider, one of its models, and what it offers."""

    label: str
    key: str
    """Environment variable of its key."""
    entry: ModelEntry
    thinking: Mapping[str, object]
    """Options that make the model think; empty: it does so by itself, or cannot."""
    cached_prefix_tokens: int
    """A prefix of so many tokens is kept by its cache."""
    refuses_unknown: bool
    """Whether it refuses parameters that it does not know; others pass over them."""


def _provider(
    label: str,
    provider: Provider,
    model: str,
    *,
    key: str,
    base_url: str | None = None,
    thinking: Mapping[str, object] | None = None,
    cached_prefix_tokens: int = 2048,
    refuses_unknown: bool = False,
) -> LiveProvider:
    entry = ModelEntry(provider=provider, model=model, base_url=base_url, key=KeySource(env=key))
    return LiveProvider(
        label=label,
        key=key,
        entry=entry,
        thinking=thinking or {},
        cached_prefix_tokens=cached_prefix_tokens,
        refuses_unknown=refuses_unknown,
    )


PROVIDERS = (
    _provider(
        "anthropic",
        Provider.ANTHROPIC,
        "claude-haiku-4-5",
        key="ANTHROPIC_API_KEY",
        thinking={"thinking": {"type": "enabled", "budget_tokens": 1024}},
        cached_prefix_tokens=8192,
        refuses_unknown=True,
    ),
    _provider(
        "openai",
        Provider.OPENAI,
        "gpt-5.4-nano",
        key="OPENAI_API_KEY",
        thinking={"reasoning_effort": "low"},
        refuses_unknown=True,
    ),
    _provider(
        "deepseek", Provider.OPENAI, "deepseek-flash", key="DEEPSEEK_API_KEY", base_url="https://api.deepseek.com/v1"
    ),
    _provider("zai", Provider.OPENAI, "glm-5.3", key="ZAI_API_KEY", base_url="https://api.z.ai/api/paas/v4"),
)
