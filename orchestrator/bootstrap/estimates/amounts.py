"""Requests and tokens of an estimate, and the sizes of the requests of a growing conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.domain.conversation import Usage

_SMALLEST_USD = Decimal("0.00000001")


class Size(NamedTuple):
    """Requests of one size."""

    requests: int
    tokens: int
    """Of the input of each."""
    seen: int
    """As much of it as an earlier request held too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Requests and what they take."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Amounts) -> Amounts:
        """Sum; an unknown price makes the sum's unknown."""
        return Amounts(requests=self.requests + other.requests, usage=self.usage + other.usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one role takes of one model."""

    role: str
    model: EstimatedModel
    expected: Amounts
    at_most: Amounts
    """What settings and context allow, whatever the budget."""


def times(usage: Usage, factor: int | Fraction) -> Usage:
    """A usage so many times over; tokens are rounded to whole ones."""
    usd = usage.usd
    if usd is not None:
        exact = Fraction(usd) * factor
        usd = usd * factor if isinstance(factor, int) else Decimal(exact.numerator) / Decimal(exact.denominator)
    return Usage(
        input_tokens=round(usage.input_tokens * factor),
        cached_input_tokens=round(usage.cached_input_tokens * factor),
        cache_write_tokens=round(usage.cache_write_tokens * factor),
        output_tokens=round(usage.output_tokens * factor),
        reasoning_tokens=round(usage.reasoning_tokens * factor),
        usd=usd,
    )


def expected_amounts(
    model: EstimatedModel, sizes: Iterable[Size], *, output_tokens: int, cached_share: float
) -> Amounts:
    """What requests of these sizes take of a model, for its share of them.

    Args:
        model: Who is asked.
        sizes: Of all requests of the role.
        output_tokens: Of each reply.
        cached_share: How much of what was seen before comes from the provider's cache, 0 to 1.
    """
    total = Amounts()
    for size in sizes:
        one = model.usage(size=size.tokens, seen=size.seen, output_tokens=output_tokens, cached_share=cached_share)
        total += Amounts(requests=size.requests, usage=times(one, size.requests))
    return shared(total, model.share)


def most_amounts(model: EstimatedModel, requests: int, *, output_limit: int, input_limit: int | None = None) -> Amounts:
    """What so many requests can take at most of a model; each member of an ensemble may have to answer them all."""
    return Amounts(requests=requests, usage=times(model.most(output_limit, input_limit), requests))


def shared(amounts: Amounts, share: Fraction) -> Amounts:
    """A share of everything."""
    if share == 1:
        return amounts
    return Amounts(requests=round(amounts.requests * share), usage=times(amounts.usage, share))


def conversation(requests: int, *, first: int, growth: int, limit: int, restart: int) -> Iterator[Size]:
    """The sizes of one agent's requests: a conversation that resends itself, and begins anew when it is full.

    Args:
        requests: Of the whole agent.
        first: Tokens of the first request.
        growth: What every exchange adds, from 1.
        limit: A conversation that is so long is not gone on with.
        restart: Tokens of the first request of every further conversation.
    """
    left = requests
    begin = first
    while left > 0:
        length = max(1, -(-(limit - begin) // growth))
        made = min(left, length)
        # of the conversations after the first one all are alike, so they are counted and not walked through
        alike = 1 if begin != restart else max(1, left // length)
        before = 0
        for number in range(made):
            tokens = begin + number * growth
            yield Size(alike, tokens, before)
            before = tokens
        left -= made * alike
        begin = restart


def total_of(lines: Sequence[Line]) -> tuple[Amounts, Amounts]:
    """What all take together: expected, and at most; of an ensemble's members the dearest one counts."""
    expected = sum((line.expected for line in lines), Amounts())
    most = Amounts()
    for role in dict.fromkeys(line.role for line in lines):
        most += _dearest([line.at_most for line in lines if line.role == role])
    return expected, most


def _dearest(several: Sequence[Amounts]) -> Amounts:
    """At most as much of everything as any of them."""
    prices = [one.usage.usd for one in several]
    known = [price for price in prices if price is not None]
    usage = Usage(
        input_tokens=max(one.usage.input_tokens for one in several),
        output_tokens=max(one.usage.output_tokens for one in several),
        usd=max(known) if len(known) == len(prices) else None,
    )
    return Amounts(requests=max(one.requests for one in several), usage=usage)


def rounded(amounts: Amounts) -> Amounts:
    """Dollars to a millionth of a cent."""
    usd = amounts.usage.usd
    return amounts if usd is None else replace(amounts, usage=replace(amounts.usage, usd=usd.quantize(_SMALLEST_USD)))
