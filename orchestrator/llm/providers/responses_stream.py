"""Replies of OpenAI's responses, out of the events of their streams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, StopReason, ToolCall
from orchestrator.llm.providers.openai_calls import GrowingCall, clean, finished_calls
from orchestrator.llm.providers.openai_requests import PROTOCOL
from orchestrator.llm.providers.openai_stream import NotAReply
from orchestrator.llm.providers.openai_usage import usage_of
from orchestrator.llm.providers.responses_items import Item, Items
from orchestrator.llm.providers.responses_requests import OUTPUT
from orchestrator.llm.providers.wire import Gathered

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "response.done"})
_UNFINISHED = frozenset({"queued", "in_progress", "cancelled", "failed"})
_REFUSED = frozenset({"invalid_prompt", "bio_policy", "misalignment_policy_violation"})
"""Errors by which a filter of the provider ends a reply."""
_MAX_NAME = 200
_MAX_SAID = 4000


class ResponseCollector:
    """Puts a reply together, event by event. Not thread-safe."""

    def __init__(self, account: str) -> None:
        """Nothing has come.

        Args:
            account: Name of the model as the request has it, for `NativeMessage.model`.
        """
        self._account = account
        self._items = Items()
        self._id = ""
        self._served_by = ""
        self._usage: object = None
        self._has_come = False
        self._refusal = ""
        self._cut_off: StopReason | None = None
        self.has_ended = False
        """Whether the server has said that the reply is over."""

    @property
    def is_full(self) -> bool:
        """Whether it was cut off, since a reply may be no larger; the rest is not to be read."""
        return self._items.room.is_full

    def take(self, event: object) -> None:
        """Add an event of a stream, or a whole response.

        Raises:
            NotAReply: It is no such thing, or says that the server gave up.
        """
        if not isinstance(event, Mapping):
            msg = f"{type(event).__name__} instead of an object"
            raise NotAReply(msg)
        kind = event.get("type")
        if not isinstance(kind, str):
            if "output" in event:  # a server that does not stream
                self._take_response(event, is_last=True)
            return
        response = event.get("response")
        if isinstance(response, Mapping):
            self._take_response(response, is_last=kind in _LAST)
        else:
            self._items.take(kind, event)

    def _take_response(self, said: Mapping[str, Any], *, is_last: bool) -> None:
        self._has_come = True
        if isinstance(model := said.get("model"), str):
            self._served_by = clean(model)[:_MAX_NAME]
        if isinstance(identity := said.get("id"), str):
            self._id = identity[:_MAX_NAME]
        self._usage = said.get("usage") or self._usage
        if not is_last:
            return
        status = said.get("status")
        if (error := refusal_in(said)) is not None:
            self._refusal = error
        elif status in _UNFINISHED:
            msg = f"the server gave up on it, or is not done with it ({status})"
            raise NotAReply(msg)
        if status == "incomplete":
            details = said.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, Mapping) else None
            self._cut_off = StopReason.REFUSAL if reason == "content_filter" else StopReason.LENGTH
        self._items.complete(said.get("output"))
        self.has_ended = True

    @property
    def has_content(self) -> bool:
        """Whether anything has come that the server may bill: it also thinks where no word of it is shown."""
        return len(self._items) > 0 or self._usage is not None

    def check_end(self, *, is_done: bool) -> None:
        """To be called once nothing more comes.

        Args:
            is_done: Whether the stream has an end of its own, beside that of the reply.

        Raises:
            NotAReply: There is no reply, or not a whole one.
        """
        if not self._items and not self.has_ended:
            msg = "there is no reply in it"
            raise NotAReply(msg)
        self.has_ended = self.has_ended or (is_done and all(item.is_done for item in self._items))
        if not self.has_ended:
            msg = "it ended in the middle"
            raise NotAReply(msg)

    def gathered(self) -> Gathered:
        """What has come by now."""
        room = self._items.room
        usage = None if room.is_full else usage_of([_in_chat_words(self._usage)], has_output=room.taken > 0)
        replies = [self._reply()] if self._has_come or self._items else []
        if usage is not None and usage.reasoning_tokens:
            replies = [(message, _if_thought(message, stop)) for message, stop in replies]
        return Gathered(
            messages=tuple(message for message, _ in replies),
            stops=tuple(stop for _, stop in replies),
            usage=usage,
            served_by=self._served_by,
            output_bytes=room.taken,
        )

    def _reply(self) -> tuple[AssistantMessage, StopReason]:
        messages = [item for item in self._items if item.kind == "message"]
        reasoning = [item for item in self._items if item.kind == "reasoning"]
        text = "\n\n".join(said for item in messages if (said := "".join(said for _, said in item.texts)))
        message = AssistantMessage(
            text=text or self._refusal,
            tool_calls=self._calls(),
            reasoning="\n\n".join("\n\n".join(item.thoughts or item.summary) for item in reasoning).strip(),
        )
        if self._refusal or any(kind == "refusal" for item in messages for kind, _ in item.texts):
            return message, StopReason.REFUSAL
        if self.is_full or self._cut_off is not None or not self.has_ended:
            return message, self._cut_off or StopReason.LENGTH
        stop = StopReason.TOOLS if message.tool_calls else StopReason.END
        native = self._native(message.tool_calls)
        message = AssistantMessage(
            text=message.text, tool_calls=message.tool_calls, reasoning=message.reasoning, native=native
        )
        return message, _if_thought(message, stop) if reasoning else stop

    def _calls(self) -> tuple[ToolCall, ...]:
        calls = []
        for item in self._items:
            if item.kind == "function_call":
                call = GrowingCall(None)
                call.id, call.name, call.arguments = [item.call_id], [item.name], [item.arguments]
                calls.append(call)
        return finished_calls(calls, hashlib.sha256(self._id.encode(errors="replace")).hexdigest())

    def _native(self, calls: tuple[ToolCall, ...]) -> NativeMessage | None:
        """The turn as it came, where it has thoughts that can go back, or names the phases of its messages."""
        output = list(_native_items(self._items, iter(calls)))
        while output and output[-1]["type"] == "reasoning":
            output.pop()  # the provider refuses thoughts that nothing follows
        thoughts = [item for item in output if item["type"] == "reasoning"]
        if not all("encrypted_content" in item or "content" in item for item in thoughts):
            return None  # it would look for them in its store, where they are not
        if not thoughts and not any("phase" in item for item in output):
            return None
        return NativeMessage(protocol=PROTOCOL, model=self._account, body={OUTPUT: output})


def _native_items(items: Items, calls: Iterator[ToolCall]) -> Iterator[dict[str, Any]]:
    for item in items:
        named = {"id": item.id} if item.id else {}
        if item.kind == "reasoning":
            yield {"type": "reasoning", **named, **_thoughts(item)}
        elif item.kind == "function_call":
            call = next(calls)
            yield {"type": "function_call", **named, "call_id": call.id, "name": call.name, "arguments": item.arguments}
        elif item.kind == "message" and item.texts:
            content = [{"type": "output_text", "text": text, "annotations": []} for _, text in item.texts]
            phase = {"phase": item.phase} if item.phase else {}
            head = {"type": "message", **named, "role": "assistant", "status": "completed"}
            yield {**head, "content": content, **phase}


def _thoughts(item: Item) -> dict[str, Any]:
    said: dict[str, Any] = {"summary": [{"type": "summary_text", "text": text} for text in item.summary]}
    if item.thoughts:
        said["content"] = [{"type": "reasoning_text", "text": text} for text in item.thoughts]
    if item.encrypted:
        said["encrypted_content"] = item.encrypted
    return said


def _if_thought(message: AssistantMessage, stop: StopReason) -> StopReason:
    """Why a reply ended, in whose making there were thoughts."""
    return StopReason.THOUGHT if stop is StopReason.END and not message.text.strip() else stop


def refusal_in(response: Mapping[str, Any]) -> str | None:
    """What a filter of the provider says that ended a response; None: none did."""
    error = response.get("error")
    if not isinstance(error, Mapping) or error.get("code") not in _REFUSED:
        return None
    said = error.get("message")
    return clean(said)[:_MAX_SAID] if isinstance(said, str) and said else str(error["code"])


def _in_chat_words(usage: object) -> object:
    """A usage under the names that chat completions have for its counts."""
    if not isinstance(usage, Mapping):
        return None
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens": usage.get("output_tokens"),
        "completion_tokens_details": usage.get("output_tokens_details"),
        "total_tokens": usage.get("total_tokens"),
    }
