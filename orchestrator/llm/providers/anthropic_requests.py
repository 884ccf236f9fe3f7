"""Requests of Anthropic's Messages API, out of conversations."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.capabilities import THOUGHTS_BACK, Capabilities

PROTOCOL = "anthropic"
NEEDED = frozenset(("model", "messages", "system", "tools", "stream"))
"""Parameters that no request can do without, whoever refuses them; besides the one that limits the output."""
THOUGHTS = ("thinking", "redacted_thinking")
"""Types of the blocks that hold thoughts."""
_MARK = {"type": "ephemeral"}
_MARKED_USER_TURNS = 2
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME = 128

Block = dict[str, Any]


def request_body(
    conversation: Conversation,
    tools: Sequence[ToolSpec],
    sampling: Sampling,
    *,
    entry: ModelEntry,
    account: str,
    capabilities: Capabilities,
) -> dict[str, Any]:
    """The body of a request, as `Wire.parameters` promises it."""
    turns = _Turns(account if capabilities.accepts(THOUGHTS_BACK) else None)
    for message in conversation.messages:
        turns.add(message)
    system: list[Block] = [{"type": "text", "text": conversation.system}] if conversation.system.strip() else []
    specs = [_tool(tool) for tool in tools]
    if capabilities.cache_marks and capabilities.accepts("cache_control"):
        _mark(system or specs, turns.turns)
    body: dict[str, Any] = {
        "model": entry.model,
        capabilities.output_field: _most_output(sampling, capabilities),
        **({"system": system} if system else {}),
        "messages": [{"role": role, "content": blocks} for role, blocks in turns.turns],
        **({"tools": specs} if specs else {}),
    }
    if sampling.temperature is not None and capabilities.temperature:
        body["temperature"] = sampling.temperature
    body |= copy.deepcopy(entry.options)
    kept = NEEDED | {capabilities.output_field}
    return {name: value for name, value in body.items() if name in kept or capabilities.accepts(name)}


def _most_output(sampling: Sampling, capabilities: Capabilities) -> int:
    most = capabilities.max_output_tokens
    return sampling.max_output_tokens if most is None else min(sampling.max_output_tokens, most)


def _tool(tool: ToolSpec) -> Block:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": copy.deepcopy(dict(tool.parameters))}


def _mark(stable: list[Block], turns: list[tuple[str, list[Block]]]) -> None:
    """Mark where the cache may end: at what never changes, and at the end of this request and of the one before it."""
    if stable:
        stable[-1]["cache_control"] = dict(_MARK)
    users = [blocks for role, blocks in turns if role == "user"]
    for blocks in users[-_MARKED_USER_TURNS:]:
        blocks[-1]["cache_control"] = dict(_MARK)


class _Turns:
    """Turns of user and assistant by turns, none of them empty."""

    def __init__(self, account: str | None) -> None:
        """None yet.

        Args:
            account: Of the model, whose own messages go back as they came; None: none do.
        """
        self.turns: list[tuple[str, list[Block]]] = []
        self._account = account
        self._taken: set[str] = set()  # ids of calls, which must differ from each other in a whole conversation
        self._sent_ids: dict[str, str] = {}  # of the assistant message before, by the id we know

    def add(self, message: Message) -> None:
        match message:
            case UserMessage():
                self._extend("user", _texts(message.text))
            case ToolMessage():
                self._extend("user", self._results(message))
            case AssistantMessage():
                self._sent_ids = {}
                own = self._own_blocks(message)
                self._extend("assistant", self._foreign_blocks(message) if own is None else own)

    def _extend(self, role: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        if self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].extend(blocks)
        else:
            self.turns.append((role, blocks))

    def _results(self, message: ToolMessage) -> list[Block]:
        return [
            {
                "type": "tool_result",
                "tool_use_id": self._sent_ids.get(result.call_id, result.call_id),
                **({"content": result.text} if result.text.strip() else {}),
                **({"is_error": True} if result.is_error else {}),
            }
            for result in message.results
        ]

    def _own_blocks(self, message: AssistantMessage) -> list[Block] | None:
        """What the same model said, as it said it; None: another one's, or nothing that it has to see so."""
        native = message.native
        if native is None or (native.protocol, native.model) != (PROTOCOL, self._account):
            return None
        blocks: list[Block] = copy.deepcopy(list(native.body["content"]))
        called = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if called != [call.id for call in message.tool_calls]:
            return None  # somebody has taken calls out of the message since
        while blocks and blocks[-1].get("type") in THOUGHTS:
            blocks.pop()  # the provider refuses a message that ends in a thought
        self._taken.update(called)
        return blocks

    def _foreign_blocks(self, message: AssistantMessage) -> list[Block]:
        return [*_texts(message.text), *(self._call(call) for call in message.tool_calls)]

    def _call(self, call: ToolCall) -> Block:
        sent = base = _FOREIGN.sub("_", call.id) or "call"
        number = 1
        while sent in self._taken:
            number += 1
            sent = f"{base}_{number}"
        self._taken.add(sent)
        self._sent_ids[call.id] = sent
        name = _FOREIGN.sub("_", call.name)[:_MAX_NAME] or "unnamed"
        return {
            "type": "tool_use",
            "id": sent,
            "name": name,
            "input": sent_arguments(call.arguments, call.raw_arguments),
        }


def sent_arguments(arguments: Mapping[str, Any] | None, raw: str) -> dict[str, Any]:
    """Arguments as the provider takes them: always an object, also where the model gave none."""
    return {"invalid_arguments": raw} if arguments is None else copy.deepcopy(dict(arguments))


def _texts(text: str) -> list[Block]:
    """A text block, or none: the provider refuses blank ones."""
    return [{"type": "text", "text": text}] if text.strip() else []
