"""What a budget leaves of what settings and context allow.

Every figure is a ceiling by itself: as much input as context and money allow, and as much output, do not come together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, total_of
from orchestrator.bootstrap.estimates.models import TokenPrices
from orchestrator.domain.conversation import Usage

_FREE = TokenPrices(Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Of one line, or of several together."""

    amounts: Amounts
    """At most so many requests, so much input, so much output and so many dollars, each by itself."""
    tokens: int
    """Of all kinds together."""


def under_budget(lines: Sequence[Line], usd: Decimal | None, tokens: int | None) -> Ceilings:
    """What settings, context and budget allow.

    Args:
        lines: That share the budget; of an ensemble's members one may have to do everything.
        usd: Ceiling in US dollars; None: there is none.
        tokens: Ceiling in tokens; likewise.
    """
    most = total_of(lines)[1]
    whole = _bought(usd, lines, lambda one: one.usage.tokens, lambda price: min(price.least_input, price.least_output))
    if tokens is not None:
        whole = min(whole, tokens)
    # a request that leaves its reply one token has all the others in its input
    into = _bought(usd, lines, lambda one: one.usage.tokens - one.requests, lambda price: price.least_input)
    out = _bought(usd, lines, lambda one: one.usage.output_tokens, lambda price: price.least_output)
    usage = Usage(
        input_tokens=min(into, whole),
        output_tokens=min(out, whole),
        usd=_dollars(lines, most.usage.usd, usd, tokens),
    )
    return Ceilings(amounts=replace(most, usage=usage), tokens=whole)


def _bought(
    usd: Decimal | None,
    lines: Sequence[Line],
    count: Callable[[Amounts], int],
    price: Callable[[TokenPrices], Fraction],
) -> int:
    """How many tokens so much money buys, the cheapest first, and of each role no more than it can take."""
    left, bought = Fraction(usd or 0), 0
    offers = [
        (min(price(line.model.token_prices or _FREE) for line in role), max(count(line.at_most) for line in role))
        for role in _by_role(lines)
    ]
    for each, most in sorted(offers):
        some = most if usd is None or each == 0 else min(most, int(left / each))
        bought += some
        left -= some * each
    return bought


def _dollars(lines: Sequence[Line], most: Decimal | None, usd: Decimal | None, tokens: int | None) -> Decimal | None:
    """At most so many, by both ceilings; None: a price is unknown."""
    if most is None:
        return None
    if tokens is not None:
        prices = [line.model.token_prices or _FREE for line in lines]
        dearest = tokens * max((price.most for price in prices), default=Fraction(0))
        most = min(most, Decimal(dearest.numerator) / Decimal(dearest.denominator))
    return most if usd is None else min(most, usd)


def _by_role(lines: Sequence[Line]) -> list[list[Line]]:
    return [[line for line in lines if line.role == role] for role in dict.fromkeys(line.role for line in lines)]
