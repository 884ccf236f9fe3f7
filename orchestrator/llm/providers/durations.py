"""Lengths and points of time, for people who wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def shown_duration(seconds: float) -> str:
    """For instance `0.4 s`, `90 s`, `10 min` or `26 h`; of what is longer than two minutes, the nearest whole."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def shown_moment(seconds: float) -> str:
    """The moment so many seconds from now, at most a century, for instance `2026-11-30 17:05 UTC`."""
    moment = datetime.now(UTC) + timedelta(seconds=min(seconds, 3.15e9), minutes=1)  # rounded up: it is no use before
    return f"{moment:%Y-%m-%d %H:%M} UTC"
