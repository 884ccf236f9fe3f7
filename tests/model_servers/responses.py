"""OpenAI's responses as OpenAI streams them, event by event, and as strict as it is with what comes back.

In a `Turn`, `input_tokens` is what was neither read from a cache nor written into one; the protocol's `input_tokens` is
the sum of all three. `stop` is the reason of an incomplete response (`max_output_tokens`, `content_filter`), or
`refusal`, which sends the text as a refusal, or `failed`, which ends in an error with the text as its message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_servers.base import KEY, Answer, Call, Received, Responder, Script, Trouble, Turn
from tests.model_servers.openai import CREATED, MODEL, Flavour, OpenAIServer
from tests.model_servers.openai_errors import error_body, model_not_found
from tests.model_servers.responses_rules import Memory, ResponsesStrictness, refusal_of

Event = dict[str, Any]


class ResponsesServer(OpenAIServer):
    """Responses on 127.0.0.1, and the list of models of `OpenAIServer`; chat completions are not served.

    Args (of the constructor):
        models: What it serves; others get a 404.
        flavour: Of the list of models, and whether it streams.
        rules: What it refuses, besides what is wrong at OpenAI.
    """

    def __init__(
        self,
        script: Script | Sequence[Answer],
        *,
        key: str | None = KEY,
        models: Sequence[str] = (MODEL,),
        flavour: Flavour | None = None,
        rules: ResponsesStrictness | None = None,
    ) -> None:
        super().__init__(script, key=key, models=models, flavour=flavour)
        self.rules = rules or ResponsesStrictness()
        self.memory = Memory()

    def forget(self) -> None:
        """From now on no encrypted reasoning can be read, as by another organisation."""
        self.memory.issued.clear()

    def handle(self, request: Received, respond: Responder) -> None:
        path = request.path.partition("?")[0]
        if request.method == "POST" and path == f"{self.base_path}/responses":
            self._respond(request, respond)
        elif request.method == "POST":
            self.note_other(request)
            respond.json(404, error_body(f"Invalid URL (POST {path})", "invalid_request_error"))
        else:
            super().handle(request, respond)

    def _respond(self, request: Received, respond: Responder) -> None:
        refusal = self._no_access(request) or refusal_of(request.body, self.rules, self.memory)
        if refusal is None and request.body["model"] not in self.models:
            refusal = model_not_found(request.body["model"])
        if refusal is not None:
            with self._lock:
                self.refused.append(request)
            respond.json(refusal.status, refusal.body)
            return
        answer = self.answer_to(request)
        if isinstance(answer, Trouble):
            self._fail(request.body, answer, respond)
        else:
            self._say(request.body, [answer] if isinstance(answer, Turn) else answer, respond, None)

    def _say(self, body: Mapping[str, Any], turns: Sequence[Turn], respond: Responder, trouble: Trouble | None) -> None:
        with self._lock:
            reply = _Reply(body, turns[0], len(self.requests), self.memory)
        headers = {**(trouble.headers if trouble else {}), "x-request-id": f"req_{len(self.requests):08d}"}
        if body.get("stream") and not self.flavour.never_streams:
            respond.stream(self._troubled(map(event, numbered(reply.events())), trouble), headers)
        else:
            respond.json(200, reply.response(is_last=True), headers)


def event(data: Mapping[str, Any]) -> bytes:
    """A server-sent event, which has its type twice."""
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def numbered(events: Iterator[Event]) -> Iterator[Event]:
    """Events in their order."""
    for number, each in enumerate(events):
        yield {**each, "sequence_number": number}


class _Reply:
    """One turn, as items and as events."""

    def __init__(self, body: Mapping[str, Any], turn: Turn, number: int, memory: Memory) -> None:
        self._body = body
        self._turn = turn
        self._number = number
        self._items = list(self._made(memory))

    def events(self) -> Iterator[Event]:
        yield {"type": "response.created", "response": self.response(is_last=False)}
        yield {"type": "response.in_progress", "response": self.response(is_last=False)}
        for index, item in enumerate(self._items):
            place = {"output_index": index}
            begun = {**item, "status": "in_progress"} | _EMPTY[item["type"]]
            yield {"type": "response.output_item.added", **place, "item": begun}
            yield from _content(item, {"item_id": item["id"], **place}, self._turn.piece)
            yield {"type": "response.output_item.done", **place, "item": item}
        last = self.response(is_last=True)
        yield {"type": f"response.{last['status']}", "response": last}

    def response(self, *, is_last: bool) -> dict[str, Any]:
        turn, body = self._turn, self._body
        status = "in_progress"
        if is_last:
            status = {None: "completed", "refusal": "completed", "failed": "failed"}.get(turn.stop, "incomplete")
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "background": False,
            "error": {"code": "server_error", "message": turn.text} if status == "failed" else None,
            "incomplete_details": {"reason": turn.stop} if status == "incomplete" else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": turn.served_by or body["model"],
            "output": self._items if is_last else [],
            "parallel_tool_calls": True,
            "store": False,
            "temperature": body.get("temperature", 1.0),
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "usage": self._usage() if is_last and not turn.without_usage else None,
        }

    def _made(self, memory: Memory) -> Iterator[dict[str, Any]]:
        """The items; what they are is noted, so that it is known when they come back."""
        turn, before = self._turn, ""
        for part in turn.order:
            if part == "reasoning" and (turn.reasoning or turn.reasoning_tokens):
                item = self._reasoning()
                memory.issued[item.get("encrypted_content", "")] = self._body["model"]
                before = item["id"]
                yield item
            elif part == "text" and turn.text and turn.stop != "failed":
                item = self._message(turn.text)
                yield _after(item, before, memory)
                before = ""
            elif part == "calls":
                for index, call in enumerate(turn.calls):
                    yield _after(self._call(index, call), before, memory)
                    before = ""

    def _reasoning(self) -> dict[str, Any]:
        said = self._turn.reasoning
        identity = f"rs_{self._number}"
        item: dict[str, Any] = {"id": identity, "type": "reasoning", "summary": []}
        if said:
            item["summary"] = [{"type": "summary_text", "text": text} for text in said.split("\n\n")]
        if "reasoning.encrypted_content" in self._body.get("include", ()):
            item["encrypted_content"] = f"gAAAA{hashlib.sha256(f'{identity} {said}'.encode()).hexdigest()}"
        return item

    def _message(self, text: str) -> dict[str, Any]:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        if self._turn.stop == "refusal":
            part = {"type": "refusal", "refusal": text}
        head = {"id": f"msg_{self._number}", "type": "message", "role": "assistant", "status": "completed"}
        return {**head, "content": [part]}

    def _call(self, index: int, call: Call) -> dict[str, Any]:
        head = {"id": f"fc_{self._number}_{index}", "type": "function_call", "status": "completed"}
        call_id = call.id or f"call_{self._number}_{index}"
        return {**head, "call_id": call_id, "name": call.name, "arguments": call.arguments}

    def _usage(self) -> dict[str, Any]:
        turn = self._turn
        total = turn.input_tokens + turn.cached_tokens + turn.cache_write_tokens
        return {
            "input_tokens": total,
            "input_tokens_details": {
                "cached_tokens": turn.cached_tokens,
                "cache_write_tokens": turn.cache_write_tokens,
            },
            "output_tokens": turn.output_tokens,
            "output_tokens_details": {"reasoning_tokens": turn.reasoning_tokens},
            "total_tokens": total + turn.output_tokens,
        }


_EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"content": []},
    "function_call": {"arguments": ""},
}
"""What an item is without when it begins."""


def _after(item: dict[str, Any], reasoning: str, memory: Memory) -> dict[str, Any]:
    if reasoning:
        memory.reasoning_of[item["id"]] = reasoning
    return item


def _content(item: Mapping[str, Any], place: Mapping[str, Any], size: int) -> Iterator[Event]:
    """The events of an item's content."""
    if item["type"] == "function_call":
        name = "response.function_call_arguments"
        for piece in _pieces(item["arguments"], size):
            yield {"type": f"{name}.delta", **place, "delta": piece}
        yield {"type": f"{name}.done", **place, "arguments": item["arguments"], "name": item["name"]}
        return
    field, counter, part_event = ("content", "content_index", "response.content_part")
    if item["type"] == "reasoning":
        field, counter, part_event = ("summary", "summary_index", "response.reasoning_summary_part")
    for index, part in enumerate(item[field]):
        here = {**place, counter: index}
        name, text = _NAMES[part["type"]]
        extra = {"logprobs": []} if part["type"] == "output_text" else {}
        yield {"type": f"{part_event}.added", **here, "part": {**part, text: ""}}
        for piece in _pieces(part[text], size):
            yield {"type": f"response.{name}.delta", **here, "delta": piece, **extra}
        yield {"type": f"response.{name}.done", **here, text: part[text], **extra}
        yield {"type": f"{part_event}.done", **here, "part": part}


_NAMES = {
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("reasoning_summary_text", "text"),
}
"""Of the events of a part, and the field of its text."""


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
