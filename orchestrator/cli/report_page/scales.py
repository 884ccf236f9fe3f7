"""Where numbers lie in a picture, and the round numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_RATIO = 1000.0
"""Of the highest to the lowest value on a linear scale, if all are positive."""
_EXPONENTS = (-300.0, 308.0)
"""Where margins end, so that no end of a scale overflows."""
LOGARITHMIC = "log scale"
"""What the name of a logarithmic axis ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A scale from values to places in a picture."""

    low: float
    high: float
    """Over `low`."""
    start: float
    end: float
    is_logarithmic: bool = False
    """Whether equal distances are equal ratios; `low` is positive then."""

    def place(self, value: float) -> float:
        """Of a value, rounded to a tenth."""
        if self.is_logarithmic:
            start = math.log10(self.low)
            share = (math.log10(value) - start) / (math.log10(self.high) - start)
        else:
            share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: the span may be infinite
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 6, *, whole: bool = False) -> list[float]:
        """Round numbers within the scale.

        Args:
            most: How many at most.
            whole: Whole numbers only.
        """
        if self.is_logarithmic:
            return self._powers(most)
        span = self.high - self.low
        if not math.isfinite(span):
            return [self.low, self.high]
        magnitude = 10.0 ** math.floor(math.log10(span / most))
        step = next(step * magnitude for step in _STEPS if span / (step * magnitude) <= most)
        step = max(1.0, math.ceil(step)) if whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{number * step:.12g}") for number in range(first, last + 1)]

    def _powers(self, most: int) -> list[float]:
        """Powers of ten, evenly chosen."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = -(-(last - first + 1) // most)
        return [float(f"1e{exponent}") for exponent in range(first, last + 1, step)]


def needs_logarithm(values: Iterable[float]) -> bool:
    """Whether all are positive, and the highest is more than three orders of magnitude above the lowest."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) / _MOST_RATIO > min(found)


def fitting_scale(values: Sequence[float], start: float, end: float, *, margin: float) -> Scale:
    """As `scale`, but logarithmic where that is needed; the margin is then a share of the orders of magnitude."""
    if not needs_logarithm(values):
        return scale(values, start, end, margin=margin)
    low, high = min(values), max(values)
    more = margin * (math.log10(high) - math.log10(low))
    lowest = 10.0 ** max(math.log10(low) - more, _EXPONENTS[0])
    highest = 10.0 ** min(math.log10(high) + more, _EXPONENTS[1])
    return Scale(low=min(low, lowest), high=max(high, highest), start=start, end=end, is_logarithmic=True)


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
    return f"{value / 1e3:g}k" if size >= 1e4 else f"{value + 0.0:.6g}"
