"""Requests of OpenAI's responses, out of conversations. Nothing is kept at the provider: every request says it all.

What a model thought goes back encrypted, in the order it came in, and to the same model alone. A turn that was cut off,
or whose thoughts came without their encrypted form, goes back as its text and calls.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, Message, Sampling, ToolSpec, UserMessage
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.openai_requests import NOTHING, PROTOCOL, Body, answers, call_ids, called, clean

OUTPUT = "output"
"""Where the items of a turn are in the body of a native message."""
ENCRYPTED = "reasoning.encrypted_content"
_NEEDED = frozenset({"model", "input", "stream"})
_MOVED = {"reasoning_effort": ("reasoning", "effort"), "verbosity": ("text", "verbosity")}
"""Options by their names in chat completions, and where they are in this protocol."""


def parameters(
    conversation: Conversation,
    tools: Sequence[ToolSpec],
    samplings: Sequence[Sampling],
    *,
    entry: ModelEntry,
    account: str,
    capabilities: Capabilities,
) -> Body:
    """The body of a request, as `Wire.parameters` promises it."""
    system = clean(conversation.system)
    body: Body = {"model": entry.model, "stream": True, "store": False}
    if system and capabilities.system_role != "user":
        body["instructions"] = system
    body["input"] = _input(conversation, account, capabilities)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if capabilities.encrypted_reasoning:
        body["include"] = [ENCRYPTED]
    if capabilities.cache_marks:
        body["prompt_cache_key"] = _prefix_digest(body)
    body |= _sampled(samplings[0], capabilities)
    body |= _options(entry.options)
    return {name: value for name, value in body.items() if name in _NEEDED or capabilities.accepts(name)}


def _sampled(sampling: Sampling, capabilities: Capabilities) -> Body:
    most = capabilities.max_output_tokens
    limit = sampling.max_output_tokens if most is None else min(sampling.max_output_tokens, most)
    body: Body = {capabilities.output_field: limit}
    if capabilities.temperature and sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    return body


def _options(said: Mapping[str, Any]) -> Body:
    options = {name: value for name, value in copy.deepcopy(dict(said)).items() if name not in _MOVED}
    for name, (group, inner) in _MOVED.items():
        if name in said:
            given = options.get(group)
            options[group] = {inner: said[name]} | (given if isinstance(given, dict) else {})
    return options


def _tool(tool: ToolSpec) -> Body:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": copy.deepcopy(dict(tool.parameters)),
        "strict": False,  # the default would hold our schemas to rules that they are not written by
    }


def _prefix_digest(body: Mapping[str, Any]) -> str:
    """Of what stays as a conversation grows, so that its requests come to where its cache is."""
    stable = {name: body.get(name) for name in ("model", "instructions", "tools")} | {"input": body["input"][:1]}
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:32]


def _input(conversation: Conversation, account: str, capabilities: Capabilities) -> list[Body]:
    sent = _Input(account, sends_reasoning=capabilities.encrypted_reasoning)
    if conversation.system and capabilities.system_role == "user":
        sent.add_user(conversation.system)
    followers = (*conversation.messages[1:], None)
    for message, follower in zip(conversation.messages, followers, strict=False):
        if isinstance(message, UserMessage):
            sent.add_user(message.text)
        elif isinstance(message, AssistantMessage):
            sent.add_turn(message, follower)
    if not sent.items:
        sent.add_user("")
    return sent.items


class _Input:
    """The items of a conversation so far."""

    def __init__(self, account: str, *, sends_reasoning: bool) -> None:
        self.items: list[Body] = []
        self._account = account
        self._sends_reasoning = sends_reasoning
        self._taken: set[str] = set()  # ids of calls, by which their answers are found in the whole conversation

    def add_user(self, text: str) -> None:
        """Neighbours become one message, since the templates of some models take only roles in turn."""
        text = clean(text) or NOTHING
        if self.items and self.items[-1].get("role") == "user":
            self.items[-1] = {"role": "user", "content": f"{self.items[-1]['content']}\n\n{text}"}
        else:
            self.items.append({"role": "user", "content": text})

    def add_turn(self, message: AssistantMessage, follower: Message | None) -> None:
        """What the model said, with the answers to its calls."""
        ids = [self._free(identity) for identity in call_ids(message.tool_calls)]
        calls = [
            {"type": "function_call", "call_id": identity, **called(call)}
            for identity, call in zip(ids, message.tool_calls, strict=True)
        ]
        own = self._own_items(message)
        if own is None:
            text = clean(message.text) or ("" if calls else NOTHING)
            self.items += [{"role": "assistant", "content": text}] if text else []
            self.items += calls
        else:
            sent = iter(calls)
            self.items += [item | next(sent) if item["type"] == "function_call" else item for item in own]
        for identity, answer in zip(ids, answers(len(ids), follower), strict=True):
            self.items.append({"type": "function_call_output", "call_id": identity, "output": answer})

    def _own_items(self, message: AssistantMessage) -> list[Body] | None:
        """What the same model said, as it said it; None: another one's, or nothing that it has to see so."""
        native = message.native
        if native is None or not self._sends_reasoning:
            return None
        if (native.protocol, native.model) != (PROTOCOL, self._account) or OUTPUT not in native.body:
            return None
        items: list[Body] = copy.deepcopy(list(native.body[OUTPUT]))
        made = [item["call_id"] for item in items if item["type"] == "function_call"]
        if made != [call.id for call in message.tool_calls]:
            return None  # somebody has taken calls out of the message since
        return items

    def _free(self, identity: str) -> str:
        while identity in self._taken:  # some servers count the calls of every reply from 0
            identity = f"call_{hashlib.sha256(f'{len(self._taken)} {identity}'.encode()).hexdigest()[:24]}"
        self._taken.add(identity)
        return identity
