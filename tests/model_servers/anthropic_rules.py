"""What the Messages API refuses, in its words."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.model_servers.anthropic_thinking import THOUGHTS, refusal_of_budget, refusal_of_thoughts

PARAMETERS = frozenset(
    (
        *("max_tokens", "messages", "model", "cache_control", "container", "diagnostics", "inference_geo", "metadata"),
        *("output_config", "service_tier", "speed", "stop_sequences", "stream", "system", "temperature", "thinking"),
        *("tool_choice", "tools", "top_k", "top_p"),
    )
)
_COUNT_PARAMETERS = PARAMETERS - {"max_tokens", "stream", "temperature", "top_k", "top_p", "stop_sequences"}
_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "mystery": {"type", "essence"},  # stands for block types that no client knows yet
}
_SECRET = b"of the provider"
_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


class Refused(Exception):
    """The request is answered with 400 and this message."""


def signature(model: str, thinking: str) -> str:
    """What proves that a model thought this."""
    return base64.b64encode(hmac.digest(_SECRET, f"{model}\0{thinking}".encode(), hashlib.sha256)).decode()


def redacted(model: str, number: int) -> str:
    """A thought that only the provider can read."""
    seal = hmac.digest(_SECRET, f"{model}\0redacted\0{number}".encode(), hashlib.sha256)
    return base64.b64encode(f"{number}:".encode() + seal).decode()


def check_request(
    body: Any, *, refuses: Mapping[str, str], most_output: int, most_input: int, counts: bool = False
) -> None:
    """Look through a request body.

    Raises:
        Refused: The provider would not take it.
    """
    if not isinstance(body, dict):
        raise Refused("The request body is not valid JSON")
    for name in ("model", "messages") if counts else ("model", "max_tokens", "messages"):
        if name not in body:
            raise Refused(f"{name}: Field required")
    for name in body:
        if name in refuses:
            raise Refused(refuses[name])
        if name not in (_COUNT_PARAMETERS if counts else PARAMETERS):
            raise Refused(f"{name}: Extra inputs are not permitted")
    _check_sampling(body, most_output)
    _check_tools(body.get("tools", []))
    _check_system(body.get("system", "system"))
    _check_messages(body["messages"], body["model"])
    if refusal := refusal_of_thoughts(_turns(body["messages"]), body.get("thinking"), body["model"]):
        raise Refused(refusal)
    if len(list(_marks(body))) > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(list(_marks(body)))}.")
    if not counts and (tokens := tokens_of(body)) > most_input:
        raise Refused(f"prompt is too long: {tokens} tokens > {most_input} maximum")


def tokens_of(body: Mapping[str, Any]) -> int:
    """About as many as a tokenizer would count."""
    return len(json.dumps([body.get("system"), body.get("tools"), body["messages"]])) // 4


def _check_sampling(body: Mapping[str, Any], most_output: int) -> None:
    if (most := body.get("max_tokens", 1)) > most_output:
        raise Refused(
            f"max_tokens: {most} > {most_output}, which is the maximum allowed number of output tokens for "
            f"{body['model']}"
        )
    if most < 1:
        raise Refused("max_tokens: Input should be greater than or equal to 1")
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        raise Refused("temperature: range: 0..1")
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking["type"] not in ("enabled", "disabled", "between_tools", "adaptive"):
        raise Refused(
            f"thinking: Input tag '{thinking['type']}' found using 'type' does not match any of the expected tags"
        )
    if thinking["type"] == "enabled":
        if (refusal := refusal_of_budget(thinking, most)) is not None:
            raise Refused(refusal)
        if temperature not in (None, 1):
            raise Refused("`temperature` may only be set to 1 when thinking is enabled")


def _check_tools(tools: list[dict[str, Any]]) -> None:
    names: set[str] = set()
    for number, tool in enumerate(tools):
        at = f"tools.{number}.custom"
        if unknown := set(tool) - {"name", "description", "input_schema", "cache_control", "type", "strict"}:
            raise Refused(f"{at}.{min(unknown)}: Extra inputs are not permitted")
        if not _TOOL_NAME.match(tool["name"]):
            raise Refused(f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["input_schema"].get("type") != "object":
            raise Refused(f"{at}.input_schema.type: Input should be 'object'")
        if tool["name"] in names:
            raise Refused("tools: Tool names must be unique.")
        names.add(tool["name"])


def _check_system(system: str | list[dict[str, Any]]) -> None:
    if isinstance(system, list):
        for number, block in enumerate(system):
            if block.get("type") != "text":
                raise Refused(f"system.{number}.type: Input should be 'text'")
            _check_text(block, f"system.{number}", "system")


def _check_text(block: Mapping[str, Any], at: str, where: str) -> None:
    if not block["text"]:
        if "cache_control" in block:
            raise Refused(f"{at}: cache_control cannot be set for empty text blocks")
        raise Refused(f"{where}: text content blocks must be non-empty")
    if not block["text"].strip():
        raise Refused(f"{where}: text content blocks must contain non-whitespace text")


def _check_messages(messages: list[dict[str, Any]], model: str) -> None:
    if not messages:
        raise Refused("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    turns = _turns(messages)
    seen: set[str] = set()
    for number, (role, blocks) in enumerate(turns):
        if not blocks:
            raise Refused(
                f"messages.{number}: all messages must have non-empty content except for the optional final "
                "assistant message"
            )
        for place, block in enumerate(blocks):
            _check_block(block, role, f"messages.{number}.content.{place}", model)
        if role == "assistant" and blocks[-1]["type"] in THOUGHTS:
            raise Refused(f"messages.{number}: The final block in an assistant message cannot be `thinking`.")
        _check_results(turns, number)
        for used in _ids(blocks, "tool_use", "id"):
            if used in seen:
                raise Refused("messages: `tool_use` ids must be unique")
            seen.add(used)
    if turns[-1][0] == "assistant":
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _turns(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Messages of one role in a row count as one."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for number, message in enumerate(messages):
        if set(message) != {"role", "content"}:
            raise Refused(f"messages.{number}: Extra inputs are not permitted")
        if message["role"] not in ("user", "assistant"):
            raise Refused(f'messages: Unexpected role "{message["role"]}".')
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def _check_block(block: Mapping[str, Any], role: str, at: str, model: str) -> None:
    kind = block.get("type", "")
    if kind not in _FIELDS or (kind != "text" and (kind == "tool_result") != (role == "user")):
        raise Refused(f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if unknown := set(block) - _FIELDS[kind]:
        raise Refused(f"{at}.{kind}.{min(unknown)}: Extra inputs are not permitted")
    if kind == "text":
        _check_text(block, at, "messages")
    elif kind == "thinking" and block["signature"] != signature(model, block["thinking"]):
        raise Refused(f"{at}: Invalid `signature` in `thinking` block")
    elif kind == "redacted_thinking" and not _is_ours(block["data"], model):
        raise Refused(f"{at}: Invalid `data` in `redacted_thinking` block")
    elif kind == "tool_use":
        _check_call(block, at)
    elif kind == "tool_result" and not isinstance(block.get("content", ""), str):
        for part in block["content"]:
            _check_text(part, at, "messages")


def _check_call(block: Mapping[str, Any], at: str) -> None:
    if not _ID.match(block["id"]):
        raise Refused(f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not _TOOL_NAME.match(block["name"]):
        raise Refused(f"{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'")
    if not isinstance(block["input"], dict):
        raise Refused(f"{at}.tool_use.input: Input should be a valid dictionary")


def _is_ours(data: str, model: str) -> bool:
    number = base64.b64decode(data).split(b":", 1)[0]
    return number.isdigit() and data == redacted(model, int(number))


def _check_results(turns: list[tuple[str, list[dict[str, Any]]]], number: int) -> None:
    role, blocks = turns[number]
    if role == "assistant":
        after = turns[number + 1][1] if number + 1 < len(turns) else []
        if missing := [
            call for call in _ids(blocks, "tool_use", "id") if call not in _ids(after, "tool_result", "tool_use_id")
        ]:
            raise Refused(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        return
    known = _ids(turns[number - 1][1], "tool_use", "id") if number else []
    answered: set[str] = set()
    for place, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        if block["tool_use_id"] not in known:
            raise Refused(
                f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message."
            )
        if block["tool_use_id"] in answered:
            raise Refused(f"messages.{number}.content.{place}: each tool_use must have a single result.")
        if place and blocks[place - 1]["type"] != "tool_result":
            raise Refused(f"messages.{number}: `tool_result` blocks must come before any other content")
        answered.add(block["tool_use_id"])


def _ids(blocks: list[dict[str, Any]], kind: str, field: str) -> list[str]:
    return [block[field] for block in blocks if block.get("type") == kind]


def _marks(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if value.get("cache_control"):
            yield value
        for name, inner in value.items():
            if name not in ("input", "input_schema"):
                yield from _marks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marks(inner)
