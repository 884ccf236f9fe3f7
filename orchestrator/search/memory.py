"""An episodic memory of candidates that only grows (EvoSQL, section 4.2).

What counts are *entries*: a candidate that was proposed twice is two entries. Equal candidates share a `key`, and all
of them count as being as fresh as the latest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Evidence(StrEnum):
    """What running a candidate says of it, before anybody judges it."""

    INVALID = "invalid"
    """It did not run to its end."""
    EMPTY = "empty"
    """It ran and gave nothing, which is taken for a sign that it is wrong."""
    SOUND = "sound"
    """It ran; how good it is, is for a critic to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[T]):
    """One proposal and what is known of it."""

    key: str
    """Equal for candidates that are the same."""
    round: int
    """In which it was proposed, from 0 on."""
    index: int
    """Its place among the proposals of its round, from 0 on."""
    evidence: Evidence
    outcome: str
    """Equal for candidates whose running gave the same."""
    confidence: float
    """Equation (6): -1 if invalid, 0 if empty, otherwise the critic's score."""
    content: T
    """The candidate, in whatever form the method keeps it."""


class Memory(Generic[T]):
    """The entries of one problem, in the order of round and index. Not thread-safe."""

    def __init__(self) -> None:
        self._entries: list[Entry[T]] = []
        self._latest: dict[str, int] = {}

    def add(self, entries: Iterable[Entry[T]]) -> None:
        """Append the entries of one round, or of several in their order.

        Raises:
            ValueError: One comes before the last in round and index, or its confidence is not finite; those before it
                are kept.
        """
        for entry in entries:
            if not math.isfinite(entry.confidence):
                msg = f"confidence is {entry.confidence}; only finite numbers are remembered"
                raise ValueError(msg)
            last = self._entries[-1] if self._entries else None
            if last is not None and (entry.round, entry.index) <= (last.round, last.index):
                msg = (
                    f"entry {entry.index} of round {entry.round} comes after entry {last.index} of round {last.round}; "
                    "a memory only grows"
                )
                raise ValueError(msg)
            self._entries.append(entry)
            self._latest[entry.key] = entry.round

    @property
    def entries(self) -> tuple[Entry[T], ...]:
        """All of them, the earliest first."""
        return tuple(self._entries)

    @property
    def now(self) -> int:
        """The latest round; -1 while there is none."""
        return self._entries[-1].round if self._entries else -1

    def latest_round(self, key: str) -> int:
        """When this candidate was proposed last (t' in equation 7).

        Raises:
            KeyError: It never was.
        """
        return self._latest[key]

    def __len__(self) -> int:
        """How many entries there are, copies included."""
        return len(self._entries)
