"""A search that is like a recorded one: conversations grow as its conversations did, however many commits they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import fmean

from orchestrator.bootstrap.estimates.amounts import Amounts, Size, conversation, times
from orchestrator.bootstrap.estimates.assumptions import RunAssumptions
from orchestrator.bootstrap.estimates.like import Measured, differences, other, priced, total
from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.domain.conversation import Usage
from orchestrator.methods.agentic_evolve import Settings

_REQUEST = re.compile(r"i(?P<island>\d+)/request/\d+")
_SCALED = frozenset(
    {
        "seed", "islands", "commits_per_island", "requests_per_island", "compaction_request", "compaction_force",
        "bins", "stop_seconds", "migration_wait_seconds", "async_islands",
    }
)  # fmt: skip
_MUCH_LONGER = 2
"""So many times the recorded commits of an island lie beyond what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    """How the recorded run's conversations grew, in tokens as its provider counted them."""

    islands: Sequence[int]
    """Requests of each."""
    first: int
    exchange: int
    """What each adds, from 1."""
    handoff: int
    """First request of a conversation that goes on with another one."""
    was_compacted: bool
    limit: int
    """At which conversations were compacted."""
    took: Amounts

    def sizes(self, requests: int, limit: int) -> Iterator[Size]:
        """Of one island's requests."""
        return conversation(requests, first=self.first, growth=self.exchange, limit=limit, restart=self.handoff)


class LikeSearch:
    """Scales a recorded search."""

    def __init__(self, measured: Measured, settings: Settings) -> None:
        """Reads it.

        Args:
            measured: The recorded run.
            settings: Of the run that is estimated.

        Raises:
            RunStateError: Its record is of another version.
        """
        self._measured = measured
        self._settings = settings
        with measured.read():
            self._before = Settings.model_validate(measured.header["settings"])
            limit = round(self._before.compaction_request * int(measured.header["context_tokens"]))
        self._growth = _growth(measured, limit)
        self._commits = Fraction(measured.units, max(1, len(self._growth.islands)))
        """Of each recorded island."""
        factor = Fraction(settings.commits_per_island) / self._commits
        most = settings.requests_per_island
        self._wanted = [min(most, max(1, round(made * factor))) for made in self._growth.islands]
        self._islands = Fraction(settings.islands, max(1, len(self._growth.islands)))

    def expected(self, model: EstimatedModel, *, is_same: bool) -> Amounts:
        """What this model is expected to take.

        The recorded figures times what a growing conversation of the wanted length takes for each token that one of the
        recorded length takes; so a run like itself takes what it took.

        Args:
            model: Who is asked.
            is_same: Whether the recorded run asked it too, so that its cache is known.
        """
        growth, took = self._growth, self._growth.took
        limit = round(self._settings.compaction_request * model.context_tokens)
        before = _sums(size for made in growth.islands for size in growth.sizes(made, growth.limit))
        now = _sums(size for made in self._wanted for size in growth.sizes(made, limit))
        if not took.requests:
            return Amounts()
        requests = sum(self._wanted) * self._islands
        size = round(_input(took.usage) * Fraction(now[0], before[0]) * self._islands)
        cached = min(size, round(self._cached(model, before[1], now[1], is_same=is_same) * self._islands))
        fresh, written = took.usage.input_tokens, took.usage.cache_write_tokens
        if not is_same:
            fresh, written = (0, 1) if model.bills_writes else (1, 0)
        kept = round((size - cached) * Fraction(written, max(1, fresh + written)))
        output = times(took.usage, Fraction(requests) / took.requests)
        usage = replace(
            output, input_tokens=size - cached - kept, cached_input_tokens=cached, cache_write_tokens=kept, usd=None
        )
        return priced(usage, requests, model)

    def _cached(self, model: EstimatedModel, before: int, now: int, *, is_same: bool) -> Fraction:
        """Tokens that come from the cache; where the recorded run had none to speak of, as it is assumed."""
        if (is_same or model.caches) and self._growth.took.usage.cached_input_tokens and before:
            return self._growth.took.usage.cached_input_tokens * Fraction(now, before)
        if (is_same and before) or not model.caches:
            return Fraction(0)
        return now * Fraction(RunAssumptions().cached_share)

    def facts(self) -> Iterator[str]:
        """What was measured."""
        growth = self._growth
        yield (
            f"run {self._measured.run_id} made {float(self._commits):,.1f} commits an island with "
            f"{growth.took.requests / self._measured.units:,.1f} requests each; its conversations began at "
            f"{growth.first:,} tokens and grew by {growth.exchange:,} with each request"
        )

    def notes(self, model: str, task: str, models: Sequence[EstimatedModel]) -> Iterator[str]:
        """What differs from the recorded run, and lies beyond it.

        Args:
            model: As the run that is estimated names it.
            task: Likewise.
            models: Behind that name.
        """
        header = self._measured.header
        yield from other("model", self._measured.models().get("model"), model)
        yield from other("task", header["task"]["name"], task)
        before, now = (one.model_dump(mode="json") for one in (self._before, self._settings))
        yield from differences(before, now, scaled=_SCALED)
        if self._settings.commits_per_island > _MUCH_LONGER * self._commits:
            yield (
                f"the recorded run is much shorter: {float(self._commits):,.1f} commits an island, not "
                f"{self._settings.commits_per_island}; beyond them the growth of a conversation, which resends itself "
                "with every request, is computed and not measured"
            )
        if self._growth.was_compacted:
            return
        limits = [round(self._settings.compaction_request * one.context_tokens) for one in models]
        longest = self._growth.first + self._growth.exchange * max(self._wanted, default=0)
        if any(longest > limit for limit in limits):
            yield (
                f"conversations will be compacted, which the recorded run's were not; each next one is taken to begin "
                f"at {self._growth.handoff:,} tokens"
            )


