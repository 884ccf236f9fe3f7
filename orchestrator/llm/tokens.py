"""An estimate of token counts for models that do not count for us.

One token per three UTF-8 bytes, and four for the frame of every message, call, result and tool. Program text has three
to four bytes per token with the usual tokenisers, so the estimate is on the high side.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from orchestrator.domain.conversation import AssistantMessage, Conversation, Message, ToolMessage, ToolSpec

BYTES_PER_TOKEN = 3
FRAME_TOKENS = 4


def conversation_tokens(conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
    """Of everything a model is given."""
    schemas = (f"{tool.name}{tool.description}{json.dumps(dict(tool.parameters))}" for tool in tools)
    return _tokens([conversation.system, *schemas]) + sum(map(message_tokens, conversation.messages))


def message_tokens(message: Message) -> int:
    """Of one message."""
    if isinstance(message, ToolMessage):
        return _tokens(result.call_id + result.text for result in message.results)
    if isinstance(message, AssistantMessage):
        calls = [
            call.id + call.name + (call.raw_arguments or json.dumps(dict(call.arguments or {})))
            for call in message.tool_calls
        ]
        return _tokens([message.text, *calls])
    return _tokens([message.text])


def first_tokens(text: str, limit: int) -> str:
    """The beginning of a text that makes a message of at most `limit` tokens."""
    size = max(0, limit - FRAME_TOKENS) * BYTES_PER_TOKEN
    return text.encode("utf-8", errors="replace")[:size].decode("utf-8", errors="ignore")


def _tokens(texts: Iterable[str]) -> int:
    return sum(FRAME_TOKENS - (-len(text.encode("utf-8", errors="replace")) // BYTES_PER_TOKEN) for text in texts)
