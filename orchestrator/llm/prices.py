"""What models cost: the price a user gives, or that of a dated table, or nothing known; and exact sums in US dollars.

The table is `prices.yaml` beside this module. A file of the same form that `$EVOLVARIUM_PRICES` names counts before it,
entry by entry: what it does not name, the table says. A price holds at the servers it is stated for and nowhere else,
so a model at another URL has none until somebody gives one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError

from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import PROVIDER_URLS, BaseUrl, ModelEntry, Price, PriceTier, Provider
from orchestrator.domain.model_rules import Pattern
from orchestrator.domain.written_settings import WrittenSettings
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.strict_yaml import MAX_BYTES, load_yaml
from orchestrator.runtime.user_files import read_file

PRICES_VARIABLE = "EVOLVARIUM_PRICES"
"""Environment variable that names a file of one's own."""
_MILLION = Decimal(1_000_000)
_FORM = "orchestrator/llm/prices.yaml shows the form"


def _written_date(value: object) -> object:
    if type(value) is not date and not isinstance(value, str):
        msg = "must be a date, for instance 2026-10-24"
        raise ValueError(msg)
    return value


class PricedModels(WrittenSettings):
    """Models of one price."""

    provider: Provider
    models: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    """What the provider calls them."""
    base_urls: tuple[BaseUrl, ...] = ()
    """Where the price holds; none: at the provider's own server."""
    as_of: Annotated[date, BeforeValidator(_written_date)]
    """When the source said so."""
    source: Annotated[str, Field(min_length=1, max_length=300)]
    """Who says it."""
    price: Price

    def fits(self, entry: ModelEntry) -> bool:
        """Whether the price is this model's, where it is."""
        urls = self.base_urls or (PROVIDER_URLS[self.provider],)
        return (
            entry.provider is self.provider
            and entry.url in urls
            and any(fnmatchcase(entry.model, pattern.replace("[", "[[]")) for pattern in self.models)
        )


class _PriceFile(WrittenSettings):
    version: Literal[1]
    prices: Annotated[tuple[PricedModels, ...], Field(max_length=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices, of which the first that fits counts."""

    entries: tuple[PricedModels, ...]

    def find(self, entry: ModelEntry) -> PricedModels | None:
        """The entry of a model; None: its price is unknown."""
        return next((priced for priced in self.entries if priced.fits(entry)), None)


def price_table(environment: Mapping[str, str] | None = None) -> PriceTable:
    """The user's own prices, and behind them those of the package.

    Args:
        environment: None: the process's own.

    Raises:
        InputError: The user's file cannot be read or is malformed; the message names the field.
    """
    path = (os.environ if environment is None else environment).get(PRICES_VARIABLE, "")
    own = read_prices(Path(path)) if path else ()
    return PriceTable(entries=(*own, *_shipped()))


def read_prices(path: Path) -> tuple[PricedModels, ...]:
    """The entries of a file of one's own.

    Raises:
        InputError: It cannot be read, is not strict YAML, or has a field that is missing, unknown or out of its range.
    """
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        msg = (
            f"cannot read the prices {str(path)!r}: {error.strerror}; correct ${PRICES_VARIABLE}, or unset it to use "
            "the table of the package alone"
        )
        raise InputError(msg) from error
    return _parsed(raw, str(path))


def find_price(entry: ModelEntry, table: PriceTable | None = None) -> Price | None:
    """What a model costs: what its entry says, else what the table says of it at its server; None: unknown.

    Args:
        entry: Of the model.
        table: None: as `price_table` reads it.

    Raises:
        InputError: As `price_table`.
    """
    if entry.price is not None:
        return entry.price
    found = (price_table() if table is None else table).find(entry)
    return None if found is None else found.price


def table_date() -> date:
    """The date of the package's table: that of its newest entry."""
    return max(priced.as_of for priced in _shipped())


def cost(price: Price, usage: Usage) -> Decimal:
    """US dollars of one request, exactly; of several requests only where `price` has no second tier.

    Args:
        price: Of the model.
        usage: Of the request; reasoning over its output counts as output and no more.
    """
    total_input = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens
    tier = _tier(price, total_input)
    reasoning = min(usage.reasoning_tokens, usage.output_tokens)
    dollars = (
        usage.input_tokens * tier.input
        + usage.cached_input_tokens * _or(tier.cached_input, tier.input)
        + usage.cache_write_tokens * _or(tier.cache_write, tier.input)
        + (usage.output_tokens - reasoning) * tier.output
        + reasoning * _or(tier.reasoning, tier.output)
    )
    return dollars / _MILLION


def worst_cost(price: Price, *, input_tokens: int, output_tokens: int) -> Decimal:
    """US dollars that no request of at most this size costs more than, however its tokens are counted.

    Args:
        price: Of the model.
        input_tokens: Of all kinds together.
        output_tokens: Reasoning included.
    """
    threshold = price.above_input_tokens
    within = input_tokens if threshold is None else min(input_tokens, threshold)
    worst = _dearest(price, within, output_tokens)
    if price.above is not None and threshold is not None and input_tokens > threshold:
        worst = max(worst, _dearest(price.above, input_tokens, output_tokens))
    return worst


def _tier(price: Price, total_input: int) -> PriceTier:
    is_above = price.above_input_tokens is not None and total_input > price.above_input_tokens
    return price.above if is_above and price.above is not None else price


def _dearest(tier: PriceTier, input_tokens: int, output_tokens: int) -> Decimal:
    into = max(tier.input, _or(tier.cached_input, tier.input), _or(tier.cache_write, tier.input))
    out = max(tier.output, _or(tier.reasoning, tier.output))
    return (input_tokens * into + output_tokens * out) / _MILLION


def _or(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price


@cache
def _shipped() -> tuple[PricedModels, ...]:
    name = "prices.yaml"
    return _parsed(files(__package__).joinpath(name).read_bytes(), name)


def _parsed(raw: bytes, source: str) -> tuple[PricedModels, ...]:
    document = load_yaml(raw, source)
    if not isinstance(document, dict):
        msg = f"{source}: prices are a mapping with `version: 1` and a list `prices`; {_FORM}"
        raise InputError(msg)
    try:
        return _PriceFile.model_validate(document).prices
    except ValidationError as error:
        msg = f"{source}: {complaint(error.errors(include_url=False)[0])}; {_FORM}"
        raise InputError(msg) from error
