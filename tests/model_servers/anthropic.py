"""A server that speaks Anthropic's Messages API, as strictly as the provider does."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.model_servers.anthropic_errors import answer_with_an_error, error_body
from tests.model_servers.anthropic_rules import Refused, check_request, redacted, signature, tokens_of
from tests.model_servers.base import KEY, Answer, Call, ModelServer, Received, Responder, Script, Trouble, Turn

MODELS = ("claude-opus-5", "claude-sonnet-5", "claude-haiku-5")
"""What it lists unless told otherwise; it then serves every name that begins with `claude-`."""
SIZES = (200_000, 64_000)
"""Tokens that go into such a model, and that come out."""


def event(kind: str, **fields: Any) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


class AnthropicServer(ModelServer):
    """Plays Anthropic.

    `Turn.order` may also name `redacted` (a thought that cannot be read) and `mystery` (a block of a type that no
    client knows). What the rules refuse, and what comes without the right key, is in `refused` and asks no script.
    A `Trouble.raw` is sent as a stream.

    Args (of the constructor):
        models: Names to (input tokens, output tokens) of what is served, newest first; None: see `MODELS`.
        refuses: Parameters that it takes no more, or a message for each.
    """

    def __init__(
        self,
        script: Script | Sequence[Answer],
        *,
        key: str | None = KEY,
        models: Mapping[str, tuple[int, int]] | None = None,
        refuses: Mapping[str, str] | Iterable[str] = (),
    ) -> None:
        super().__init__(script, key=key)
        self.models = None if models is None else dict(models)
        self.refuses = (
            dict(refuses)
            if isinstance(refuses, Mapping)
            else {name: f"`{name}` is deprecated for this model." for name in refuses}
        )
        self.refused: list[tuple[Received, str]] = []
        """Requests that the server answered by itself with an error, and its message."""
        self._numbers = itertools.count(1)

    def handle(self, request: Received, respond: Responder) -> None:
        path = urlsplit(request.path).path
        number = next(self._numbers)
        headers = {"request-id": f"req_{number:024d}", "anthropic-organization-id": "org-test"}
        if path != "/v1/messages":
            self.note_other(request)
        if (error := self._stranger(request)) is not None:
            self._refuse(request, respond, 401, error, headers)
        elif request.method == "POST" and path in ("/v1/messages", "/v1/messages/count_tokens"):
            self._take(request, respond, headers, counts=path.endswith("count_tokens"))
        elif request.method == "GET" and path == "/v1/models":
            listed = [self._info(name) for name in self.models or MODELS]
            page = {"data": listed, "has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
            respond.json(200, page, headers)
        elif request.method == "GET" and path.startswith("/v1/models/"):
            name = unquote(path.removeprefix("/v1/models/"))
            if self._sizes(name) is None:
                self._refuse(request, respond, 404, f"model: {name}", headers)
            else:
                respond.json(200, self._info(name), headers)
        else:
            self._refuse(request, respond, 404, None, headers)

    def _stranger(self, request: Received) -> str | None:
        if self.key is None:
            return None
        if (authorization := request.headers.get("authorization")) is not None:
            return None if authorization == f"Bearer {self.key}" else "Invalid bearer token"
        if (key := request.headers.get("x-api-key")) is not None:
            return None if key == self.key else "invalid x-api-key"
        return "x-api-key header is required"

    def _refuse(
        self, request: Received, respond: Responder, status: int, message: str | None, headers: Mapping[str, str]
    ) -> None:
        body = error_body(status, message)
        self.refused.append((request, body["error"]["message"]))
        respond.json(status, body, headers)

    def _sizes(self, model: str) -> tuple[int, int] | None:
        if self.models is not None:
            return self.models.get(model)
        return SIZES if model.startswith("claude-") else None

    def _info(self, name: str) -> dict[str, Any]:
        most_input, most_output = self._sizes(name) or SIZES
        return {
            "type": "model",
            "id": name,
            "display_name": name.replace("-", " ").title(),
            "created_at": "2026-05-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": most_input,
            "max_tokens": most_output,
        }

    def _take(self, request: Received, respond: Responder, headers: Mapping[str, str], *, counts: bool) -> None:
        body = request.body
        model = str(body.get("model", "")) if isinstance(body, dict) else ""
        if (refusal := self._refusal(request, model, counts=counts)) is not None:
            self._refuse(request, respond, 400, refusal, headers)
        elif self._sizes(model) is None:
            self._refuse(request, respond, 404, f"model: {model}", headers)
        elif counts:
            respond.json(200, {"input_tokens": tokens_of(body)}, headers)
        else:
            self._answer(request, respond, headers)

    def _refusal(self, request: Received, model: str, *, counts: bool) -> str | None:
        if "anthropic-version" not in request.headers:
            return "anthropic-version: header is required"
        most_input, most_output = self._sizes(model) or SIZES
        try:
            check_request(
                request.body, refuses=self.refuses, most_output=most_output, most_input=most_input, counts=counts
            )
        except Refused as refusal:
            return str(refusal)
        except (KeyError, TypeError, AttributeError) as error:
            return f"Input should be a valid dictionary, with every field that is required: {error}"
        return None

    def _answer(self, request: Received, respond: Responder, headers: Mapping[str, str]) -> None:
        answer = self.answer_to(request)
        assert isinstance(answer, Turn | Trouble), "this provider gives one sample for a request"
        trouble = answer if isinstance(answer, Trouble) else Trouble(turn=answer)
        self.pause(trouble.silent_seconds)
        headers = {**headers, **trouble.headers}
        if trouble.status is not None:
            answer_with_an_error(trouble.status, trouble.body, respond, headers)
        elif trouble.raw is not None:
            respond.whole(200, trouble.raw, "text/event-stream; charset=utf-8", headers)
        elif request.body.get("stream"):
            events = self._events(trouble.turn, request.body["model"])
            respond.stream(self._troubled(events, trouble, respond), headers)
        elif trouble.drop_after is not None:
            respond.cut()
        else:
            self.pause(trouble.stall_seconds if trouble.stall_after is not None else 0)
            respond.json(200, self._message(trouble.turn, request.body["model"]), headers)

    def _troubled(self, events: Iterator[bytes], trouble: Trouble, respond: Responder) -> Iterator[bytes]:
        for sent, piece in enumerate(events):
            if sent == trouble.stall_after:
                self.pause(trouble.stall_seconds)
            if sent == trouble.drop_after:
                yield piece[: len(piece) // 2]
                respond.cut()
                raise ConnectionError("cut off as the script says")
            yield piece

    def _message(self, turn: Turn, model: str) -> dict[str, Any]:
        content = [{key: value for key, value in block.items() if key != "raw"} for block in self._blocks(turn, model)]
        message = {
            **self._start(turn, model),
            "content": content,
            "stop_reason": _stop(turn),
            "usage": {**_usage(turn), "service_tier": "standard"},
        }
        if turn.without_usage:
            del message["usage"]
        return message

    def _start(self, turn: Turn, model: str) -> dict[str, Any]:
        return {
            "id": f"msg_{next(self._numbers):024d}",
            "type": "message",
            "role": "assistant",
            "model": turn.served_by or model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
        }

    def _blocks(self, turn: Turn, model: str) -> Iterator[dict[str, Any]]:
        for part in turn.order:
            if part == "reasoning" and turn.reasoning:
                seal = signature(model, turn.reasoning)
                yield {"type": "thinking", "thinking": turn.reasoning, "signature": seal}
            elif part == "text" and turn.text:
                yield {"type": "text", "text": turn.text}
            elif part == "redacted":
                yield {"type": "redacted_thinking", "data": redacted(model, next(self._numbers))}
            elif part == "mystery":
                yield {"type": "mystery", "essence": "unknown to clients"}
            elif part == "calls":
                yield from (self._call(call) for call in turn.calls)

    def _call(self, call: Call) -> dict[str, Any]:
        return {
            "type": "tool_use",
            "id": call.id or f"toolu_{next(self._numbers):024d}",
            "name": call.name,
            "input": _object(call.arguments),
            "raw": call.arguments,
            "caller": {"type": "direct"},
        }

    def _events(self, turn: Turn, model: str) -> Iterator[bytes]:
        start = self._start(turn, model)
        if not turn.without_usage:
            start["usage"] = {**_usage(turn), "output_tokens": 1, "service_tier": "standard"}
        yield event("message_start", message=start)
        for index, block in enumerate(self._blocks(turn, model)):
            empty, deltas = _streamed(block, turn.piece)
            yield event("content_block_start", index=index, content_block=empty)
            if not index:
                yield event("ping")
            for delta in deltas:
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        end = {"stop_reason": _stop(turn), "stop_sequence": None, "stop_details": None}
        yield event("message_delta", delta=end, **({} if turn.without_usage else {"usage": _usage(turn)}))
        yield event("message_stop")


def _stop(turn: Turn) -> str:
    return turn.stop or ("tool_use" if turn.calls else "end_turn")


def _usage(turn: Turn) -> dict[str, Any]:
    return {
        "input_tokens": turn.input_tokens,
        "cache_creation_input_tokens": turn.cache_write_tokens,
        "cache_read_input_tokens": turn.cached_tokens,
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"thinking_tokens": turn.reasoning_tokens},
    }


def _object(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {}


def _streamed(block: dict[str, Any], piece: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block begins, and the pieces that it comes in."""
    if block["type"] == "text":
        texts = _pieces(block["text"], piece)
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": text} for text in _pieces(block["thinking"], piece)]
        seal = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*thoughts, seal]
    if block["type"] == "tool_use":
        texts = ["", *_pieces(block["raw"], piece)]  # the provider's first piece is empty
        begun = {name: value for name, value in block.items() if name != "raw"}
        return {**begun, "input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in texts]
    return block, []


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
