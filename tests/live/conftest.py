"""A provider for each key that is set, and one purse for all of them: our own ledger."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.budgets import Account, Budget, Spend
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.model_access import Patience
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Steps
from orchestrator.search.requests import ModelRequests
from tests.live.providers import PROVIDERS, LiveProvider
from tests.memory_journal import MemoryJournal

if TYPE_CHECKING:
    from orchestrator.llm.providers.model import ProviderModel

PATIENCE = Patience(chunk_seconds=120, request_seconds=300, outage_seconds=30)


class Purse:
    """Asks models and pays from one ledger, which refuses what is over the limit, or has no known price."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def ask(
        self, model: ProviderModel, conversation: Conversation, tools: Sequence[ToolSpec] = (), *, most: int = 400
    ) -> Reply:
        """One reply, which must not have cost more than was set aside for it."""
        sampling = Sampling(seed=secrets.randbelow(1 << 31), max_output_tokens=most)
        requests = ModelRequests(
            model=model,
            steps=Steps(MemoryJournal()),
            ledger=self.ledger,
            account=Account(role="agent", model=model.name),
            check=lambda: None,
            tools=tools,
        )
        worst = model.worst_case(conversation, tools, sampling)
        reply = requests.ask("request", conversation, sampling)
        assert worst.usd is not None
        assert reply.usage.usd is not None
        assert Decimal(0) < reply.usage.usd <= worst.usd
        assert reply.usage.tokens - reply.usage.output_tokens <= worst.input_tokens
        assert not reply.is_estimate
        return reply

    def let_spend(self, most: Decimal, spend: Callable[[Decimal], Decimal]) -> None:
        """Have something else spend; it is told its own limit, and gives what it has spent."""
        account = Account(role="agent", model="a run of its own")
        with self.ledger.reserve(Spend(usage=Usage(usd=most)), account) as reservation:
            reservation.settle(Spend(usage=Usage(usd=spend(most))))


@pytest.fixture(scope="session")
def purse(pytestconfig: pytest.Config) -> Iterator[Purse]:
    limit: Decimal = pytestconfig.getoption("--live-usd")
    purse = Purse(Ledger(Budget(usd=limit), spender="this session", way_out="raise --live-usd, the limit on"))
    yield purse
    spent = purse.ledger.snapshot().spent.usage.usd
    print(f"\nthe live tests have spent {spent} of {limit} US dollars")  # noqa: T201 - whoever pays wants to know


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.label)
def provider(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> LiveProvider:
    """One of them whose key is set."""
    provider: LiveProvider = request.param
    if not os.environ.get(provider.key):
        pytest.skip(f"{provider.key} is not set")
    named = dict(text.split("=", 1) for text in pytestconfig.getoption("--live-model"))
    if provider.label not in named:
        return provider
    return replace(provider, entry=provider.entry.model_copy(update={"model": named[provider.label]}))


@pytest.fixture
def open_live(provider: LiveProvider) -> Iterator[Callable[..., ProviderModel]]:
    """Makes the provider's model, with further fields of its entry."""
    from orchestrator.llm.providers.breaker import Breakers  # noqa: PLC0415 - the SDKs take seconds, even to be skipped
    from orchestrator.llm.providers.opening import open_model  # noqa: PLC0415 - likewise

    with ExitStack() as stack:

        def make(**fields: Any) -> ProviderModel:
            entry = provider.entry.model_copy(update=fields)
            model = open_model(
                f"{entry.provider}/{entry.model}",
                entry,
                environment=os.environ,
                patience=PATIENCE,
                breakers=Breakers(),
                token=CancelToken(),
                note=lambda _: None,
            )
            stack.callback(model.close)
            return model

        yield make
