"""The models of an estimate: what they cost, how much fits into them, and whether their providers cache input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from orchestrator.bootstrap.model_names import entry_of, offline_model, require_name
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import PROVIDER_URLS, ModelAccess, ModelEntry, ModelRole, Price, PriceTier
from orchestrator.llm.prices import PriceTable, cost, find_price, worst_cost
from orchestrator.llm.providers.capabilities import find_capabilities

FREE = Price(input=Decimal(0), output=Decimal(0))


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
    name: str, role: ModelRole, access: ModelAccess, table: PriceTable, *, context_tokens: int
) -> list[EstimatedModel]:
    """The model of a name, or the members of an ensemble.

    Args:
        name: As it was given.
        role: What it will be asked for.
        access: What is said of models.
        table: Of prices.
        context_tokens: Of a model of which nobody says it.

    Raises:
        InputError: The name means nothing.
    """
    require_name(name, access, with_ensembles=role is ModelRole.AGENT)
    if name not in access.ensembles:
        return [_model(name, access, table, Fraction(1), context_tokens)]
    members = access.ensembles[name]
    weights = [Fraction(member.weight) for member in members]
    for member in members:
        require_name(member.model, access)
    return [
        _model(member.model, access, table, weight / sum(weights), context_tokens)
        for member, weight in zip(members, weights, strict=True)
    ]


def _model(name: str, access: ModelAccess, table: PriceTable, share: Fraction, context_tokens: int) -> EstimatedModel:
    offline = offline_model(name)
    entry = None if offline is not None else entry_of(name, access)
    if offline is not None or entry is None:
        context = context_tokens if offline is None else offline.context_tokens
        return EstimatedModel(
            name=name,
            share=share,
            price=FREE,
            price_source="",
            context_tokens=context,
            max_output_tokens=None,
            caches=False,
        )
    known = find_capabilities(entry)
    price = find_price(entry, table)
    return EstimatedModel(
        name=name,
        share=share,
        price=price,
        price_source=_source(entry, table),
        context_tokens=entry.context_tokens or known.context_tokens or context_tokens,
        max_output_tokens=entry.max_output_tokens or known.max_output_tokens,
        samples=known.samples,
        caches=entry.url == PROVIDER_URLS[entry.provider] or (price is not None and price.cached_input is not None),
    )


def _source(entry: ModelEntry, table: PriceTable) -> str:
    if entry.price is not None:
        return "as you give it"
    found = table.find(entry)
    return "" if found is None else f"{found.as_of.isoformat()}, {found.source}"
