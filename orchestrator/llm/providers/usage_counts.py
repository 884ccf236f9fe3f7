"""Token counts as servers say them, where they can be true: for all protocols alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.conversation import Usage

MOST_TOKENS = 1_000_000_000
"""Of one kind in one call; more cannot be."""


def count(said: Mapping[str, Any], name: str) -> int | None:
    """A count; None: it is not there, or cannot be."""
    value = said.get(name)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def optional_count(said: Mapping[str, Any], *names: str) -> int | None:
    """A count under the first name that says something; 0: it is not said at all; None: it cannot be."""
    for name in names:
        if said.get(name) is not None:
            return count(said, name)
    return 0


def inner_counts(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Counts within counts; none where there are no such."""
    value = said.get(name)
    return value if isinstance(value, Mapping) else {}


def usage_if_true(
    *,
    fresh: int | None,
    cached: int | None,
    written: int | None,
    output: int | None,
    reasoning: int | None,
    has_output: bool,
) -> Usage | None:
    """A usage out of its counts; None: one of them cannot be, so that nobody knows what to make of the others.

    Args:
        fresh: Input that was neither read from a cache nor written into one.
        cached: Input that was read from a cache.
        written: Input that was written into a cache.
        output: Reasoning included.
        reasoning: The part of the output that was reasoning.
        has_output: Whether anything came; then there was output.
    """
    if fresh is None or cached is None or written is None or output is None or reasoning is None:
        return None
    if fresh < 0 or fresh + cached + written == 0 or (has_output and output == 0) or reasoning > output:
        return None
    return Usage(
        input_tokens=fresh,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )
