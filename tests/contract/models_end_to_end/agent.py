"""A provider's model that really improves programs: the offline engine behind each protocol.

What it answers depends on the request alone. It looks past messages that came to nothing (no call, or calls that all
failed), as if they had never been said, so that a run takes the same course whatever goes wrong on its way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.domain.model_access import Provider
from orchestrator.llm.offline import OfflineModel
from tests.model_servers.base import Call, Received, Turn

EFFORT = 0.02
PIECE = 2000
"""Characters of a streamed piece; a reply of a few is cut in its middle all the same."""
_ENGINE = OfflineModel(effort=EFFORT)
_SAMPLING = Sampling(seed=7)
_ERROR = "error: "


def answer(provider: Provider, request: Received) -> Turn:
    """The engine's next message, with a usage in which every kind of token occurs."""
    conversation, tools = _read(provider, request.body)
    reply = _ENGINE.complete(looked_past(conversation), tools, _SAMPLING).message
    size = len(json.dumps(request.body)) // 4
    written = 25 if provider is Provider.ANTHROPIC else 0
    output = len(reply.text) // 4 + sum(len(call.raw_arguments) for call in reply.tool_calls) // 4 + 10
    return Turn(
        text=reply.text,
        calls=tuple(Call(name=call.name, arguments=call.raw_arguments, id=call.id) for call in reply.tool_calls),
        input_tokens=size - size // 2,
        cached_tokens=size // 2,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=output // 5,
        piece=PIECE,
    )


def looked_past(conversation: Conversation) -> Conversation:
    """The same conversation without the messages that came to nothing, and our answers to them."""
    kept: list[Message] = [conversation.messages[0]]
    rest = conversation.messages[1:]
    for message, after in zip(rest, (*rest[1:], None), strict=False):
        if isinstance(message, UserMessage):
            kept += [message] if "handoff" in message.text else []
        elif isinstance(message, AssistantMessage):
            is_fruitful = isinstance(after, ToolMessage) and not all(result.is_error for result in after.results)
            kept += [message, after] if is_fruitful and after is not None else []
    return Conversation(system=conversation.system, messages=tuple(kept))


def _read(provider: Provider, body: Mapping[str, Any]) -> tuple[Conversation, tuple[ToolSpec, ...]]:
    if provider is Provider.ANTHROPIC:
        system = "".join(block["text"] for block in body.get("system", ()))
        specs = [(tool["name"], tool["description"], tool["input_schema"]) for tool in body["tools"]]
        messages = list(_anthropic_messages(body["messages"]))
    elif "input" in body:
        system = body["instructions"]
        specs = [(tool["name"], tool["description"], tool["parameters"]) for tool in body["tools"]]
        messages = list(_responses_messages(body["input"]))
    else:
        system = body["messages"][0]["content"]
        functions = [tool["function"] for tool in body["tools"]]
        specs = [(function["name"], function["description"], function["parameters"]) for function in functions]
        messages = list(_openai_messages(body["messages"][1:]))
    tools = tuple(ToolSpec(name=name, description=text, parameters=schema) for name, text, schema in specs)
    return Conversation(system=system, messages=tuple(messages)), tools


def _anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    for message in messages:
        blocks = message["content"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if message["role"] == "assistant":
            called = [block for block in blocks if block["type"] == "tool_use"]
            calls = tuple(ToolCall(id=one["id"], name=one["name"], arguments=one["input"]) for one in called)
            yield AssistantMessage(text="".join(texts), tool_calls=calls)
            continue
        results = [block for block in blocks if block["type"] == "tool_result"]
        if results:
            yield ToolMessage(
                results=tuple(
                    ToolResult(
                        call_id=one["tool_use_id"], text=one.get("content", ""), is_error=one.get("is_error", False)
                    )
                    for one in results
                )
            )
        for text in texts:
            yield UserMessage(text=text)


def _openai_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    results: list[ToolResult] = []
    for message in messages:
        text = message["content"] or ""
        if message["role"] == "tool":
            results.append(_result(message["tool_call_id"], text))
            continue
        if results:
            yield ToolMessage(results=tuple(results))
            results = []
        if message["role"] == "user":
            yield UserMessage(text=text)
        else:
            calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
            yield AssistantMessage(
                text=text,
                tool_calls=tuple(
                    ToolCall(id=identity, name=function["name"], arguments=json.loads(function["arguments"]))
                    for identity, function in calls
                ),
            )
    if results:
        yield ToolMessage(results=tuple(results))


def _responses_messages(items: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Items of one side in a row are one message; thoughts can be read by nobody."""
    for kind, group in groupby((item for item in items if item.get("type") != "reasoning"), key=_side):
        said = list(group)
        if kind == "user":
            yield from (UserMessage(text=item["content"]) for item in said)
        elif kind == "tool":
            yield ToolMessage(results=tuple(_result(item["call_id"], item["output"]) for item in said))
        else:
            texts = [item["content"] for item in said if item.get("role") == "assistant"]
            calls = tuple(
                ToolCall(id=item["call_id"], name=item["name"], arguments=json.loads(item["arguments"]))
                for item in said
                if item.get("type") == "function_call"
            )
            yield AssistantMessage(text="".join(map(_plain, texts)), tool_calls=calls)


def _side(item: Mapping[str, Any]) -> str:
    if item.get("type") == "function_call_output":
        return "tool"
    return "user" if item.get("role") == "user" else "assistant"


def _plain(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _result(call_id: str, text: str) -> ToolResult:
    return ToolResult(call_id=call_id, text=text, is_error=text.lower().startswith(_ERROR))
