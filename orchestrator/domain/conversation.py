"""What goes to a language model and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish; untrusted."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    """None: the arguments were no JSON object; `raw_arguments` has the text."""
    raw_arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """Ours."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """The model's."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The answer to one tool call."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The answers to all tool calls of the assistant message before it, in their order."""

    results: tuple[ToolResult, ...]


Message = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A system prompt and the messages so far."""

    system: str
    messages: tuple[Message, ...]

    def plus(self, *messages: Message) -> Conversation:
        """The same conversation with messages added."""
        return Conversation(system=self.system, messages=self.messages + messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to sample a reply."""

    seed: int
    """For adapters that offer seeds; the offline engine draws from it alone."""
    max_output_tokens: int = 32_000
    temperature: float | None = None
    """None: the provider's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Cost of one model call or of many."""

    input_tokens: int = 0
    """Uncached input."""
    cached_input_tokens: int = 0
    output_tokens: int = 0
    """Including reasoning."""
    usd: Decimal | None = Decimal(0)
    """US dollars; None: unknown, not free."""

    def __add__(self, other: Usage) -> Usage:
        """Sum; an unknown price makes the sum unknown."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=usd,
        )

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.input_tokens + self.cached_input_tokens + self.output_tokens


class StopReason(StrEnum):
    """Why a reply ended."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer."""

    message: AssistantMessage
    usage: Usage
    stop: StopReason
