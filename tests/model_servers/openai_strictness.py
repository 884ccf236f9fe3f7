"""What servers of OpenAI's protocol refuse: what none takes, and what the strictest of them do not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

from tests.model_servers.openai_errors import (
    Refusal,
    bad_request,
    context_length_exceeded,
    unsupported_parameter,
    unsupported_role,
    unsupported_value,
)

KNOWN = frozenset(CompletionCreateParamsStreaming.__required_keys__ | CompletionCreateParamsStreaming.__optional_keys__)
"""Parameters of OpenAI's own server."""
INSTEAD = {"max_tokens": "max_completion_tokens"}
ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_CALL_ID = 40
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


@dataclass(frozen=True, kw_only=True)
class Strictness:
    """What one server does not take."""

    refused: frozenset[str] = frozenset()
    """Parameters and roles, for instance `max_tokens`, `temperature`, `seed`, `n`, `stream_options`, `system`."""
    also_known: frozenset[str] = frozenset()
    """Parameters of its own, for instance `thinking`; what nobody knows is refused."""
    context_tokens: int | None = None
    """Longer requests, at 4 bytes a token, are refused; None: none is."""
    reasoning_back: Literal["demanded", "refused"] | None = None
    """Whether `reasoning_content` must be in the assistant messages that call tools, or in none."""
    tools_need_no_effort: bool = False
    """Whether tools are taken only together with `reasoning_effort: none`, as by GPT-5.6."""


def refusal_of(body: Any, strictness: Strictness) -> Refusal | None:
    """The first thing that is wrong with a request; None: nothing is."""
    if not isinstance(body, dict):
        return bad_request("We could not parse the JSON body of your request. (expected a JSON payload)")
    if not isinstance(body.get("model"), str):
        return bad_request("you must provide a model parameter")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return bad_request("[] is too short - 'messages'", param="messages")
    return (
        _parameters(body, strictness)
        or _tools(body)
        or _effort(body, strictness)
        or _messages(body["messages"], strictness)
        or _length(body, strictness)
    )


def _parameters(body: Mapping[str, Any], strictness: Strictness) -> Refusal | None:
    for name, value in body.items():
        if name in strictness.refused:
            return _unsupported(name, value)
        if name not in KNOWN | strictness.also_known:
            return bad_request(f"Unrecognized request argument supplied: {name}")
    if "max_tokens" in body and "max_completion_tokens" in body:
        return bad_request("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    if "stream_options" in body and not body.get("stream"):
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return bad_request(message, param="stream_options")
    return _bounds(body)


def _unsupported(name: str, value: object) -> Refusal:
    if name in ("temperature", "n"):
        return unsupported_value(name, value)
    return unsupported_parameter(name, INSTEAD.get(name))


def _bounds(body: Mapping[str, Any]) -> Refusal | None:
    for name in ("max_tokens", "max_completion_tokens", "n"):
        if name in body and (type(body[name]) is not int or body[name] < 1):
            return bad_request(f"Invalid '{name}': integer below minimum value.", param=name)
    if "seed" in body and (type(body["seed"]) is not int or not -(2**63) <= body["seed"] < 2**63):
        return bad_request("Invalid 'seed': integer above maximum value.", param="seed")
    if "temperature" in body and not 0 <= body["temperature"] <= 2:
        return bad_request("Invalid 'temperature': decimal above maximum value.", param="temperature")
    return None


def _tools(body: Mapping[str, Any]) -> Refusal | None:
    if "tools" not in body:
        return None
    if not body["tools"]:
        return bad_request("[] is too short - 'tools'", param="tools")
    for index, tool in enumerate(body["tools"]):
        function = tool.get("function") if tool.get("type") == "function" else None
        if not isinstance(function, dict) or not isinstance(function.get("parameters"), dict):
            return bad_request(f"Invalid type for 'tools[{index}].function'.", param=f"tools[{index}].function")
        if not _NAME.fullmatch(function["name"]):
            return _no_name(f"tools[{index}].function.name")
    return None


def _effort(body: Mapping[str, Any], strictness: Strictness) -> Refusal | None:
    if not strictness.tools_need_no_effort or "tools" not in body or body.get("reasoning_effort") == "none":
        return None
    return bad_request(
        f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        param="reasoning_effort",
    )


def _messages(messages: Sequence[Any], strictness: Strictness) -> Refusal | None:
    owed: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return bad_request(f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}.")
        if role in strictness.refused:
            return unsupported_role(index, role)
        if role == "tool":
            refusal = _result(index, message, owed)
            owed.discard(message.get("tool_call_id"))
        elif owed:
            return _unanswered(owed)
        elif role == "assistant":
            refusal = _assistant(index, message, strictness)
            owed = {call["id"] for call in message.get("tool_calls") or ()} if refusal is None else set()
        else:
            refusal = _text(index, message.get("content"))
        if refusal is not None:
            return refusal
    return _unanswered(owed) if owed else None


def _unanswered(owed: set[str]) -> Refusal:
    return bad_request(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(sorted(owed))}",
        param="messages",
    )


