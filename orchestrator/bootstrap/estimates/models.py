"""The models of an estimate: what they cost, how much fits into them, and whether their providers cache input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from orchestrator.bootstrap.model_names import entry_of, offline_model, require_name
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import PROVIDER_URLS, ModelAccess, ModelEntry, ModelRole, Price, PriceTier
from orchestrator.llm.prices import PriceTable, cost, find_price, worst_cost
from orchestrator.llm.providers.capabilities import find_capabilities

FREE = Price(input=Decimal(0), output=Decimal(0))
_MILLION = 1_000_000
_NOTHING_RECORDED: Mapping[str, int] = MappingProxyType({})


class ContextSource(StrEnum):
    """Who says how much fits into a model."""

    ENTRY = "entry"
    TABLE = "table"
    """The table of capabilities."""
    ENGINE = "engine"
    """The `offline` engine, of itself."""
    RECORDED = "recorded"
    """The recorded run, whose server may have said it."""
    ASSUMED = "assumed"
    """Nobody before the run's server is asked."""


_SOURCES = {
    ContextSource.ENTRY: "as its entry says",
    ContextSource.TABLE: "by the table of capabilities",
    ContextSource.ENGINE: "the engine's own",
    ContextSource.RECORDED: "as the recorded run had it",
    ContextSource.ASSUMED: "which is assumed, for neither its entry nor the table says it; a run asks its server, "
    "which may say more",
}


class TokenPrices(NamedTuple):
    """Bounds of what one token can cost, in US dollars."""

    least_input: Fraction
    """Of the cheapest kind of input."""
    least_output: Fraction
    most: Fraction
    """Of the dearest kind of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedModel:
    """One model as far as an estimate is concerned."""

    name: str
    share: Fraction = Fraction(1)
    """Of the role's requests; under 1 for a member of an ensemble."""
    price: Price | None
    """None: unknown."""
    price_source: str
    """Where the price is from, in words; empty: it is unknown, or the model is free."""
    context_tokens: int
    context_source: ContextSource
    max_output_tokens: int | None
    """None: nobody says."""
    caches: bool
    """Whether its provider serves input from a cache that it has seen before."""
    samples: int = 1
    """How many replies one call may give, for which its input is paid once."""

    @property
    def bills_writes(self) -> bool:
        """Whether input that goes into the cache has a price of its own."""
        return self.caches and self.price is not None and self.price.cache_write is not None

    @property
    def token_prices(self) -> TokenPrices | None:
        """What a token costs at least and at most; None: the price is unknown."""
        if self.price is None:
            return None
        tiers: list[PriceTier] = [self.price, *([] if self.price.above is None else [self.price.above])]
        given = [(t.input, t.cached_input, t.cache_write) for t in tiers]
        inputs = [Fraction(price) / _MILLION for tier in given for price in tier if price is not None]
        outputs = [Fraction(price) / _MILLION for t in tiers for price in (t.output, t.reasoning) if price is not None]
        return TokenPrices(min(inputs), min(outputs), max(*inputs, *outputs))

    def usage(self, *, size: int, seen: int, output_tokens: int, cached_share: float) -> Usage:
        """Of one request.

        Args:
            size: Tokens of its input.
            seen: As much of it as the provider has seen before.
            output_tokens: Of the reply.
            cached_share: How much of that comes from the cache, 0 to 1.
        """
        cached = round(seen * cached_share) if self.caches else 0
        rest = size - cached
        usage = Usage(
            input_tokens=0 if self.bills_writes else rest,
            cached_input_tokens=cached,
            cache_write_tokens=rest if self.bills_writes else 0,
            output_tokens=output_tokens,
        )
        return self.priced(usage)

    def priced(self, usage: Usage) -> Usage:
        """The usage of one request with its price."""
        return replace(usage, usd=None if self.price is None else cost(self.price, usage))

    def priced_together(self, usage: Usage, *, requests: int | Fraction) -> Usage:
        """The usage of many requests with its price; where a price has two tiers, the average request's counts.

        Args:
            usage: Of all of them.
            requests: How many they are, over 0.
        """
        if self.price is None:
            return replace(usage, usd=None)
        tier: PriceTier = self.price
        size = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens
        threshold = self.price.above_input_tokens
        if threshold is not None and self.price.above is not None and size > threshold * requests:
            tier = self.price.above
        flat = Price.model_validate({name: getattr(tier, name) for name in PriceTier.model_fields})
        return replace(usage, usd=cost(flat, usage))

    def most(self, output_limit: int, input_limit: int | None = None) -> Usage:
        """What one request can take at most: input and output share the context.

        Args:
            output_limit: Of one reply.
            input_limit: Of one request; None: what the context holds.
        """
        context = self.context_tokens
        out = max(1, min(output_limit, self.max_output_tokens or output_limit, context - 1))
        most_input = context - 1 if input_limit is None else max(0, min(input_limit, context - 1))
        into = min(most_input, context - out)
        usd = None if self.price is None else self._worst(self.price, into, most_input, out)
        return Usage(input_tokens=into, output_tokens=out, usd=usd)

    def _worst(self, price: Price, into: int, most_input: int, out: int) -> Decimal:
        """The dearest division of the context; between these sizes the cost has no corner."""
        sizes = {into, most_input}
        if price.above_input_tokens is not None:
            sizes |= {size for size in (price.above_input_tokens, price.above_input_tokens + 1) if size <= most_input}
        room = self.context_tokens
        return max(worst_cost(price, input_tokens=size, output_tokens=min(out, room - size)) for size in sizes)


