"""From a conversation of an evolver to its next message."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolCall, ToolSpec, UserMessage
from orchestrator.llm.offline.evolver.course import next_step
from orchestrator.llm.offline.evolver.messages import EVOLVE, title_of
from orchestrator.llm.offline.evolver.notebook import read_notebook


def is_evolver_request(conversation: Conversation) -> bool:
    """Whether the first message asks for a package."""
    first = conversation.messages[0] if conversation.messages else None
    return isinstance(first, UserMessage) and title_of(first.text) == EVOLVE


def respond_evolver(conversation: Conversation, tools: Sequence[ToolSpec], seed: int) -> AssistantMessage:
    """The next message of an evolver; a pure function of its arguments.

    Args:
        conversation: Its first message as `is_evolver_request` has it; whatever else is malformed or missing is done
            without.
        tools: Those there are; without `write` and `finish` it ends its turn in words.
        seed: All draws follow from it and from the position in the conversation.
    """
    notebook = read_notebook(conversation, tools)
    position = len(conversation.messages)
    chance = random.Random(hashlib.sha256(f"{seed}/{position}".encode()).digest())  # noqa: S311 - search, not secrecy
    step = next_step(notebook, chance)
    calls = tuple(
        ToolCall(id=f"call-{position}-{number}", name=name, arguments=arguments, raw_arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(step.calls)
    )
    return AssistantMessage(text=step.text, tool_calls=calls)
