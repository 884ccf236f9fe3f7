"""What goes to a language model and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import Field

T = TypeVar("T")


def _is_nothing(value: object) -> bool:
    return not value


Rare = Annotated[T, Field(exclude_if=_is_nothing)]
"""A field that most values lack; records leave it out where it is empty, so that they stay short."""


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
class NativeMessage:
    """A model's message as its provider wants to see it again, where text and calls are not enough."""

    protocol: str
    """Who can read it, for instance `anthropic`; sent to nobody else."""
    model: str
    """Whose it is, as its account names it; thoughts of one model are signed, and refused by others."""
    body: Mapping[str, Any]
    """JSON of that protocol, unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """The model's."""

    text: str
    """The answer; what it thought on the way is not in it."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Rare[str] = ""
    """What it thought, as far as its provider shows it; for people, and sent to no model as text."""
    native: Rare[NativeMessage | None] = None
    """None: text and tool calls say all that its provider has to see again."""


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
    """Input that was neither read from a cache nor written into one."""
    cached_input_tokens: int = 0
    """Input that was read from a cache."""
    cache_write_tokens: Rare[int] = 0
    """Input that was written into a cache, where the provider bills that apart."""
    output_tokens: int = 0
    """Including reasoning."""
    reasoning_tokens: Rare[int] = 0
    """The part of the output that was reasoning, as far as the provider says."""
    usd: Decimal | None = Decimal(0)
    """US dollars; None: unknown, not free."""

    def __add__(self, other: Usage) -> Usage:
        """Sum; an unknown price makes the sum unknown."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            usd=usd,
        )

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.input_tokens + self.cached_input_tokens + self.cache_write_tokens + self.output_tokens


class StopReason(StrEnum):
    """Why a reply ended."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    """It was cut off: at `max_output_tokens`, or at the end of the context."""
    REFUSAL = "refusal"
    """The model, or a filter of its provider, would not answer."""
    THOUGHT = "thought"
    """The model thought, and then neither said anything nor called a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer."""

    message: AssistantMessage
    usage: Usage
    stop: StopReason
    served_by: Rare[str] = ""
    """What the provider calls the model that answered, where that is not the name it was asked under."""
    is_estimate: Rare[bool] = False
    """Whether the provider said nothing of the tokens it used, so that `usage` is our estimate, on the high side."""
