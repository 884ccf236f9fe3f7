"""How long a server asks to wait, in a header or in its words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_SECONDS = 366 * 86_400.0
"""A year: whoever asks for more will not be asked again."""
_TIME = r"\d{1,9}(?:\.\d{1,9})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![a-z])\s?"
_IN_WORDS = re.compile(rf"(?:try again|retry|wait)\D{{0,30}}?(?P<time>(?:{_TIME}){{1,4}})", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|milli|s|m|h)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(headers: Mapping[str, str], said: str = "") -> float | None:
    """Seconds that a server asks to wait, from 0 to `MOST_SECONDS`; None: it asks for nothing that can be understood.

    Args:
        headers: Of its response; names in small letters, or case does not count.
        said: Its words, as in "Please try again in 1.2s".
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _until(value, headers.get("date"))
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), MOST_SECONDS)
    found = _IN_WORDS.search(said[:2000])
    if found is None:
        return None
    asked = sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(found["time"]))
    return min(asked, MOST_SECONDS)


def _until(moment: str, now: str | None) -> float:
    """Seconds from the server's own time, if it tells it, to a moment; NaN: that is no date."""
    then = _date(moment)
    return math.nan if then is None else (then - (_date(now) or datetime.now(UTC))).total_seconds()


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, OverflowError, IndexError):
        return None  # OverflowError: years and zones of any number of digits
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
