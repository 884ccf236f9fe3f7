"""What the live tests may spend."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pytest


def live_usd(text: str) -> Decimal:
    """US dollars, over 0.

    Raises:
        UsageError: It is no such amount.
    """
    try:
        usd = Decimal(text)
    except InvalidOperation:
        usd = Decimal(-1)
    if not (usd.is_finite() and usd > 0):
        msg = f"{text!r} is no amount of US dollars; give one over 0, for instance 0.50"
        raise pytest.UsageError(msg)
    return usd
