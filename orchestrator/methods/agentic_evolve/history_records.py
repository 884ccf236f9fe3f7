"""What a journal's records must look like before anything is computed from them.

A record's digest says that it was not damaged, not that this version wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.conversation import Usage
from orchestrator.errors import InputError, RunStateError
from orchestrator.methods.agentic_evolve.entries import Entry

_MAX_TOKENS = 10**15
_MAX_USD = Decimal(10**12)


class _Settings(BaseModel):
    model_config = ConfigDict(strict=True)

    islands: Annotated[int, Field(ge=1, le=64)]
    bins: Annotated[int, Field(ge=1, le=1000)]
    commits_per_island: Annotated[int, Field(ge=1, le=100_000)]
    analysis: bool


class _Task(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    fitness: str
    features: Annotated[list[str], Field(min_length=1, max_length=8)]


class _Header(BaseModel):
    """The record `run`, as far as a history needs it; it may hold more."""

    model_config = ConfigDict(strict=True)

    method: str
    model: str
    seed: int
    settings: _Settings
    task: _Task


@contextmanager
def record_of(key: str) -> Iterator[None]:
    """Say of whatever is wrong with a record in this block which record it is.

    Raises:
        RunStateError: It lacks a part, or has one of another shape.
    """
    try:
        yield
    except (InputError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {str(error)[:200]}"
        if isinstance(error, RunStateError) and repr(key) in reason:
            raise
        msg = f"the record of {key!r} is damaged ({reason}); restore the run from a copy, or remove it"
        raise RunStateError(msg) from error


def check_header(header: Mapping[str, Any]) -> None:
    """Accept a header that a history can be read with.

    Raises:
        ValueError: A field is missing or of another kind.
    """
    try:
        _Header.model_validate(dict(header))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        msg = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ValueError(msg) from error


def check_known(ids: Iterable[str | None], known: Container[str]) -> None:
    """Accept candidates that were recorded before; None stands for no candidate.

    Raises:
        ValueError: One was not.
    """
    for candidate in ids:
        if candidate is not None and candidate not in known:
            msg = f"it names {candidate[:40]!r}, which was not recorded before it"
            raise ValueError(msg)


def checked_usage(usage: Usage) -> Usage:
    """Return what can be summed and charged.

    Raises:
        ValueError: A part is negative, not finite, or more than any model call can take.
    """
    tokens = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens)
    usd = Decimal(0) if usage.usd is None else usage.usd
    if not all(0 <= count <= _MAX_TOKENS for count in tokens) or not usd.is_finite() or not 0 <= usd <= _MAX_USD:
        msg = f"its usage is not possible: {tokens} tokens, {usd:.6g} US dollars"
        raise ValueError(msg)
    return usage


def check_entry(entry: Entry, header: Mapping[str, Any]) -> Entry:
    """Return an entry whose metrics the grid can hold.

    Raises:
        ValueError: Fitness or a feature is missing or not finite, or a feature is outside [0, 1].
    """
    metrics = entry.verdict.metrics
    if metrics is None:
        return entry
    for name in (header["task"]["fitness"], *header["task"]["features"]):
        value = metrics.get(name, math.nan)
        if not math.isfinite(value) or (name != header["task"]["fitness"] and not 0 <= value <= 1):
            msg = f"its metric {name!r} is {value}"
            raise ValueError(msg)
    return entry
