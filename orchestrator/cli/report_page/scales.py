"""Where numbers lie in a picture, and the round numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear scale from values to places in a picture."""

    low: float
    high: float
    """Over `low`."""
    start: float
    end: float

    def place(self, value: float) -> float:
        """Of a value, rounded to a tenth."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: the span may be infinite
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 6, *, whole: bool = False) -> list[float]:
        """Round numbers within the scale.

        Args:
            most: How many at most.
            whole: Whole numbers only.
        """
        span = self.high - self.low
        if not math.isfinite(span):
            return [self.low, self.high]
        magnitude = 10.0 ** math.floor(math.log10(span / most))
        step = next(step * magnitude for step in _STEPS if span / (step * magnitude) <= most)
        step = max(1.0, math.ceil(step)) if whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]


def scale(values: Sequence[float], start: float, end: float, *, margin: float = 0.06) -> Scale:
    """A scale that holds all values, with a margin on both sides.

    Args:
        values: At least one; finite.
        start: Where the lowest lies.
        end: Where the highest lies.
        margin: Share of the span.
    """
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    if not math.isfinite(span):
        return Scale(low=low, high=high, start=start, end=end)
    return Scale(low=low - margin * span, high=high + margin * span, start=start, end=end)


def label(value: float) -> str:
    """A tick's number, short."""
    size = abs(value)
    if size >= 1e9:
        return f"{value / 1e9:g}G"
    if size >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if size >= 1e4 else f"{value:.6g}"
