"""What the Messages API asks of requests with `thinking`, and of those without."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

THOUGHTS = ("thinking", "redacted_thinking")
MANUAL_ONLY = re.compile(r"^claude-(3|opus-4(-[0156])?(-\d{8})?$|sonnet-4|haiku-4)")
"""Models that do not think unless they are told to."""
ADVICE = (
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
    "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
    "avoid this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)

Turns = Sequence[tuple[str, Sequence[Mapping[str, Any]]]]


def refusal_of_budget(thinking: Mapping[str, Any], most: int) -> str | None:
    """What is wrong with the tokens for thoughts.

    Args:
        thinking: Of type `enabled`.
        most: Tokens of output.
    """
    if thinking["budget_tokens"] < 1024:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    return "`max_tokens` must be greater than `thinking.budget_tokens`" if thinking["budget_tokens"] >= most else None


def refusal_of_thoughts(turns: Turns, thinking: Mapping[str, Any] | None, model: str) -> str | None:
    """What is wrong with the thoughts of the last turn of the assistant, which goes on until a user says something.

    Args:
        turns: Messages of one role in a row are one.
        thinking: None: the request says nothing of it.
        model: As the request names it.
    """
    kind = "disabled" if thinking is None and MANUAL_ONLY.match(model) else (thinking or {}).get("type")
    last = [number for number in _last_turn(turns) if turns[number][0] == "assistant"]
    if kind == "enabled" and last and (found := turns[last[0]][1][0]["type"]) not in THOUGHTS:
        at = f"messages.{last[0]}.content.0.type"
        return f"{at}: Expected `thinking` or `redacted_thinking`, but found `{found}`. {ADVICE}"
    if kind == "disabled":
        for number in last:
            for place, block in enumerate(turns[number][1]):
                if block["type"] in THOUGHTS:
                    return (
                        f"messages.{number}.content.{place}: When thinking is disabled, an `assistant` message in the "
                        f"final position cannot contain `{block['type']}`. To use thinking blocks, enable `thinking` "
                        "in your request."
                    )
    return None


def _last_turn(turns: Turns) -> range:
    """Numbers of what follows the last text of a user."""
    spoken = [
        number
        for number, (role, blocks) in enumerate(turns)
        if role == "user" and any(block["type"] == "text" for block in blocks)
    ]
    return range(spoken[-1] + 1 if spoken else 0, len(turns))
