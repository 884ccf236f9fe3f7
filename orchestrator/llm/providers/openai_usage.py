"""Token counts of OpenAI's chat completions, where they can be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.domain.conversation import Usage
from orchestrator.llm.providers.usage_counts import count, inner_counts, optional_count, usage_if_true


def usage_of(said: Sequence[object], *, has_output: bool) -> Usage | None:
    """What a server says it used; None: it says nothing, or what cannot be.

    Args:
        said: Its `usage`, or one for each choice: then the input counts once, as it was read, and the output adds up.
        has_output: Whether anything came; then there was output.
    """
    usages = [_usage_of(one, has_output=has_output) for one in said]
    if not usages or None in usages:
        return None
    known = [usage for usage in usages if usage is not None]
    return replace(
        known[0],
        output_tokens=sum(usage.output_tokens for usage in known),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in known),
    )


def _usage_of(said: object, *, has_output: bool) -> Usage | None:
    if not isinstance(said, Mapping):
        return None
    details, output_details = (
        inner_counts(said, "prompt_tokens_details"),
        inner_counts(said, "completion_tokens_details"),
    )
    prompt, output = count(said, "prompt_tokens"), count(said, "completion_tokens")
    cached = _either(
        optional_count(details, "cached_tokens"), optional_count(said, "prompt_cache_hit_tokens", "cached_tokens")
    )
    written = optional_count(details, "cache_write_tokens")
    reasoning = optional_count(output_details, "reasoning_tokens")
    if prompt is None or output is None or cached is None or written is None or reasoning is None:
        return None
    if said.get("total_tokens") == prompt + output + reasoning:
        output += reasoning  # counted apart, as xAI does
    return usage_if_true(
        fresh=prompt - cached - written,
        cached=cached,
        written=written,
        output=output,
        reasoning=reasoning,
        has_output=has_output,
    )


def _either(one: int | None, other: int | None) -> int | None:
    """What two fields say of the same; None: one of them says what cannot be."""
    return None if one is None or other is None else one or other
