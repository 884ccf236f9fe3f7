"""OpenAI's chat completions as OpenAI and the servers that follow it speak them, as strict as the strictest of them.

In a `Turn`, `input_tokens` is what was neither read from a cache nor written into one; the protocol's `prompt_tokens`
is the sum of all three. `stop="refusal"` sends the text as a refusal; any other `stop` is the `finish_reason`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from tests.model_servers.base import KEY, Answer, ModelServer, Received, Responder, Script, Trouble, Turn
from tests.model_servers.openai_errors import Refusal, error_body, incorrect_key, model_not_found, usual_body
from tests.model_servers.openai_strictness import Strictness, refusal_of

MODEL = "test-model"
"""What the servers serve unless somebody says otherwise."""
CREATED = 1_790_000_000


@dataclass(frozen=True, kw_only=True)
class Flavour:
    """What servers of this protocol differ in."""

    reasoning_field: Literal["reasoning_content", "reasoning", "think"] = "reasoning_content"
    """Where reasoning is sent; `think`: as `<think>...</think>` at the beginning of the content."""
    ignores_n: bool = False
    """Whether every request gets one choice, however many it asks for."""
    never_says_usage: bool = False
    says_usage_unasked: bool = False
    """Whether a stream ends with the usage without `stream_options`."""
    usage_details: Literal["openai", "deepseek", "none"] = "openai"
    never_streams: bool = False
    """Whether a request for a stream gets plain JSON."""
    listing: Literal["plain", "vllm", "llama.cpp", "missing"] = "plain"
    """What `GET /models` says: names, names with `max_model_len`, with `meta.n_ctx_train`, or 404."""
    listed_context: int = 32_768


class OpenAIServer(ModelServer):
    """Chat completions on 127.0.0.1. `models` may be changed while it serves, as when a model is renamed.

    Args (of the constructor):
        models: What it serves; others get a 404.
        flavour: How it speaks.
        strictness: What it refuses, besides what no server takes.
    """

    base_path = "/v1"

    def __init__(
        self,
        script: Script | Sequence[Answer],
        *,
        key: str | None = KEY,
        models: Sequence[str] = (MODEL,),
        flavour: Flavour | None = None,
        strictness: Strictness | None = None,
    ) -> None:
        super().__init__(script, key=key)
        self.models = tuple(models)
        self.flavour = flavour or Flavour()
        self.strictness = strictness or Strictness()
        self.refused: list[Received] = []
        """Model requests that the server refused by itself; `requests` are those that its script answered."""

    def handle(self, request: Received, respond: Responder) -> None:
        path = request.path.partition("?")[0]
        if request.method == "POST" and path == f"{self.base_path}/chat/completions":
            self._complete(request, respond)
            return
        self.note_other(request)
        if (refusal := self._no_access(request)) is not None:
            respond.json(refusal.status, refusal.body)
        elif request.method == "GET" and path == f"{self.base_path}/models" and self.flavour.listing != "missing":
            respond.json(200, {"object": "list", "data": [self._listed(name) for name in self.models]})
        else:
            respond.json(404, error_body(f"Invalid URL ({request.method} {path})", "invalid_request_error"))

    def _no_access(self, request: Received) -> Refusal | None:
        if self.key is None or request.headers.get("authorization") == f"Bearer {self.key}":
            return None
        return incorrect_key(request.headers.get("authorization", "").removeprefix("Bearer "))

    def _listed(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"id": name, "object": "model", "created": CREATED, "owned_by": "test"}
        if self.flavour.listing == "vllm":
            entry |= {"root": name, "parent": None, "max_model_len": self.flavour.listed_context}
        if self.flavour.listing == "llama.cpp":
            entry["meta"] = {"vocab_type": 2, "n_vocab": 32_000, "n_ctx_train": self.flavour.listed_context}
        return entry

    def _complete(self, request: Received, respond: Responder) -> None:
        refusal = self._no_access(request) or refusal_of(request.body, self.strictness)
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
            turns = [answer] if isinstance(answer, Turn) else list(answer)
            self._say(request.body, self._as_many(request.body, turns), respond, None)

    def _as_many(self, body: Mapping[str, Any], turns: list[Turn]) -> list[Turn]:
        wanted = 1 if self.flavour.ignores_n else body.get("n") or 1
        return (turns + [turns[-1]] * wanted)[:wanted]

    def _fail(self, body: Mapping[str, Any], trouble: Trouble, respond: Responder) -> None:
        self.pause(trouble.silent_seconds)
        if trouble.raw is not None:
            respond.whole(200, trouble.raw, _content_type(trouble.raw), trouble.headers)
        elif trouble.status is None:
            self._say(body, self._as_many(body, [trouble.turn]), respond, trouble)
        elif isinstance(trouble.body, str):
            respond.whole(trouble.status, trouble.body.encode(), "text/html", trouble.headers)
        else:
            body = usual_body(trouble.status, body["model"]) if trouble.body is None else trouble.body
            respond.json(trouble.status, body, trouble.headers)

    def _say(self, body: Mapping[str, Any], turns: Sequence[Turn], respond: Responder, trouble: Trouble | None) -> None:
        headers = {**(trouble.headers if trouble else {}), "x-request-id": f"req_{len(self.requests):08d}"}
        if body.get("stream") and not self.flavour.never_streams:
            respond.stream(self._troubled(self._events(body, turns), trouble), headers)
        else:
            respond.json(200, self._whole(body, turns), headers)

    def _troubled(self, events: Iterator[bytes], trouble: Trouble | None) -> Iterator[bytes]:
        for number, event in enumerate(events):
            if trouble is not None and number == trouble.drop_after:
                yield event[: len(event) // 2]
                raise ConnectionError  # the connection closes without the end of the body
            if trouble is not None and number == trouble.stall_after:
                self.pause(trouble.stall_seconds)
                raise ConnectionError
            yield event

    def _events(self, body: Mapping[str, Any], turns: Sequence[Turn]) -> Iterator[bytes]:
        asked = bool((body.get("stream_options") or {}).get("include_usage"))
        head = _head(body, turns, "chat.completion.chunk") | ({"usage": None} if asked else {})
        for step in zip_longest(*(self._deltas(turn) for turn in turns)):
            for index, piece in enumerate(step):
                if piece is not None:
                    delta, finish = piece
                    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
                    yield event({**head, "choices": [choice]})
        usage = self._usage(turns)
        if usage is not None and (asked or self.flavour.says_usage_unasked):
            yield event({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _deltas(self, turn: Turn) -> Iterator[tuple[dict[str, Any], str | None]]:
        yield {"role": "assistant", "content": "", "refusal": None}, None
        for part in turn.order:
            if part == "calls":
                yield from _call_deltas(turn)
            else:
                for field, text in self._texts(turn, part):
                    for piece in _pieces(text, turn.piece):
                        yield {field: piece}, None
        yield {}, _finish_reason(turn)

    def _texts(self, turn: Turn, part: str) -> list[tuple[str, str]]:
        """Fields of a message and what is in them."""
        if part == "text":
            return [("refusal" if turn.stop == "refusal" else "content", turn.text)]
        if self.flavour.reasoning_field == "think":
            return [("content", f"<think>\n{turn.reasoning}\n</think>\n\n")] if turn.reasoning else []
        return [(self.flavour.reasoning_field, turn.reasoning)]

    def _whole(self, body: Mapping[str, Any], turns: Sequence[Turn]) -> dict[str, Any]:
        choices = [
            {"index": index, "message": self._message(turn), "logprobs": None, "finish_reason": _finish_reason(turn)}
            for index, turn in enumerate(turns)
        ]
        usage = self._usage(turns)
        said = {} if usage is None else {"usage": usage}
        return {**_head(body, turns, "chat.completion"), "choices": choices, **said}

    def _message(self, turn: Turn) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        for part in turn.order:
            for field, text in self._texts(turn, part) if part != "calls" else ():
                if text:
                    message[field] = (message.get(field) or "") + text
        if turn.calls:
            message["tool_calls"] = [_call(turn, index) for index in range(len(turn.calls))]
        return message

    def _usage(self, turns: Sequence[Turn]) -> dict[str, Any] | None:
        """Input counts once, output for every choice."""
        first = turns[0]
        if self.flavour.never_says_usage or any(turn.without_usage for turn in turns):
            return None
        prompt = first.input_tokens + first.cached_tokens + first.cache_write_tokens
        output = sum(turn.output_tokens for turn in turns)
        reasoning = sum(turn.reasoning_tokens for turn in turns)
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
        }
        if self.flavour.usage_details == "deepseek":
            usage["prompt_cache_hit_tokens"] = first.cached_tokens
            usage["prompt_cache_miss_tokens"] = prompt - first.cached_tokens
        if self.flavour.usage_details == "openai":
            usage["prompt_tokens_details"] = {"cached_tokens": first.cached_tokens, "audio_tokens": 0}
            if first.cache_write_tokens:
                usage["prompt_tokens_details"]["cache_write_tokens"] = first.cache_write_tokens
        if self.flavour.usage_details != "none":
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return usage


def event(data: Any) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _head(body: Mapping[str, Any], turns: Sequence[Turn], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-test",
        "object": kind,
        "created": CREATED,
        "model": turns[0].served_by or body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_test",
    }


def _finish_reason(turn: Turn) -> str:
    if turn.stop == "refusal":
        return "stop"
    return turn.stop or ("tool_calls" if turn.calls else "stop")


def _call(turn: Turn, index: int) -> dict[str, Any]:
    call = turn.calls[index]
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id or f"call_{index}", "type": "function", "function": function}


def _call_deltas(turn: Turn) -> Iterator[tuple[dict[str, Any], str | None]]:
    for index, call in enumerate(turn.calls):
        whole = _call(turn, index)
        first = {**whole, "index": index, "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [first]}, None
        for piece in _pieces(call.arguments, turn.piece):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _content_type(raw: bytes) -> str:
    if raw.lstrip()[:1] in (b"{", b"["):
        return "application/json"
    return "text/event-stream" if raw.startswith((b"data:", b"event:", b":")) else "text/html"
