"""Replies of OpenAI's chat completions, out of the chunks of their streams, as many servers send them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, StopReason
from orchestrator.llm.providers.openai_calls import GrowingCall, finished_calls, grow
from orchestrator.llm.providers.openai_requests import PROTOCOL, REASONING
from orchestrator.llm.providers.openai_usage import usage_of
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Gathered

_STOPS = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
    "sensitive": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
}
_BROKEN_STOPS = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
"""Of DeepSeek, GLM, vLLM, OpenRouter: the server gave up; what is there is no answer."""
_MAX_NAME = 200
_BEGIN, _END = "<think>", "</think>"


class NotAReply(Exception):
    """What came is no reply of this protocol, or not a whole one; the message says what is wrong with it."""


class _Choice:
    """One sample under way."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[GrowingCall] = []
        self.finish: str | None = None


class ReplyCollector:
    """Puts replies together, chunk by chunk. Not thread-safe."""

    def __init__(self, account: str, samples: int) -> None:
        """Nothing has come.

        Args:
            account: Name of the model as the request has it, for `NativeMessage.model`.
            samples: How many replies were asked for; any further ones are left aside.
        """
        self._account = account
        self._samples = samples
        self._choices: dict[int, _Choice] = {}
        self._usages: list[object] = []
        self._is_closing = False
        """Whether they came without any choice, as they do at the end."""
        self._served_by = ""
        self._id = ""
        self._bytes = 0
        self._bytes_aside = 0
        """Of further replies than were asked for, and further calls than are taken, which are billed as well."""
        self._has_ended = False
        self.is_full = False
        """Whether it was cut off, since a reply may be no larger; the rest is not to be read."""

    def take(self, chunk: object) -> None:
        """Add a chunk of a stream, or a whole completion.

        Raises:
            NotAReply: It is no such thing, or says that the server gave up.
        """
        if not isinstance(chunk, Mapping):
            msg = f"{type(chunk).__name__} instead of an object"
            raise NotAReply(msg)
        if isinstance(model := chunk.get("model"), str):
            self._served_by = _clean(model)[:_MAX_NAME]
        if isinstance(identity := chunk.get("id"), str):
            self._id = identity[:_MAX_NAME]
        choices = chunk.get("choices")
        if usage := _said_usage(chunk):
            self._take_usage(usage, is_closing=not choices)
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                self._take_choice(choice)

    def _take_usage(self, said: object, *, is_closing: bool) -> None:
        """Keep the last word; llama.cpp says it for each choice on its own, once the choice is whole."""
        if is_closing and self._is_closing:
            self._usages = [*self._usages, said][-self._samples :]
        else:
            self._usages = [said]
        self._is_closing = is_closing

    def _take_choice(self, said: Mapping[str, Any]) -> None:
        index = said.get("index")
        index = index if isinstance(index, int) else 0
        delta = said.get("delta") if isinstance(said.get("delta"), Mapping) else said.get("message")
        if index not in self._choices and len(self._choices) == self._samples:
            self._bytes_aside += _content_bytes(delta)
            return
        choice = self._choices.setdefault(index, _Choice())
        if isinstance(delta, Mapping):
            self._take_delta(choice, delta)
        if isinstance(finish := said.get("finish_reason"), str) and finish:
            if finish in _BROKEN_STOPS:
                msg = f"the server gave up on it ({finish})"
                raise NotAReply(msg)
            choice.finish = finish

    def _take_delta(self, choice: _Choice, delta: Mapping[str, Any]) -> None:
        text, thought = _content(delta.get("content"))
        self._add(choice.text, text)
        self._add(choice.reasoning, thought or _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")))
        self._add(choice.refusal, _text(delta.get("refusal")))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping) and not self.is_full:
                parts = list(grow(choice.calls, call))
                if not parts:
                    self._bytes_aside += _content_bytes({"tool_calls": [call]})
                for pieces, piece in parts:
                    self._add(pieces, piece)

    def _add(self, pieces: list[str], piece: str) -> None:
        if not piece or self.is_full:
            return
        encoded = piece.encode("utf-8", errors="surrogatepass")
        room = MAX_REPLY_BYTES - self._bytes
        if len(encoded) > room:
            self.is_full = True
            encoded = encoded[:room]
            piece = encoded.decode("utf-8", errors="ignore")
        self._bytes += len(encoded)
        pieces.append(piece)

    @property
    def has_content(self) -> bool:
        """Whether anything has come that the server may bill."""
        return self._bytes + self._bytes_aside > 0 or bool(self._usages)

    def check_end(self, *, is_done: bool) -> None:
        """To be called once nothing more comes.

        Args:
            is_done: Whether the server said so itself, so that the connection has not just ended.

        Raises:
            NotAReply: There is no reply, or not a whole one.
        """
        if not self._choices:
            msg = "there is no reply in it"
            raise NotAReply(msg)
        self._has_ended = is_done or bool(self._usages)
        if not self._has_ended and any(choice.finish is None for choice in self._choices.values()):
            msg = "it ended in the middle"
            raise NotAReply(msg)

    def gathered(self) -> Gathered:
        """What has come by now."""
        usage = None if self.is_full else usage_of(self._usages, has_output=self._bytes + self._bytes_aside > 0)
        has_hidden_thoughts = usage is not None and usage.reasoning_tokens > 0
        replies = [self._reply(index, has_hidden_thoughts) for index in sorted(self._choices)]
        return Gathered(
            messages=tuple(message for message, _ in replies),
            stops=tuple(stop for _, stop in replies),
            usage=usage,
            served_by=self._served_by,
            output_bytes=self._bytes + self._bytes_aside,
        )

    def _reply(self, index: int, has_hidden_thoughts: bool) -> tuple[AssistantMessage, StopReason]:
        choice = self._choices[index]
        text, ahead = _apart(_joined(choice.text))
        reasoning, refusal = _joined(choice.reasoning), _joined(choice.refusal)
        seed = hashlib.sha256(f"{self._id} {index} {text[:1000]!r}".encode()).hexdigest()
        message = AssistantMessage(
            text=text or refusal,
            tool_calls=finished_calls(choice.calls, seed),
            reasoning="\n\n".join(thought for thought in (reasoning, ahead) if thought),
            native=self._native(reasoning),
        )
        has_thought = bool(message.reasoning) or has_hidden_thoughts
        if self.is_full or (choice.finish is None and not self._has_ended):
            return message, StopReason.LENGTH
        return message, _stop_reason(choice.finish or "", message, is_refusal=bool(refusal), has_thought=has_thought)

    def _native(self, reasoning: str) -> NativeMessage | None:
        if not reasoning:
            return None
        return NativeMessage(protocol=PROTOCOL, model=self._account, body={REASONING: reasoning})


