"""Replies of Anthropic's Messages API, out of the events of their streams."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, StopReason, ToolCall, Usage
from orchestrator.llm.providers.anthropic_events import NotAReply
from orchestrator.llm.providers.anthropic_requests import PROTOCOL, THOUGHTS, Block, sent_arguments
from orchestrator.llm.providers.usage_counts import count, inner_counts, optional_count, usage_if_true
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Gathered

_STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "pause_turn": StopReason.END,
    "tool_use": StopReason.TOOLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSAL,
}
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""Types of pieces: the block they belong to, and their field."""
_MAX_BLOCKS = 10_000
_MAX_NAME = 200
_SMALL_BLOCK_BYTES = 500
"""A block begins with names and ids, which are no output; what is larger than that holds some."""


@dataclass(slots=True)
class _Growing:
    """A content block under way."""

    block: Block
    """As it began."""
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """By field, as in `_DELTAS`."""
    is_whole: bool = True
    """False: a piece came that we cannot add."""

    def text(self, name: str) -> str:
        """A field as it is by now."""
        begun = self.block.get(name)
        return _clean((begun if isinstance(begun, str) else "") + "".join(self.pieces.get(name, ())))


class ReplyCollector:
    """Puts a reply together, event by event. Not thread-safe."""

    def __init__(self, model: str) -> None:
        """Nothing has come.

        Args:
            model: As the request names it, for `NativeMessage.model`.
        """
        self._model = model
        self._growing: dict[int, _Growing] = {}
        self._usage: dict[str, Any] = {}
        self._end_usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._served_by = ""
        self._bytes = 0
        self.has_ended = False
        """Whether the last event of a whole reply has come."""
        self.is_full = False
        """Whether it was cut off, since a reply may be no larger; the rest is not to be read."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing; some proxies leave out the last event."""
        return self.has_ended or self._stop is not None

    def take(self, event: object) -> None:
        """Add an event; one of an unknown type says nothing.

        Raises:
            NotAReply: It is not what this protocol has at this place.
        """
        if not isinstance(event, Mapping):
            msg = "an event that is no JSON object"
            raise NotAReply(msg)
        try:
            self._take(event["type"], event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"an event that is not of this protocol ({type(error).__name__}: {error})"
            raise NotAReply(msg) from error

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "message_start":
            message = event["message"]
            self._served_by = _clean(str(message.get("model") or ""))[:_MAX_NAME]
            self._usage |= _given(message.get("usage"))
        elif kind == "content_block_start":
            self._start(int(event["index"]), dict(event["content_block"]))
        elif kind == "content_block_delta":
            self._grow(int(event["index"]), event["delta"])
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            self._end_usage |= _given(event.get("usage"))
        elif kind == "message_stop":
            self.has_ended = True

    def _start(self, index: int, block: Block) -> None:
        if len(self._growing) == _MAX_BLOCKS:
            self.is_full = True
            return
        kind = block["type"]
        begun = block.pop(kind, "") if kind in ("text", "thinking") else ""
        growing = self._growing[index] = _Growing(block)
        if begun:
            self._add(growing, kind, begun)
        if (size := len(json.dumps(block))) > _SMALL_BLOCK_BYTES:
            self._bytes += size
            if self._bytes > MAX_REPLY_BYTES:
                self._bytes, self.is_full = MAX_REPLY_BYTES, True
                del self._growing[index]

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = delta["type"]
        if kind in _DELTAS:
            block_type, name = _DELTAS[kind]
            self._add(self._growing.setdefault(index, _Growing({"type": block_type})), name, delta[name])
        elif index in self._growing:
            self._growing[index].is_whole = False

    def _add(self, growing: _Growing, name: str, piece: str) -> None:
        encoded = piece.encode("utf-8", errors="surrogatepass")
        room = MAX_REPLY_BYTES - self._bytes
        if len(encoded) > room:
            self.is_full = True
            encoded = encoded[:room]
            piece = encoded.decode("utf-8", errors="ignore")
        self._bytes += len(encoded)
        if piece:
            growing.pieces.setdefault(name, []).append(piece)

    def gathered(self) -> Gathered:
        """What has come by now."""
        grown = [self._growing[index] for index in sorted(self._growing)]
        calls = _calls(grown)
        text = _joined_texts(grown)
        thoughts = [thought for one in grown if one.block["type"] == "thinking" and (thought := one.text("thinking"))]
        message = AssistantMessage(
            text=text,
            tool_calls=calls,
            reasoning="\n\n".join(thoughts),
            native=self._native(grown, calls),
        )
        has_thought = any(one.block["type"] in THOUGHTS for one in grown)
        return Gathered(
            messages=(message,),
            stops=(self._stop_reason(has_answer=bool(text.strip()), has_calls=bool(calls), has_thought=has_thought),),
            usage=None if self.is_full else _usage(self._usage, self._end_usage, has_output=bool(grown)),
            served_by=self._served_by,
            output_bytes=self._bytes,
        )

    def _stop_reason(self, *, has_answer: bool, has_calls: bool, has_thought: bool) -> StopReason:
        if self.is_full or self._stop is None:
            return StopReason.LENGTH
        reason = _STOPS.get(self._stop, StopReason.END)
        if reason not in (StopReason.END, StopReason.TOOLS):
            return reason
        if has_calls:
            return StopReason.TOOLS
        return StopReason.THOUGHT if has_thought and not has_answer else StopReason.END

    def _native(self, grown: Sequence[_Growing], calls: Sequence[ToolCall]) -> NativeMessage | None:
        """The message as the provider has to see it again, where it holds more than text and calls."""
        remaining = iter(calls)
        blocks = [block for one in grown if (block := _sendable(one, remaining)) is not None]
        if all(block["type"] in ("text", "tool_use") for block in blocks):
            return None
        body = {"content": blocks}
        try:
            json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            return None  # no record can hold it, and no request
        return NativeMessage(protocol=PROTOCOL, model=self._model, body=body)


def _sendable(one: _Growing, calls: Iterator[ToolCall]) -> Block | None:
    """A block for a later request; None: it would be refused, since it is blank or was cut off."""
    kind = one.block["type"]
    if kind == "text":
        text = one.text("text")
        return {**one.block, "text": text} if text.strip() else None
    if kind == "thinking":
        seal = one.text("signature")
        return {**one.block, "thinking": one.text("thinking"), "signature": seal} if seal else None
    if kind == "tool_use":
        call = next(calls)
        return {
            **one.block,
            "id": call.id,
            "name": call.name,
            "input": sent_arguments(call.arguments, call.raw_arguments),
        }
    if raw := one.text("partial_json"):
        return {**one.block, "input": sent_arguments(*_arguments(raw))}
    return dict(one.block) if one.is_whole else None


def _calls(grown: Sequence[_Growing]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for one in grown:
        if one.block["type"] != "tool_use":
            continue
        identity = base = _clean(str(one.block.get("id") or "call"))
        number = 1
        while identity in taken:
            number += 1
            identity = f"{base}_{number}"
        taken.add(identity)
        arguments, raw = _arguments(one.text("partial_json"), begun=one.block.get("input"))
        name = _clean(str(one.block.get("name") or ""))
        calls.append(ToolCall(id=identity, name=name, arguments=arguments, raw_arguments=raw))
    return tuple(calls)


def _arguments(raw: str, *, begun: object = None) -> tuple[dict[str, Any] | None, str]:
    """Arguments and, where they are no JSON object, their text; a tool without any gets no text at all."""
    if not raw.strip():
        return (dict(begun) if isinstance(begun, Mapping) else {}), ""
    try:
        value = json.loads(raw, parse_constant=_finite, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()  # fails on lone surrogates, which no record can hold
    except (ValueError, RecursionError):
        return None, raw
    return (value, "") if isinstance(value, dict) else (None, raw)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)  # no JSON, and nothing that a record can hold
    return value


def _joined_texts(grown: Sequence[_Growing]) -> str:
    """Texts of neighbouring blocks are one text; a thought or a call between two is the end of a paragraph."""
    text = ""
    is_apart = False
    for one in grown:
        if one.block["type"] != "text":
            is_apart = bool(text)
        elif piece := one.text("text"):
            text += f"\n\n{piece}" if is_apart else piece
            is_apart = False
    return text


def _clean(text: str) -> str:
    """Without lone surrogates, which no record or request can hold; two that came apart make their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", errors="replace")
    return text


def _given(usage: object) -> dict[str, Any]:
    return {name: value for name, value in usage.items() if value is not None} if isinstance(usage, Mapping) else {}


def _usage(begun: Mapping[str, Any], ended: Mapping[str, Any], *, has_output: bool) -> Usage | None:
    """Counts are cumulative, so that the last ones hold; None: one is missing, or cannot be."""
    usage = {**begun, **ended}
    return usage_if_true(
        fresh=count(usage, "input_tokens"),
        cached=optional_count(usage, "cache_read_input_tokens"),
        written=optional_count(usage, "cache_creation_input_tokens"),
        output=count(ended, "output_tokens"),  # the one at the start counts only what had come by then
        reasoning=optional_count(inner_counts(usage, "output_tokens_details"), "thinking_tokens"),
        has_output=has_output,
    )
