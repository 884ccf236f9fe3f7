"""A llama.cpp server with a small model, and our adapter to it; skipped where its packages are not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.model_access import KeySource, ModelEntry, Patience, Price, Provider
from orchestrator.llm.providers.breaker import Breakers
from orchestrator.llm.providers.capabilities import find_capabilities
from orchestrator.llm.providers.model import ProviderModel
from orchestrator.llm.providers.openai_wire import OpenAIWire
from orchestrator.llm.providers.wire import Secret
from orchestrator.runtime.workers import CancelToken
from tests.model_servers.base import KEY
from tests.model_servers.llama import MODEL, LlamaServer, missing_packages

ModelMaker = Callable[..., ProviderModel]


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all servers of this session."""
    if (reason := missing_packages()) is not None:
        pytest.skip(reason)
    return tmp_path_factory.mktemp("llama") / "server.log"


@pytest.fixture(scope="module")
def server(log: Path) -> Iterator[LlamaServer]:
    """With half the context that the model was trained with."""
    with LlamaServer(log, context_tokens=4096, slots=2) as server:
        yield server


@pytest.fixture
def open_model() -> Iterator[ModelMaker]:
    """Makes a model of a server, as `providers.opening` does, but with capabilities that no table has for its port."""
    with ExitStack() as stack:

        def make(
            server: LlamaServer,
            *,
            name: str = MODEL,
            samples: int = 1,
            seed: bool = False,
            price: Price | None = None,
            key: str = KEY,
            notes: list[str] | None = None,
            **options: Any,
        ) -> ProviderModel:
            entry = ModelEntry(
                provider=Provider.OPENAI,
                model=name,
                base_url=server.url,
                key=KeySource(env="LLAMA_KEY"),
                options=options,
            )
            patience = Patience(chunk_seconds=120, request_seconds=240, outage_seconds=60)
            wire, secret = OpenAIWire(), Secret(key)
            model = ProviderModel(
                name=f"openai/{name}",
                entry=entry,
                wire=wire,
                connection=wire.connect(entry, secret, connect_seconds=15, chunk_seconds=patience.chunk_seconds),
                key=secret,
                capabilities=replace(find_capabilities(entry), samples=samples, seed=seed),
                price=price,
                patience=patience,
                breaker=Breakers().of(entry.url, entry.key_source),
                token=CancelToken(),
                note=([] if notes is None else notes).append,
            )
            stack.callback(model.close)
            return model

        yield make
