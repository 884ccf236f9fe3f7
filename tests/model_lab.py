"""A provider's model against a local server of its protocol, as the product opens it, with quick retries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, UserMessage
from orchestrator.domain.model_access import KeySource, ModelEntry, Patience, Price, Provider
from orchestrator.llm.prices import find_price
from orchestrator.llm.providers.anthropic_wire import AnthropicWire
from orchestrator.llm.providers.breaker import Breakers
from orchestrator.llm.providers.capabilities import find_capabilities
from orchestrator.llm.providers.circuit import Pace
from orchestrator.llm.providers.keys import read_key
from orchestrator.llm.providers.model import ProviderModel
from orchestrator.llm.providers.openai_wire import OpenAIWire
from orchestrator.llm.providers.opening import open_model
from orchestrator.llm.providers.wire import Wire
from orchestrator.runtime.workers import CancelToken, Worker, spawn
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.base import KEY, Answer, ModelServer, Script
from tests.model_servers.openai import OpenAIServer

VARIABLE = "TEST_MODEL_KEY"
NAMES = {Provider.ANTHROPIC: "claude-sonnet-5", Provider.OPENAI: "test-model"}
SERVERS: dict[Provider, Callable[..., ModelServer]] = {
    Provider.ANTHROPIC: AnthropicServer,
    Provider.OPENAI: OpenAIServer,
}
PRICE = Price(input=Decimal(3), cached_input=Decimal("0.3"), cache_write=Decimal("3.75"), output=Decimal(15))
QUICK = Pace(first_pause=0.05, longest_pause=0.2, gap=0.01)
"""As the usual pace, but for people who do not wait."""
HELLO = Conversation(system="You answer.", messages=(UserMessage(text="Hello."),))
SAMPLING = Sampling(seed=1, max_output_tokens=1000)
TOOL = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


@dataclass(frozen=True, kw_only=True)
class ModelLab:
    """One model, its server and what came of it."""

    server: Any
    model: ProviderModel
    token: CancelToken
    notes: list[str]
    thread_names: set[str]
    """Of all threads that were alive when something was noted or asked for."""

    def ask(self, conversation: Conversation = HELLO, sampling: Sampling = SAMPLING) -> Reply:
        return self.model.complete(conversation, [TOOL], sampling)

    def ask_in_threads(self, count: int) -> list[Worker[Reply]]:
        """The same from several threads at the same instant; all have ended."""
        barrier = threading.Barrier(count)

        def ask() -> Reply:
            barrier.wait(5)
            return self.ask()

        workers = [spawn(f"asker {number}", ask) for number in range(count)]
        assert all(worker.join(20) for worker in workers)
        return workers

    @property
    def calls(self) -> int:
        """Model requests that the server's script answered."""
        return len(self.server.requests)

    def note_threads(self) -> None:
        self.thread_names.update(thread.name for thread in threading.enumerate())


def entry_for(provider: Provider, url: str, **fields: Any) -> ModelEntry:
    """A model at a local server."""
    usual = {"base_url": url, "key": KeySource(env=VARIABLE), "price": PRICE, "context_tokens": 200_000}
    return ModelEntry(**{"provider": provider, "model": NAMES[provider], **usual, **fields})


@contextmanager
def model_at(
    server: ModelServer,
    provider: Provider,
    *,
    patience: Patience,
    pace: Pace = QUICK,
    samples: int | None = None,
    **fields: Any,
) -> Iterator[ModelLab]:
    """A model at a server that runs already.

    Args:
        server: That runs.
        provider: Whose protocol.
        patience: Of the model.
        pace: Of the breaker.
        samples: How many replies one call may ask for; None: as the table of capabilities says of such a server.
        fields: Of the model's entry.
    """
    notes: list[str] = []
    names: set[str] = set()
    token = CancelToken()

    def note(text: str) -> None:
        notes.append(text)
        names.update(thread.name for thread in threading.enumerate())

    entry = entry_for(provider, server.url, **fields)
    name = f"{provider.value}/{NAMES[provider]}"
    environment = {VARIABLE: KEY}
    breakers = Breakers(pace)
    if samples is None:
        model = open_model(
            name, entry, environment=environment, patience=patience, breakers=breakers, token=token, note=note
        )
    else:
        wire: Wire = AnthropicWire() if provider is Provider.ANTHROPIC else OpenAIWire()
        key = read_key(entry.key_source, environment)
        model = ProviderModel(
            name=name,
            entry=entry,
            wire=wire,
            connection=wire.connect(entry, key, connect_seconds=5.0, chunk_seconds=patience.chunk_seconds),
            key=key,
            capabilities=replace(find_capabilities(entry), samples=samples),
            price=find_price(entry),
            patience=patience,
            breaker=breakers.of(entry.url, entry.key_source),
            token=token,
            note=note,
        )
    try:
        yield ModelLab(server=server, model=model, token=token, notes=notes, thread_names=names)
    finally:
        model.close()


@contextmanager
def model_lab(
    provider: Provider,
    script: Script | Sequence[Answer],
    *,
    request_seconds: float = 20.0,
    chunk_seconds: float = 10.0,
    outage_seconds: float = 20.0,
    pace: Pace = QUICK,
    server: dict[str, Any] | None = None,
    samples: int | None = None,
    **fields: Any,
) -> Iterator[ModelLab]:
    """A server and a model at it.

    Args:
        provider: Whose protocol.
        script: Of the server.
        request_seconds: As `Patience`.
        chunk_seconds: Likewise.
        outage_seconds: Likewise.
        pace: Of the breaker.
        server: Further arguments of the server.
        samples: As in `model_at`.
        fields: Of the model's entry.
    """
    patience = Patience(request_seconds=request_seconds, chunk_seconds=chunk_seconds, outage_seconds=outage_seconds)
    with (
        SERVERS[provider](script, **(server or {})) as running,
        model_at(running, provider, patience=patience, pace=pace, samples=samples, **fields) as lab,
    ):
        yield lab
