"""Token counts of OpenAI's chat completions, where they can be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.domain.conversation import Usage

_MOST_TOKENS = 1_000_000_000


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
    details, output_details = _object(said, "prompt_tokens_details"), _object(said, "completion_tokens_details")
    counts = (
        _count(said, "prompt_tokens"),
        _count(said, "completion_tokens"),
        _either(_optional(details, "cached_tokens"), _optional(said, "prompt_cache_hit_tokens", "cached_tokens")),
        _optional(details, "cache_write_tokens"),
        _optional(output_details, "reasoning_tokens"),
    )
    prompt, output, cached, written, reasoning = (-1 if count is None else count for count in counts)
    if said.get("total_tokens") == prompt + output + reasoning:
        output += reasoning  # counted apart, as xAI does
    if None in counts or not prompt or (has_output and not output) or cached + written > prompt or reasoning > output:
        return None
    return Usage(
        input_tokens=prompt - cached - written,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )


def _object(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = said.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _optional(said: Mapping[str, Any], *names: str) -> int | None:
    """0 where it is not said at all."""
    for name in names:
        if said.get(name) is not None:
            return _count(said, name)
    return 0


def _either(one: int | None, other: int | None) -> int | None:
    """What two fields say of the same; None: one of them says what cannot be."""
    return None if one is None or other is None else one or other
