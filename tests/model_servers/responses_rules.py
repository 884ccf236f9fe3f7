"""What OpenAI refuses in a request for a response, in its words; it keeps nothing, as with `store: false`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, get_args

from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_includable import ResponseIncludable

from tests.model_servers.openai_errors import Refusal, bad_request, error_body, unsupported_parameter

KNOWN = frozenset(ResponseCreateParamsStreaming.__required_keys__ | ResponseCreateParamsStreaming.__optional_keys__)
"""Parameters of OpenAI's own server."""
MAX_CALL_ID = 64
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_OUTPUTS = ("function_call", "message")


@dataclass(frozen=True, kw_only=True)
class ResponsesStrictness:
    """What one server does not take."""

    refused: frozenset[str] = frozenset()
    """Parameters, for instance `temperature`, `include`, `prompt_cache_key`, `instructions`."""
    reasons: bool = True
    """Whether its models do; of others nobody may ask for encrypted reasoning."""
    context_tokens: int | None = None
    """Longer requests, at 4 bytes a token, are refused; None: none is."""


@dataclass(kw_only=True)
class Memory:
    """What a server can tell of items that come back, without having kept them."""

    issued: dict[str, str] = field(default_factory=dict)
    """Models by the encrypted reasoning they made."""
    reasoning_of: dict[str, str] = field(default_factory=dict)
    """Ids of reasoning items, by those of the items that followed them."""


