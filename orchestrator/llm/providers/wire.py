"""What all protocols have in common: a request goes out, pieces come in, and a failure is of one kind of a few.

A `Wire` is a protocol: it makes requests out of conversations and replies out of pieces, and knows nothing of retries,
prices or budgets, which `providers.model` adds on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.domain.conversation import AssistantMessage, Conversation, Sampling, StopReason, ToolSpec, Usage
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.capabilities import Capabilities

MAX_REPLY_BYTES = 8 << 20
"""Of text, reasoning and arguments of one call together; what comes after it is not read, and the reply is cut off."""

_MOST_TOKENS = 100_000_000


class Secret:
    """A key. Neither its text form nor its pickle holds it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the header it goes into."""
        return self._value

    def __repr__(self) -> str:
        """Without the key."""
        return "Secret(***)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse to be pickled.

        Raises:
            TypeError: Always.
        """
        msg = "a key cannot be pickled"
        raise TypeError(msg)


class Fault(StrEnum):
    """Why a call failed, as far as it matters for what is done next."""

    OUTAGE = "outage"
    """The server does not serve at the moment (5xx, overloaded, refused connection): wait and try again."""
    RATE = "rate"
    """Too many requests (429): wait as long as it says and try again."""
    ACCESS = "access"
    """No key, a wrong or revoked one, no credit, or no such model: nothing changes until somebody does something."""
    PARAMETER = "parameter"
    """A parameter is refused; `Failure.parameter` names it."""
    CONTEXT = "context"
    """The conversation is too long."""
    REQUEST = "request"
    """Any other refusal of the request."""
    BROKEN = "broken"
    """It was sent, and then the connection broke, stalled, or carried what is no reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One call that failed."""

    fault: Fault
    message: str
    """One line, at most 300 characters, without keys."""
    retry_after: float | None = None
    """Seconds the server asks to wait; None: it says nothing."""
    parameter: str | None = None
    may_be_paid: bool = False
    """Whether the provider may bill it: the request was sent, and no error status came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What one call brought."""

    messages: tuple[AssistantMessage, ...]
    """One for each sample. A wire, which knows no account, has native forms name the model as the request did."""
    stops: tuple[StopReason, ...]
    """Likewise."""
    usage: Usage | None
    """Of all together, `usd` is not set; None: the server did not say."""
    served_by: str
    """What the server calls the model; empty: it does not say."""
    output_bytes: int
    """Of text, reasoning and arguments, to estimate by where `usage` is None."""

    def owned_by(self, account: str) -> Gathered:
        """The same with the name of the model for records in native forms, so that they go back to it alone."""
        return replace(self, messages=tuple(_owned(message, account) for message in self.messages))


def _owned(message: AssistantMessage, account: str) -> AssistantMessage:
    native = message.native
    return message if native is None else replace(message, native=replace(native, model=account))


class Exchange(Protocol):
    """One call under way. Iterating and `gathered` belong to one thread; `shut` may be called from any."""

    def __iter__(self) -> Iterator[None]:
        """Receive; yields after every piece, so that the caller can look at its clock.

        Raises:
            Exception: Whatever the SDK raises; `Wire.failure` reads it.
        """
        ...

    def gathered(self) -> Gathered:
        """What has come; after the last piece, or at any time to see what there is."""
        ...

    @property
    def has_begun(self) -> bool:
        """Whether the server has answered with a success status, from when on it may bill."""
        ...

    def shut(self) -> None:
        """Break the connection, so that a waiting reader wakes up; idempotent, and never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a server says of a model, asked without cost; None: it does not say."""

    is_known: bool | None
    """Whether it serves a model of this name."""
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    close_names: tuple[str, ...] = ()
    """Names it serves that are alike, or the first few."""
    served_below: str = ""
    """What has to stand behind its URL, for instance `/v1`, since it serves models there alone."""


def sane_context(said: object) -> int | None:
    """A context as a server says it, in tokens; None: it is no number that a context can have."""
    return said if type(said) is int and 1024 <= said <= _MOST_TOKENS else None


def sane_output(said: object) -> int | None:
    """The most output as a server says it, in tokens; None: it is no number that this can be."""
    return said if type(said) is int and 16 <= said <= _MOST_TOKENS else None


class Connection(AbstractContextManager["Connection"], Protocol):
    """An SDK's client for one server, with its own retries switched off. Thread-safe."""

    def begin(self, parameters: Mapping[str, Any]) -> Exchange:
        """Prepare a streamed call; nothing is sent before the exchange is iterated.

        Args:
            parameters: As `Wire.parameters` gave them.
        """
        ...

    def facts(self, model: str, *, seconds: float) -> ModelFacts:
        """Ask about a model, within so many seconds, without any cost.

        Raises:
            Exception: Whatever the SDK raises; `Wire.failure` reads it.
        """
        ...


class Wire(Protocol):
    """A provider's protocol. Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """Of the protocol: a `Provider`'s value."""
        ...

    def connect(
        self, entry: ModelEntry, key: Secret | None, *, connect_seconds: float, chunk_seconds: float
    ) -> Connection:
        """A client; sends nothing.

        Args:
            entry: Whose server.
            key: None: the server needs none.
            connect_seconds: For a connection to come about.
            chunk_seconds: Without a byte before a call counts as broken.
        """
        ...

    def parameters(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        samplings: Sequence[Sampling],
        *,
        entry: ModelEntry,
        account: str,
        capabilities: Capabilities,
    ) -> dict[str, Any]:
        """The body of a request, as JSON.

        Args:
            conversation: Also one that other models took part in.
            tools: It may call.
            samplings: More than one only where `capabilities.samples` is over 1; alike in all but their seeds.
            entry: Whose `options` go in as they are, after everything else.
            account: Name of the model for records: only native messages of this model are sent as such.
            capabilities: What the model's server takes.
        """
        ...

    def failure(self, error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
        """What an exception of the SDK, or of the transport below it, means."""
        ...
