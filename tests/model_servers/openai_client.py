"""What tests of the OpenAI wire need on our side of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.openai_wire import OpenAIConnection, OpenAIWire
from orchestrator.llm.providers.wire import Failure, Gathered, Secret
from tests.model_servers.base import KEY, ModelServer
from tests.model_servers.openai import MODEL

ACCOUNT = "openai/test-model"
BASH = ToolSpec(
    name="bash",
    description="Runs a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
HELLO = UserMessage(text="Hello")
WIRE = OpenAIWire()


@dataclass(frozen=True, kw_only=True)
class Client:
    """Asks one server."""

    connection: OpenAIConnection
    entry: ModelEntry
    key: Secret | None
    wire: OpenAIWire = WIRE
    capabilities: Capabilities = field(default_factory=Capabilities)
    """Where a test does not say otherwise."""

    def parameters(
        self,
        *messages: Message,
        system: str = "You improve programs.",
        tools: Sequence[ToolSpec] = (BASH,),
        capabilities: Capabilities | None = None,
        samples: int = 1,
        temperature: float | None = None,
        seed: int = 7,
    ) -> dict[str, Any]:
        samplings = [
            Sampling(seed=seed + number, max_output_tokens=1000, temperature=temperature) for number in range(samples)
        ]
        return self.wire.parameters(
            Conversation(system=system, messages=messages or (HELLO,)),
            tools,
            samplings,
            entry=self.entry,
            account=ACCOUNT,
            capabilities=capabilities or self.capabilities,
        )

    def ask(self, *messages: Message, **further: Any) -> Gathered:
        """A whole reply."""
        exchange = self.connection.begin(self.parameters(*messages, **further))
        for _ in exchange:
            pass
        return exchange.gathered()

    def error(self, *messages: Message, **further: Any) -> tuple[Exception, bool]:
        """What is raised instead of a reply, and whether the server had begun to answer."""
        exchange = self.connection.begin(self.parameters(*messages, **further))
        try:
            for _ in exchange:
                pass
        except Exception as error:  # noqa: BLE001 - what it means is the question
            return error, exchange.has_begun
        raise AssertionError(f"it answered: {exchange.gathered()}")

    def fail(self, *messages: Message, **further: Any) -> Failure:
        """Why there is no reply."""
        error, has_begun = self.error(*messages, **further)
        return self.wire.failure(error, has_begun=has_begun, key=self.key)


@contextmanager
def client(
    server: ModelServer | str,
    *,
    key: str | None = KEY,
    chunk_seconds: float = 10,
    model: str = MODEL,
    wire: OpenAIWire = WIRE,
    capabilities: Capabilities | None = None,
    **entry: Any,
) -> Iterator[Client]:
    """A client for a server, or for a URL."""
    url = server if isinstance(server, str) else server.url
    asked = ModelEntry(provider=Provider.OPENAI, model=model, base_url=url, **entry)
    secret = None if key is None else Secret(key)
    with wire.connect(asked, secret, connect_seconds=5, chunk_seconds=chunk_seconds) as connection:
        yield Client(
            connection=connection, entry=asked, key=secret, wire=wire, capabilities=capabilities or Capabilities()
        )


def called(*calls: ToolCall, text: str = "", answers: Sequence[str] | None = None, **message: Any) -> list[Message]:
    """A turn that calls tools, and their answers."""
    results = [f"result of {call.name}" for call in calls] if answers is None else answers
    return [
        AssistantMessage(text=text, tool_calls=calls, **message),
        ToolMessage(
            results=tuple(
                ToolResult(call_id=call.id, text=answer) for call, answer in zip(calls, results, strict=False)
            )
        ),
    ]


def bash(identity: str = "call_1", command: str = "ls") -> ToolCall:
    """A call of the tool."""
    return ToolCall(id=identity, name="bash", arguments={"command": command})