def refusal_of(body: Any, strictness: ResponsesStrictness, memory: Memory) -> Refusal | None:
    """The first thing that is wrong with a request; None: nothing is."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return bad_request("Missing required parameter: 'model'.", param="model", code="missing_required_parameter")
    if body.get("store") is not False:
        return bad_request("Store must be set to false", param="store")  # as where nothing may be kept
    if not isinstance(body.get("input"), list) or not body["input"]:
        return bad_request("Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    checks = (
        _parameters(body, strictness),
        _tools(body.get("tools")),
        _items(body["input"], body["model"], memory),
        _length(body, strictness),
    )
    return next((refusal for refusal in _flat(checks) if refusal is not None), None)


def _flat(checks: Sequence[Iterator[Refusal | None]]) -> Iterator[Refusal | None]:
    for check in checks:
        yield from check


def _parameters(body: Mapping[str, Any], strictness: ResponsesStrictness) -> Iterator[Refusal | None]:
    for name in body:
        if name in strictness.refused:
            yield unsupported_parameter(name)
        if name == "reasoning_effort":
            yield bad_request(
                "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
                "'reasoning.effort'. Try again with the new parameter.",
                code="unsupported_parameter",
            )
        if name not in KNOWN:
            yield bad_request(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    limit = body.get("max_output_tokens", 16)
    if type(limit) is not int or limit < 16:
        yield bad_request(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {limit}.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    if not 0 <= body.get("temperature", 1) <= 2:
        yield bad_request("Invalid 'temperature': decimal above maximum value.", param="temperature")
    for value in body.get("include", ()):
        if value not in get_args(ResponseIncludable):
            yield bad_request(f"Invalid value: '{value}'.", param="include[0]", code="invalid_value")
        if value == "reasoning.encrypted_content" and not strictness.reasons:
            yield bad_request("Encrypted content is not supported with this model.", param="include")


def _tools(tools: Any) -> Iterator[Refusal | None]:
    if tools is None:
        return
    for index, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("parameters"), dict):
            yield bad_request(f"Missing required parameter: 'tools[{index}].parameters'.", param=f"tools[{index}]")
        if not _NAME.fullmatch(str(tool.get("name"))):
            yield _no_name(f"tools[{index}].name")
        if tool.get("strict") is not False and tool["parameters"].get("additionalProperties") is not False:
            yield bad_request(
                f"Invalid schema for function '{tool['name']}': In context=(), 'additionalProperties' is required to "
                "be supplied and to be false.",
                param=f"tools[{index}].parameters",
                code="invalid_function_parameters",
            )


def _items(items: Sequence[Any], model: str, memory: Memory) -> Iterator[Refusal | None]:
    called: set[str] = set()
    answered: set[str] = set()
    ids = [item.get("id") for item in items if item.get("id")]
    for index, (item, follower) in enumerate(zip_longest(items, items[1:], fillvalue=None)):
        kind = item.get("type", "message")
        if kind == "reasoning":
            yield _reasoning(item, follower, model, memory)
        elif kind == "function_call":
            yield _call(f"input[{index}]", item, called)
            called.add(item["call_id"])
        elif kind == "function_call_output":
            yield _answer(f"input[{index}]", item, called - answered)
            answered.add(item["call_id"])
        elif kind == "message":
            yield _message(f"input[{index}]", item)
        else:
            yield bad_request(f"Invalid value: '{kind}'.", param=f"input[{index}].type", code="invalid_value")
        owner = memory.reasoning_of.get(item.get("id", ""))
        if owner is not None and owner not in ids:
            yield bad_request(
                f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: '{owner}'.",
                param="input",
            )
    if len(set(ids)) < len(ids):
        yield bad_request(f"Duplicate item found with id {ids[0]}. Remove duplicate items from your input.")
    for call_id in sorted(called - answered):
        yield bad_request(f"No tool output found for function call {call_id}.", param="input")


def _reasoning(item: Mapping[str, Any], follower: Any, model: str, memory: Memory) -> Refusal | None:
    identity, encrypted = item.get("id"), item.get("encrypted_content")
    if not isinstance(identity, str) or not isinstance(item.get("summary"), list):
        return bad_request("Missing required parameter: 'input[0].summary'.", code="missing_required_parameter")
    if encrypted is None and not item.get("content"):
        message = (
            f"Item with id '{identity}' not found. Items are not persisted when `store` is set to false. Try again "
            "with `store` set to true, or remove this item from your input."
        )
        return Refusal(status=404, body=error_body(message, "invalid_request_error", param="input"))
    if encrypted is not None and memory.issued.get(encrypted) != model:
        return bad_request(
            f"The encrypted content {encrypted[:8]}... could not be verified. Reason: Encrypted content could not be "
            "decrypted or parsed.",
            code="invalid_encrypted_content",
        )
    if follower is None or (follower.get("type", "message") not in _OUTPUTS and follower.get("type") != "reasoning"):
        return _nothing_follows(identity)
    return _nothing_follows(identity) if follower.get("role", "assistant") != "assistant" else None


def _nothing_follows(identity: str) -> Refusal:
    message = f"Item '{identity}' of type 'reasoning' was provided without its required following item."
    return bad_request(message, param="input")


def _message(place: str, item: Mapping[str, Any]) -> Refusal | None:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        return bad_request(f"Invalid value: '{role}'.", param=f"{place}.role", code="invalid_value")
    wanted = ("output_text", "refusal") if role == "assistant" else ("input_text",)
    for part in () if isinstance(content, str) else content:
        if part["type"] not in wanted or not isinstance(part.get("text"), str):
            return bad_request(f"Invalid value: '{part['type']}'.", param=f"{place}.content[0]", code="invalid_value")
    return None if content else bad_request(f"Invalid '{place}.content': empty.", param=f"{place}.content")


def _call(place: str, item: Mapping[str, Any], called: set[str]) -> Refusal | None:
    if not isinstance(item.get("call_id"), str) or not 0 < len(item["call_id"]) <= MAX_CALL_ID:
        message = f"Invalid '{place}.call_id': string too long. Expected a string with maximum length {MAX_CALL_ID}."
        return bad_request(message, param=f"{place}.call_id", code="string_above_max_length")
    if item["call_id"] in called:
        return bad_request(f"Duplicate call_id {item['call_id']}", param=f"{place}.call_id")
    if not _NAME.fullmatch(str(item.get("name"))):
        return _no_name(f"{place}.name")
    try:
        arguments = json.loads(item["arguments"])
    except (ValueError, TypeError, KeyError) as error:
        return bad_request(str(error))  # as vLLM says it
    return None if isinstance(arguments, dict) else bad_request(f"{place}.arguments: dictionary expected")


def _answer(place: str, item: Mapping[str, Any], owed: set[str]) -> Refusal | None:
    if item.get("call_id") not in owed:
        message = f"No tool call found for function call output with call_id {item.get('call_id')}."
        return bad_request(message, param="input")
    if isinstance(item.get("output"), str) and item["output"]:
        return None
    return bad_request(f"Missing required parameter: '{place}.output'.", param=f"{place}.output")


def _no_name(place: str) -> Refusal:
    message = f"Invalid '{place}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
    return bad_request(message, param=place, code="invalid_value")


def _length(body: Mapping[str, Any], strictness: ResponsesStrictness) -> Iterator[Refusal | None]:
    if strictness.context_tokens is not None and len(json.dumps(body["input"])) // 4 > strictness.context_tokens:
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
        yield bad_request(message, param="input", code="context_length_exceeded")
