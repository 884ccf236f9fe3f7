"""Ratings from contests."""

from __future__ import annotations

from enum import StrEnum


class Order(StrEnum):
    """How the pairs of one contest change the ratings."""

    SIMULTANEOUS = "simultaneous"
    """All changes are computed from the ratings before the contest, so no order of its pairs matters."""
    SEQUENTIAL = "sequential"
    """One pair after the other, each from the ratings that the one before left, as the published code does."""
