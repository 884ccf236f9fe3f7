"""A model's message, and our answer to its tool calls, as a conversation with it goes on."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.domain.conversation import AssistantMessage, Reply, StopReason, ToolMessage

EMPTY = "(The reply is empty.)"


def said(message: AssistantMessage) -> AssistantMessage:
    """A message whose tool calls, if it has any, are not answered.

    Providers refuse an empty message, and a call without an answer. The message keeps its native form, thoughts
    included, as long as that is of a message with a text and without calls.
    """
    if message.tool_calls or not message.text.strip():
        return AssistantMessage(text=message.text if message.text.strip() else EMPTY, reasoning=message.reasoning)
    return message


def noted(results: ToolMessage, notice: str) -> ToolMessage:
    """The answers to tool calls with a word of ours at the end of the last one.

    Args:
        results: At least one.
        notice: What the model has to know beside them.
    """
    last = results.results[-1]
    return ToolMessage(results=(*results.results[:-1], replace(last, text=f"{last.text}\n\n{notice}")))


def is_cut_off(reply: Reply) -> bool:
    """Whether a reply may end in the middle: at its maximum length, or where a filter has stopped it."""
    return reply.stop in {StopReason.LENGTH, StopReason.REFUSAL}
