"""One rule of `conventions`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """One rule; every text is a constant of ours."""

    id: str
    sentence: str
    """As instructions may say it; it is recognised, as are others that mean the same."""
    effect: str
    """What it changes in an answer, where the question leaves it open."""
    key: str
    """Pattern of the words that say it; a denial before them makes the rule its opposite."""
    about: str = ""
    """Pattern that the sentence must hold too; empty: the key suffices."""
    opposite: str = ""
    """The rule that it excludes; of two in one text the later holds. Empty: denied, it says nothing."""
