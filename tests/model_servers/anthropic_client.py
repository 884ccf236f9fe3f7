"""What tests of the Anthropic wire need on our side of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.conversation import Conversation, Message, Sampling, ToolSpec, UserMessage
from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.llm.providers.anthropic_wire import AnthropicConnection, AnthropicWire
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.wire import Failure, Gathered, Secret
from tests.model_servers.base import KEY, ModelServer

MODEL = "claude-sonnet-5"
BASH = ToolSpec(
    name="bash",
    description="Runs a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
WIRE = AnthropicWire()


@dataclass(frozen=True, kw_only=True)
class Client:
    """Asks one server."""

    connection: AnthropicConnection
    entry: ModelEntry
    key: Secret | None = field(default_factory=lambda: Secret(KEY))

    def parameters(
        self,
        *messages: Message,
        system: str = "You improve programs.",
        tools: Sequence[ToolSpec] = (BASH,),
        sampling: Sampling | None = None,
        capabilities: Capabilities | None = None,
    ) -> dict[str, Any]:
        return WIRE.parameters(
            Conversation(system=system, messages=messages or (UserMessage(text="Hello"),)),
            tools,
            [sampling or Sampling(seed=1, max_output_tokens=1000)],
            entry=self.entry,
            account=MODEL,
            capabilities=capabilities or Capabilities(),
        )

    def ask(self, *messages: Message, **further: Any) -> Gathered:
        """A whole reply."""
        exchange = self.connection.begin(self.parameters(*messages, **further))
        for _ in exchange:
            pass
        return exchange.gathered()

    def fail(self, *messages: Message, **further: Any) -> Failure:
        """Why there is none."""
        exchange = self.connection.begin(self.parameters(*messages, **further))
        try:
            for _ in exchange:
                pass
        except Exception as error:  # noqa: BLE001 - what it means is the question
            return WIRE.failure(error, has_begun=exchange.has_begun, key=self.key)
        raise AssertionError(f"it answered: {exchange.gathered()}")


@contextmanager
def client(
    server: ModelServer | str,
    *,
    key: str | None = KEY,
    chunk_seconds: float = 10,
    **entry: Any,
) -> Iterator[Client]:
    """A client for a server, or for a URL."""
    url = server if isinstance(server, str) else server.url
    asked = ModelEntry(provider=Provider.ANTHROPIC, model=MODEL, base_url=url, **entry)
    secret = None if key is None else Secret(key)
    with WIRE.connect(asked, secret, connect_seconds=5, chunk_seconds=chunk_seconds) as connection:
        yield Client(connection=connection, entry=asked, key=secret)
