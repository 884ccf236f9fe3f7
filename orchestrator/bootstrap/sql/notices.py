"""What is told before a measurement begins, for it may be other than it was meant."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.bootstrap.sql.databases import GOLD_FACTOR, Place, predicted_seconds

_SHOWN = 5


def shorter_limits(place: Place) -> list[str]:
    """Where predicted queries get less computing time than was asked for, a line for each limit."""
    policy, asked = place.sandbox.policy, place.query_seconds
    shorter: dict[float, list[str]] = {}
    for name in place.paths:
        granted = predicted_seconds(policy, name, asked)
        if granted < asked:
            shorter.setdefault(granted, []).append(name)
    return [
        f"predicted queries of {few(names)} get {granted:g} s of computing, not the {asked:g} s of --query-seconds: at "
        f"most half of the {GOLD_FACTOR * granted:g} s that policy {policy.name} grants, which gold queries get"
        for granted, names in shorter.items()
    ]


def few(names: Sequence[str]) -> str:
    """Names in words, the first of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def some(lines: Sequence[str]) -> list[str]:
    """The first of many lines, and how many more there are."""
    more = [f"and {len(lines) - _SHOWN} more like these"] if len(lines) > _SHOWN else []
    return [*lines[:_SHOWN], *more]
