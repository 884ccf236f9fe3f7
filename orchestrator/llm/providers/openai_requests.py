"""Requests of OpenAI's chat completions, out of conversations, so that the strictest servers take them.

A model's own doing must never make a conversation unsendable: names and ids it made up are brought into form, arguments
that were no JSON object are wrapped into one, and calls that nobody answered get an answer.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
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
from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.llm.providers.capabilities import Capabilities

PROTOCOL = Provider.OPENAI.value
REASONING = "reasoning"
"""Where the reasoning is in the body of a native message, whatever field its server has for it."""
NOTHING = "(nothing)"
"""Stands for an empty message, which many servers refuse."""
_ERROR_MARK = "Error: "
_UNANSWERED = "Error: this call was not carried out."
_NEEDED = frozenset({"model", "messages", "stream"})
_SEED_BITS = 31  # the least that any server takes
_MAX_CALL_ID = 40
_MAX_NAME = 64

Body = dict[str, Any]


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
    messages = _messages(conversation, account, capabilities)
    body: Body = {"model": entry.model, "messages": messages, "stream": True}
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
        if capabilities.effort_with_tools is not None:
            body["reasoning_effort"] = capabilities.effort_with_tools
    if capabilities.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if capabilities.cache_marks:
        body["prompt_cache_key"] = _prefix_digest(body)
    body |= _sampled(samplings, capabilities)
    body |= copy.deepcopy(entry.options)
    return {name: value for name, value in body.items() if name in _NEEDED or capabilities.accepts(name)}


def _sampled(samplings: Sequence[Sampling], capabilities: Capabilities) -> Body:
    first = samplings[0]
    most = capabilities.max_output_tokens
    limit = first.max_output_tokens if most is None else min(first.max_output_tokens, most)
    body: Body = {capabilities.output_field: limit}
    if capabilities.temperature and first.temperature is not None:
        body["temperature"] = first.temperature
    if capabilities.seed:
        body["seed"] = first.seed % (1 << _SEED_BITS)
    if len(samplings) > 1:
        body["n"] = len(samplings)
    return body


def _tool(tool: ToolSpec) -> Body:
    function = {"name": tool.name, "description": tool.description, "parameters": copy.deepcopy(dict(tool.parameters))}
    return {"type": "function", "function": function}


def _prefix_digest(body: Mapping[str, Any]) -> str:
    """Of what stays as a conversation grows, so that its requests come to where its cache is."""
    stable = {"model": body["model"], "messages": body["messages"][:2], "tools": body.get("tools")}
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:32]


def _messages(conversation: Conversation, account: str, capabilities: Capabilities) -> list[Body]:
    system = clean(conversation.system)
    sent: list[Body] = []
    if system and capabilities.system_role != "user":
        sent.append({"role": capabilities.system_role, "content": system})
    elif system:
        sent.append({"role": "user", "content": system})
    followers = (*conversation.messages[1:], None)
    for message, next_message in zip(conversation.messages, followers, strict=False):
        if isinstance(message, UserMessage):
            _add_user(sent, message.text)
        elif isinstance(message, AssistantMessage):
            sent.extend(_turn(message, next_message, account, capabilities))
    return sent


def _add_user(sent: list[Body], text: str) -> None:
    """Neighbours become one message, since the templates of some models take only roles in turn."""
    text = clean(text) or NOTHING
    if sent and sent[-1]["role"] == "user":
        sent[-1] = {"role": "user", "content": f"{sent[-1]['content']}\n\n{text}"}
    else:
        sent.append({"role": "user", "content": text})


def _turn(
    message: AssistantMessage, follower: Message | None, account: str, capabilities: Capabilities
) -> Iterator[Body]:
    """What the model said, with the answers to its calls."""
    text = clean(message.text)
    body: Body = {"role": "assistant", "content": text or (None if message.tool_calls else NOTHING)}
    ids = call_ids(message.tool_calls)
    if message.tool_calls:
        body["tool_calls"] = [_call(call, identity) for call, identity in zip(message.tool_calls, ids, strict=True)]
    if (name := capabilities.reasoning_field) is not None:
        reasoning = _own_reasoning(message, account)
        if reasoning or message.tool_calls:
            body[name] = reasoning  # servers that want it back miss it in every turn that calls tools
    yield body
    for identity, answer in zip(ids, answers(len(ids), follower), strict=True):
        yield {"role": "tool", "tool_call_id": identity, "content": answer}


def answers(calls: int, follower: Message | None) -> Iterator[str]:
    """What is said to each of so many calls, by the message after them."""
    results = follower.results if isinstance(follower, ToolMessage) else ()
    for index in range(calls):
        result = results[index] if index < len(results) else None
        said = _UNANSWERED if result is None else clean(result.text) or NOTHING
        needs_mark = result is not None and result.is_error and not said.lower().startswith(_ERROR_MARK.lower())
        yield (_ERROR_MARK if needs_mark else "") + said


def _own_reasoning(message: AssistantMessage, account: str) -> str:
    native = message.native
    if native is None or (native.protocol, native.model) != (PROTOCOL, account):
        return ""
    reasoning = native.body.get(REASONING)
    return clean(reasoning) if isinstance(reasoning, str) else ""


def _call(call: ToolCall, identity: str) -> Body:
    return {"id": identity, "type": "function", "function": called(call)}


def called(call: ToolCall) -> dict[str, str]:
    """Name and arguments of a call, as every server takes them."""
    arguments = {"invalid_arguments": call.raw_arguments} if call.arguments is None else dict(call.arguments)
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:_MAX_NAME] or "unnamed"
    return {"name": name, "arguments": clean(json.dumps(arguments, ensure_ascii=False))}


def call_ids(calls: Sequence[ToolCall]) -> list[str]:
    """Ids of calls, also of other providers', as every server takes them; all different."""
    ids: list[str] = []
    for number, call in enumerate(calls):
        is_usable = re.fullmatch(r"[a-zA-Z0-9_-]+", call.id) is not None and len(call.id) <= _MAX_CALL_ID
        if is_usable and call.id not in ids:
            ids.append(call.id)
        else:
            ids.append(f"call_{hashlib.sha256(f'{number} {call.id!r}'.encode()).hexdigest()[:24]}")
    return ids


def clean(text: str) -> str:
    """Without lone surrogates, which no request can hold."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