def _growth(measured: Measured, limit: int) -> _Growth:
    islands: dict[str, list[Usage]] = {}
    for key, usage in measured.requests.items():
        if (match := _REQUEST.fullmatch(key)) is not None:
            islands.setdefault(match["island"], []).append(usage)
    sizes = [[_input(usage) for usage in island] for island in islands.values()]
    steps = [(before, after) for island in sizes for before, after in pairwise(island)]
    grown = [after - before for before, after in steps if after >= before]
    # the request for a handoff only adds to a conversation, so a shorter one is another conversation's first
    begun = [after for before, after in steps if after < before]
    first = round(fmean(island[0] for island in sizes)) if sizes else 1
    took = total(usage for island in islands.values() for usage in island)
    defaults = RunAssumptions()
    unseen = round(took.usage.output_tokens / max(1, took.requests)) + defaults.result_tokens
    return _Growth(
        islands=[len(island) for island in sizes],
        first=max(1, first),
        exchange=max(1, round(fmean(grown)) if grown else unseen),
        handoff=max(1, round(fmean(begun)) if begun else first + defaults.handoff_tokens),
        was_compacted=bool(begun),
        limit=limit,
        took=took,
    )


def _input(usage: Usage) -> int:
    return usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens


def _sums(sizes: Iterator[Size]) -> tuple[int, int]:
    """Tokens of all requests, and as many of them as were seen before."""
    tokens = seen = 0
    for size in sizes:
        tokens += size.requests * size.tokens
        seen += size.requests * size.seen
    return max(1, tokens), seen


def like_search(
    measured: Measured, settings: Settings, *, model: str, task: str, models: Sequence[EstimatedModel]
) -> tuple[list[Amounts], list[str], list[str]]:
    """What is expected of each model; what was measured; and what one must know of it.

    Args:
        measured: The recorded run.
        settings: Of the run that is estimated.
        model: As it was given.
        task: Its name.
        models: Behind the model's name.

    Raises:
        RunStateError: The record is of another version.
    """
    like = LikeSearch(measured, settings)
    is_same = measured.models().get("model") == model
    with measured.read():
        notes = list(like.notes(model, task, models))
    return [like.expected(one, is_same=is_same) for one in models], list(like.facts()), notes
