"""What became of requests, so that a search that came to nothing can say why: kinds of replies, counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.domain.conversation import Reply, StopReason

_FEWEST = 0.5
"""Share of all requests from which on a kind is worth a word."""


class ReplyKind(StrEnum):
    """What a request led to."""

    TOOLS = "tools"
    """Calls of tools, one that exists among them."""
    UNKNOWN_TOOLS = "unknown-tools"
    """Calls of tools, none of which exists."""
    TEXT = "text"
    """Words, and no call."""
    REFUSAL = "refusal"
    """The model, or a filter of its provider, would not answer."""
    LENGTH = "length"
    """It was cut off before any call was whole."""
    THOUGHT = "thought"
    """Thoughts alone."""
    EMPTY = "empty"
    """Nothing at all."""
    TOO_LONG = "too-long"
    """No reply: the model's server refused the conversation as too long for it."""


_SAID: Mapping[ReplyKind, tuple[str, str]] = {
    ReplyKind.UNKNOWN_TOOLS: ("called only tools that do not exist", "called only tools that do not exist"),
    ReplyKind.TEXT: ("was talk without a tool call", "were talk without a tool call"),
    ReplyKind.REFUSAL: ("was a refusal", "were refusals"),
    ReplyKind.LENGTH: ("was cut off before it was whole", "were cut off before they were whole"),
    ReplyKind.THOUGHT: ("was thought alone", "were thoughts alone"),
    ReplyKind.EMPTY: ("was empty", "were empty"),
}
"""Of one reply, and of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What became of requests."""

    counts: Mapping[ReplyKind, int] = field(default_factory=dict)
    """In the order of `ReplyKind`; none is 0."""
    too_long: str | None = None
    """What was said of the last conversation that was too long; None: none was."""


def kind_of(reply: Reply, tools: Collection[str]) -> ReplyKind:
    """What a reply is.

    Args:
        reply: Of a model.
        tools: Names of those it was offered.
    """
    calls = reply.message.tool_calls
    if calls and reply.stop is StopReason.LENGTH and all(call.arguments is None for call in calls):
        return ReplyKind.LENGTH
    if calls:
        return ReplyKind.TOOLS if any(call.name in tools for call in calls) else ReplyKind.UNKNOWN_TOOLS
    if reply.stop in (StopReason.REFUSAL, StopReason.LENGTH, StopReason.THOUGHT):
        return ReplyKind(reply.stop.value)
    return ReplyKind.TEXT if reply.message.text.strip() else ReplyKind.EMPTY


def outcomes_of(replies: Sequence[Reply], refusals: Sequence[str], tools: Collection[str]) -> Outcomes:
    """Count.

    Args:
        replies: All there were.
        refusals: What was said of each conversation that was too long.
        tools: As `kind_of`.
    """
    kinds = [*(kind_of(reply, tools) for reply in replies), *(ReplyKind.TOO_LONG for _ in refusals)]
    counts = {kind: kinds.count(kind) for kind in ReplyKind if kind in kinds}
    return Outcomes(counts=counts, too_long=refusals[-1] if refusals else None)


def in_words(counts: Mapping[str, int], too_long: str | None, *, wanted: Collection[ReplyKind]) -> list[str]:
    """A sentence for each kind that is not wanted and has a good part of all requests.

    Args:
        counts: By kind.
        too_long: As in `Outcomes`.
        wanted: Kinds that are as they should be.
    """
    total = sum(counts.values())
    replies = total - counts.get(ReplyKind.TOO_LONG, 0)
    said = []
    for kind, (of_one, of_many) in _SAID.items():
        count = counts.get(kind, 0)
        if kind not in wanted and count and count >= _FEWEST * replies:
            said.append(
                f"{count} of {replies} {'reply' if replies == 1 else 'replies'} {of_one if count == 1 else of_many}."
            )
    if too_long is not None and counts[ReplyKind.TOO_LONG] >= _FEWEST * total:
        refused = counts[ReplyKind.TOO_LONG]
        said.append(
            f"{refused} of {total} {'request' if total == 1 else 'requests'} {'was' if refused == 1 else 'were'} too "
            f"long; the model's server says: {too_long.rstrip('.')}; give `context_tokens` in a --models file."
        )
    return said