def _text(index: int, content: Any) -> Refusal | None:
    if isinstance(content, str):
        return None
    return bad_request(f"Invalid value for 'content': expected a string, got {content!r}.", param=f"messages.[{index}]")


def _result(index: int, message: Mapping[str, Any], owed: set[str]) -> Refusal | None:
    if message.get("tool_call_id") not in owed:
        return bad_request(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    return _text(index, message.get("content"))


def _assistant(index: int, message: Mapping[str, Any], strictness: Strictness) -> Refusal | None:
    calls, place = message.get("tool_calls"), f"messages[{index}]"
    if calls == []:
        return bad_request(f"Invalid '{place}.tool_calls': empty array.", param=f"{place}.tool_calls")
    if not calls and not message.get("content"):
        return bad_request("Invalid assistant message: content or tool_calls must be set")
    if message.get("content") is not None and (refusal := _text(index, message["content"])):
        return refusal
    has_reasoning = isinstance(message.get("reasoning_content"), str)
    if strictness.reasoning_back == "demanded" and calls and not has_reasoning:
        return bad_request("The `reasoning_content` in the thinking mode must be passed back to the API.")
    if strictness.reasoning_back == "refused" and "reasoning_content" in message:
        return bad_request(f"'messages.{index}' : property 'reasoning_content' is unsupported")
    return _calls(place, calls or ())


def _calls(place: str, calls: Sequence[Any]) -> Refusal | None:
    ids = [call.get("id") for call in calls]
    if len(set(ids)) < len(ids):
        return bad_request(f"Duplicate value for 'tool_call_id' in {place}", param=f"{place}.tool_calls")
    for number, call in enumerate(calls):
        here = f"{place}.tool_calls[{number}]"
        if not isinstance(call.get("id"), str) or not 0 < len(call["id"]) <= MAX_CALL_ID:
            message = f"Invalid '{here}.id': string too long. Expected a string with maximum length {MAX_CALL_ID}."
            return bad_request(message, param=f"{here}.id", code="string_above_max_length")
        if call.get("type") != "function" or not _NAME.fullmatch(call["function"]["name"]):
            return _no_name(f"{here}.function.name")
        try:
            arguments = json.loads(call["function"]["arguments"])
        except (ValueError, TypeError) as error:
            return bad_request(str(error))  # as vLLM says it
        if not isinstance(arguments, dict):
            return bad_request(f"{here}.function.arguments: dictionary expected")
    return None


def _no_name(place: str) -> Refusal:
    message = f"Invalid '{place}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
    return bad_request(message, param=place, code="invalid_value")


def _length(body: Mapping[str, Any], strictness: Strictness) -> Refusal | None:
    if strictness.context_tokens is None:
        return None
    used = len(json.dumps(body["messages"])) // 4
    return context_length_exceeded(strictness.context_tokens, used) if used > strictness.context_tokens else None