def estimated_models(
    name: str,
    role: ModelRole,
    access: ModelAccess,
    table: PriceTable,
    *,
    context_tokens: int,
    recorded: Mapping[str, int] = _NOTHING_RECORDED,
) -> list[EstimatedModel]:
    """The model of a name, or the members of an ensemble, whose conversations must fit into the smallest of them.

    Args:
        name: As it was given.
        role: What it will be asked for.
        access: What is said of models.
        table: Of prices.
        context_tokens: Of a model of which nobody says it.
        recorded: By name, the context that a recorded run had; it counts where entry and table say nothing.

    Raises:
        InputError: The name means nothing.
    """
    require_name(name, access, with_ensembles=role is ModelRole.AGENT)
    unsaid = (recorded[name], ContextSource.RECORDED) if name in recorded else (context_tokens, ContextSource.ASSUMED)
    if name not in access.ensembles:
        return [_model(name, access, table, Fraction(1), unsaid)]
    members = access.ensembles[name]
    weights = [Fraction(member.weight) for member in members]
    for member in members:
        require_name(member.model, access)
    found = [
        _model(member.model, access, table, weight / sum(weights), unsaid)
        for member, weight in zip(members, weights, strict=True)
    ]
    least = min(found, key=lambda one: one.context_tokens)
    return [replace(one, context_tokens=least.context_tokens, context_source=least.context_source) for one in found]


def context_facts(models: Iterable[EstimatedModel]) -> Iterator[str]:
    """How much fits into each model, and who says so."""
    for name, tokens, source in dict.fromkeys((one.name, one.context_tokens, one.context_source) for one in models):
        yield f"a conversation with {name} has {tokens:,} tokens at most, {_SOURCES[source]}"


def _model(
    name: str, access: ModelAccess, table: PriceTable, share: Fraction, unsaid: tuple[int, ContextSource]
) -> EstimatedModel:
    offline = offline_model(name)
    entry = None if offline is not None else entry_of(name, access)
    if offline is not None or entry is None:
        context, source = unsaid if offline is None else (offline.context_tokens, ContextSource.ENGINE)
        return EstimatedModel(
            name=name,
            share=share,
            price=FREE,
            price_source="",
            context_tokens=context,
            context_source=source,
            max_output_tokens=None,
            caches=False,
        )
    known = find_capabilities(entry)
    price = find_price(entry, table)
    context, source = _context(entry, known.context_tokens, unsaid)
    return EstimatedModel(
        name=name,
        share=share,
        price=price,
        price_source=_source(entry, table),
        context_tokens=context,
        context_source=source,
        max_output_tokens=entry.max_output_tokens or known.max_output_tokens,
        samples=known.samples,
        caches=entry.url == PROVIDER_URLS[entry.provider] or (price is not None and price.cached_input is not None),
    )


def _context(entry: ModelEntry, known: int | None, unsaid: tuple[int, ContextSource]) -> tuple[int, ContextSource]:
    """What a run would take, in the same order."""
    if entry.context_tokens is not None:
        return entry.context_tokens, ContextSource.ENTRY
    return unsaid if known is None else (known, ContextSource.TABLE)


def _source(entry: ModelEntry, table: PriceTable) -> str:
    if entry.price is not None:
        return "as you give it"
    found = table.find(entry)
    return "" if found is None else f"{found.as_of.isoformat()}, {found.source}"
