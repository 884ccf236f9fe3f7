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
from orchestrator.llm.providers.capabilities import THINKING, THOUGHTS_BACK, Capabilities

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
    """The body of a request, as `Wire.parameters` promises it.

    A turn of the assistant, which goes on until a user says something, has thoughts from its beginning or none at all.
    So a request whose last turn cannot begin with one, since another model began it, for instance, is sent without
    `thinking`, and without the thoughts of earlier requests.
    """
    options = copy.deepcopy(entry.options)
    turns = _turns(conversation, account if capabilities.accepts(THOUGHTS_BACK) else None)
    if _thinks(options, "enabled") and not _may_think(turns):
        del options[THINKING]
        capabilities = capabilities.without(THINKING)
    if not capabilities.accepts(THINKING) or _thinks(options, "disabled"):
        turns = _turns(conversation, turns.account, with_thoughts=False)
    elif capabilities.thinking_tokens is not None and _thinks(options, "enabled"):
        options[THINKING]["budget_tokens"] = capabilities.thinking_tokens
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
    body |= options
    kept = NEEDED | {capabilities.output_field}
    return {name: value for name, value in body.items() if name in kept or capabilities.accepts(name)}


def _thinks(options: Mapping[str, Any], kind: str) -> bool:
    thinking = options.get(THINKING)
    return isinstance(thinking, Mapping) and thinking.get("type") == kind


def _turns(conversation: Conversation, account: str | None, *, with_thoughts: bool = True) -> _Turns:
    turns = _Turns(account, with_thoughts=with_thoughts)
    for message in conversation.messages:
        turns.add(message)
    return turns


def _may_think(turns: _Turns) -> bool:
    """Whether the assistant's last turn, if it has begun, begins with a thought."""
    first: Block = {"type": THINKING}
    for role, blocks in reversed(turns.turns):
        if role == "assistant":
            first = blocks[0]
        elif any(block["type"] == "text" for block in blocks):
            break
    return first["type"] in THOUGHTS


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

    def __init__(self, account: str | None, *, with_thoughts: bool) -> None:
        """None yet.

        Args:
            account: Of the model, whose own messages go back as they came; None: none do.
            with_thoughts: Whether its thoughts go back, too.
        """
        self.turns: list[tuple[str, list[Block]]] = []
        self.account = account
        self._with_thoughts = with_thoughts
        self._taken: set[str] = set()  # ids of calls, which must differ from each other in a whole conversation
        self._sent_ids: dict[str, list[str]] = {}  # of the assistant message before, by the id we know, in order

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
                "tool_use_id": self._answered(result.call_id),
                **({"content": result.text} if result.text.strip() else {}),
                **({"is_error": True} if result.is_error else {}),
            }
            for result in message.results
        ]

    def _answered(self, call_id: str) -> str:
        """The id that a call was sent under; calls that share one are answered in their order."""
        sent = self._sent_ids.get(call_id)
        if not sent:
            return call_id
        return sent.pop(0) if len(sent) > 1 else sent[0]

    def _own_blocks(self, message: AssistantMessage) -> list[Block] | None:
        """What the same model said, as it said it; None: another one's, or nothing that it has to see so."""
        native = message.native
        if native is None or (native.protocol, native.model) != (PROTOCOL, self.account):
            return None
        blocks: list[Block] = copy.deepcopy(list(native.body["content"]))
        called = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if called != [call.id for call in message.tool_calls]:
            return None  # somebody has taken calls out of the message since
        if not self._with_thoughts:
            blocks = [block for block in blocks if block.get("type") not in THOUGHTS]
        while blocks and blocks[-1].get("type") in THOUGHTS:
            blocks.pop()  # the provider refuses a message that ends in a thought
        for block in blocks:
            if block.get("type") == "tool_use":  # these are not sealed, and a proxy's may not be fit to go back
                block |= {"id": self._sent_id(block["id"]), "name": _sent_name(block["name"])}
        return blocks

    def _foreign_blocks(self, message: AssistantMessage) -> list[Block]:
        return [*_texts(message.text), *(self._call(call) for call in message.tool_calls)]

    def _call(self, call: ToolCall) -> Block:
        return {
            "type": "tool_use",
            "id": self._sent_id(call.id),
            "name": _sent_name(call.name),
            "input": sent_arguments(call.arguments, call.raw_arguments),
        }

    def _sent_id(self, call_id: str) -> str:
        """An id of the provider's form for the next call of the message, unlike all before it."""
        sent = base = _FOREIGN.sub("_", call_id) or "call"
        number = 1
        while sent in self._taken:
            number += 1
            sent = f"{base}_{number}"
        self._taken.add(sent)
        self._sent_ids.setdefault(call_id, []).append(sent)
        return sent


def _sent_name(name: str) -> str:
    return _FOREIGN.sub("_", name)[:_MAX_NAME] or "unnamed"


def sent_arguments(arguments: Mapping[str, Any] | None, raw: str) -> dict[str, Any]:
    """Arguments as the provider takes them: always an object, also where the model gave none."""
    return {"invalid_arguments": raw} if arguments is None else copy.deepcopy(dict(arguments))


def _texts(text: str) -> list[Block]:
    """A text block, or none: the provider refuses blank ones."""
    return [{"type": "text", "text": text}] if text.strip() else []
