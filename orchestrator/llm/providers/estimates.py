"""Tokens and dollars of a provider's calls: what they may come to at most, and what they came to.

The length of a conversation is a pure function of it. What replies later show of the real length never changes it: a
run that is resumed must take the same course. So it is chosen on the high side from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    Reply,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.domain.model_access import Price
from orchestrator.llm.prices import cost, worst_cost
from orchestrator.llm.providers.wire import Gathered
from orchestrator.llm.tokens import FRAME_TOKENS, conversation_tokens

_FRAME_TOKENS = 64
"""Of what a provider puts around a conversation."""
_TOOLS_TOKENS = 512
"""Of the system prompt that providers add where there are tools; Anthropic states up to 400 for its models."""
_DIGITS = b"0123456789"


def request_tokens(conversation: Conversation, tools: Sequence[ToolSpec], *, protocol: str, account: str) -> int:
    """Length of a conversation, on the high side for every usual tokeniser.

    One token per two UTF-8 bytes, and a whole one for every digit, which many tokenisers take one by one; program text
    has 2.5 to 4 bytes per token. Messages that go back as their provider wrote them count as that, thoughts included.

    Args:
        conversation: What the model is told.
        tools: It may call.
        protocol: Of its provider.
        account: Name of the model for records; native messages of others are not sent to it.
    """
    written = Conversation(
        system=conversation.system,
        messages=tuple(_as_written(message, protocol, account) for message in conversation.messages),
    )
    thirds = conversation_tokens(written, tools)  # of bytes; half as many again are halves
    digits = sum(map(_digits, _texts(written, tools)))
    return -(-(3 * thirds + digits) // 2) + _FRAME_TOKENS + (_TOOLS_TOKENS if tools else 0)


def worst_usages(price: Price | None, *, input_tokens: int, output_tokens: int, samples: int) -> list[Usage]:
    """What a call may cost at most, in one part for each sample; the first has the input.

    Args:
        price: None: unknown, and so is `usd`.
        input_tokens: Of the conversation.
        output_tokens: Of each sample, at most.
        samples: From 1.
    """
    usages = []
    before = Decimal(0)
    for number in range(samples):
        usd = None
        if price is not None:
            until = worst_cost(price, input_tokens=input_tokens, output_tokens=(number + 1) * output_tokens)
            usd, before = until - before, until
        usages.append(Usage(input_tokens=0 if number else input_tokens, output_tokens=output_tokens, usd=usd))
    return usages


def replies(gathered: Gathered, *, price: Price | None, asked_as: str, input_tokens: int) -> list[Reply]:
    """What one call brought, as replies whose usages add up to what it used.

    Args:
        gathered: At least one message.
        price: None: unknown.
        asked_as: The model's name in the request.
        input_tokens: Of the conversation, estimated.
    """
    count = len(gathered.messages)
    usage = gathered.usage
    if usage is None:
        # Also above what was asked for: who does not say what it took may not have kept to that either.
        output = gathered.output_bytes // 2 + FRAME_TOKENS * count
        usage = Usage(input_tokens=input_tokens, output_tokens=output)
    served_by = "" if gathered.served_by == asked_as else gathered.served_by
    return [
        Reply(message=message, usage=part, stop=stop, served_by=served_by, is_estimate=gathered.usage is None)
        for message, stop, part in zip(
            gathered.messages, gathered.stops, _parts(usage, price, list(map(_size, gathered.messages))), strict=True
        )
    ]


def _parts(usage: Usage, price: Price | None, sizes: Sequence[int]) -> Iterator[Usage]:
    """A call's usage by sample, in proportion to their sizes."""
    outputs = _shares(usage.output_tokens, sizes)
    thoughts = _shares(usage.reasoning_tokens, outputs)
    so_far = replace(usage, output_tokens=0, reasoning_tokens=0)
    before = Decimal(0)
    for number, (output, thought) in enumerate(zip(outputs, thoughts, strict=True)):
        so_far = replace(
            so_far,
            output_tokens=so_far.output_tokens + output,
            reasoning_tokens=so_far.reasoning_tokens + thought,
        )
        usd = None
        if price is not None:
            until = cost(price, so_far)
            usd, before = until - before, until
        own = usage if number == 0 else Usage()
        yield replace(own, output_tokens=output, reasoning_tokens=thought, usd=usd)


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of a total that add up to it, as near to the proportion of the weights as whole numbers are."""
    weights = weights if any(weights) else [1] * len(weights)
    whole = sum(weights)
    marks = [0]
    so_far = 0
    for weight in weights:
        so_far += weight
        marks.append(total * so_far // whole)
    return [after - before for before, after in pairwise(marks)]


def _size(message: AssistantMessage) -> int:
    return sum(len(text.encode("utf-8", errors="replace")) for text in (*_message_texts(message), message.reasoning))


def _as_written(message: Message, protocol: str, account: str) -> Message:
    """A message as it is sent to a model; one that goes back in its provider's own form is its JSON."""
    if not isinstance(message, AssistantMessage) or message.native is None:
        return message
    if (message.native.protocol, message.native.model) != (protocol, account):
        return message
    return UserMessage(text=json.dumps(dict(message.native.body), ensure_ascii=False))


def _texts(conversation: Conversation, tools: Sequence[ToolSpec]) -> Iterator[str]:
    yield conversation.system
    for tool in tools:
        yield from (tool.name, tool.description, json.dumps(dict(tool.parameters)))
    for message in conversation.messages:
        yield from _message_texts(message)


def _message_texts(message: Message) -> Iterable[str]:
    if isinstance(message, ToolMessage):
        return [result.text for result in message.results]
    if isinstance(message, UserMessage):
        return [message.text]
    return [
        message.text,
        *(call.raw_arguments or json.dumps(dict(call.arguments or {})) for call in message.tool_calls),
    ]


def _digits(text: str) -> int:
    raw = text.encode("utf-8", errors="replace")
    return len(raw) - len(raw.translate(None, delete=_DIGITS))
