"""A model from its entry: the protocol, the key, what its server takes and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.domain.model_access import ModelEntry, Patience, Provider
from orchestrator.llm.prices import find_price, price_table
from orchestrator.llm.providers.anthropic_wire import AnthropicWire
from orchestrator.llm.providers.breaker import Breakers
from orchestrator.llm.providers.capabilities import find_capabilities
from orchestrator.llm.providers.keys import read_key
from orchestrator.llm.providers.model import ProviderModel
from orchestrator.llm.providers.openai_wire import OpenAIWire
from orchestrator.llm.providers.responses_wire import ResponsesWire
from orchestrator.llm.providers.wire import Wire
from orchestrator.runtime.workers import CancelToken

CONNECT_SECONDS = 15.0
"""For a connection to come about, unless a whole reply may not take that long."""
_WIRES: Mapping[tuple[Provider, str], Callable[[], Wire]] = {
    (Provider.ANTHROPIC, "chat"): AnthropicWire,
    (Provider.OPENAI, "chat"): OpenAIWire,
    (Provider.OPENAI, "responses"): ResponsesWire,
}
"""By provider and `Capabilities.api`."""


def open_model(
    name: str,
    entry: ModelEntry,
    *,
    environment: Mapping[str, str],
    patience: Patience,
    breakers: Breakers,
    token: CancelToken,
    note: Callable[[str], None],
) -> ProviderModel:
    """A model that is ready to be asked; nothing is sent yet, and `ProviderModel.check` sees whether it can be.

    Args:
        name: For records.
        entry: Which model it is.
        environment: Where keys and the path of a price file are looked up.
        patience: How long is waited.
        breakers: Of the process.
        token: Ends every wait.
        note: Told what an operator should know.

    Raises:
        PrerequisiteError: Its key is missing, or others can read it.
        InputError: The user's price file is malformed, or the entry's options set what the budget rests on.
    """
    key = read_key(entry.key_source, environment)
    price = find_price(entry, price_table(environment))
    capabilities = find_capabilities(entry)
    wire = _WIRES[entry.provider, capabilities.api]()
    return ProviderModel(
        name=name,
        entry=entry,
        wire=wire,
        connection=wire.connect(
            entry,
            key,
            connect_seconds=min(CONNECT_SECONDS, patience.request_seconds),
            chunk_seconds=patience.chunk_seconds,
        ),
        key=key,
        capabilities=capabilities,
        price=price,
        patience=patience,
        breaker=breakers.of(entry.url, entry.key_source),
        token=token,
        note=note,
    )