def _stop_reason(finish: str, message: AssistantMessage, *, is_refusal: bool, has_thought: bool) -> StopReason:
    if is_refusal:
        return StopReason.REFUSAL
    if finish in _STOPS:
        return _STOPS[finish]
    if message.tool_calls:
        return StopReason.TOOLS
    return StopReason.THOUGHT if has_thought and not message.text.strip() else StopReason.END


def _apart(text: str) -> tuple[str, str]:
    """A text without the thoughts at its beginning, and these.

    Where the prompt's template holds the first tag, only the second one comes, on a line of its own.
    """
    ahead, found, rest = text.partition(_END)
    if ahead.lstrip().startswith(_BEGIN):
        return rest.lstrip(), ahead.lstrip().removeprefix(_BEGIN).strip()
    if found and _BEGIN not in ahead and ahead.endswith("\n") and rest[:1] in ("", "\n", "\r"):
        return rest.lstrip(), ahead.strip()
    return text, ""


def _content(content: object) -> tuple[str, str]:
    """Text and thoughts of a content, which may also be a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, Mapping):
            texts.append(_text(part.get("text")))
            thought = part.get("thinking")
            thoughts.append(_content(thought)[0] if isinstance(thought, list) else _text(thought))
    return "".join(texts), "".join(thoughts)


def _content_bytes(delta: object) -> int:
    """Size of what a piece of a reply says, in whatever fields."""
    if not isinstance(delta, Mapping):
        return 0
    texts = [
        *_content(delta.get("content")),
        *map(_text, map(delta.get, ("reasoning_content", "reasoning", "refusal"))),
    ]
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            texts += [_text(function.get("name")), _text(function.get("arguments"))]
    return sum(len(text.encode("utf-8", errors="surrogatepass")) for text in texts)


def _said_usage(chunk: Mapping[str, Any]) -> object:
    """The usage as the server says it; Groq hides it in a field of its own."""
    if (usage := chunk.get("usage")) is not None:
        return usage
    own = chunk.get("x_groq")
    return own.get("usage") if isinstance(own, Mapping) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _joined(pieces: list[str]) -> str:
    return _clean("".join(pieces))


def _clean(text: str) -> str:
    """Without lone surrogates, which no record or request can hold; two that came apart make their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", errors="replace")
    return text
