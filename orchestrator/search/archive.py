"""An archive with one elite per cell (MAP-Elites, Mouret & Clune 2015, arXiv:1504.04909).

Features are normalised to [0, 1] over ranges fixed in advance by the task: ranges that follow the data would move
candidates between cells, and the archive would depend on the order in which they came.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

T = TypeVar("T")
Cell = tuple[int, ...]
"""One bin per feature, each from 0 to its number of bins - 1."""


class Placement(StrEnum):
    """What became of a candidate that was offered."""

    FILLED = "filled"
    """Its cell was empty."""
    REPLACED = "replaced"
    """The occupant had strictly lower fitness."""
    REJECTED = "rejected"
    """The occupant is as good or better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite(Generic[T]):
    """The best candidate of a cell so far."""

    occupant: T
    fitness: float
    """Finite, higher is better."""
    cell: Cell


class Grid(Generic[T]):
    """Uniform bins over [0, 1] per feature. Not thread-safe: one island owns it.

    With distinct fitness, its content does not depend on the order of the offers; with ties the incumbent stays, and
    the fitness of every cell still does not.
    """

    def __init__(self, *, bins: Sequence[int]) -> None:
        """Create an empty grid.

        Args:
            bins: Number of bins per feature, each positive; at least one feature.

        Raises:
            ValueError: There is no feature, or one without a bin.
        """
        if not bins or min(bins) < 1:
            msg = f"a grid needs at least one feature and one bin for each, got bins {tuple(bins)}"
            raise ValueError(msg)
        self.bins: tuple[int, ...] = tuple(bins)
        self._elites: dict[Cell, Elite[T]] = {}
        self._best: Elite[T] | None = None

    def cell(self, features: Sequence[float]) -> Cell:
        """Where a candidate with these features belongs.

        Args:
            features: One per axis, finite; clipped into [0, 1].

        Raises:
            ValueError: Their number is not the grid's, or one is not finite.
        """
        if len(features) != len(self.bins):
            msg = f"the grid has {len(self.bins)} features, the candidate {len(features)}"
            raise ValueError(msg)
        return tuple(bin_of(value, bins) for value, bins in zip(features, self.bins, strict=True))

    def offer(self, occupant: T, *, fitness: float, features: Sequence[float]) -> Placement:
        """Let a scored candidate into its cell if that is empty or its occupant has strictly lower fitness.

        Args:
            occupant: The candidate, in whatever form the method keeps it.
            fitness: Finite, higher is better.
            features: One per axis, finite; clipped into [0, 1].

        Raises:
            ValueError: A number is not finite, or one is missing; the grid is unchanged.
        """
        if not math.isfinite(fitness):
            msg = f"fitness is {fitness}; only finite numbers are archived"
            raise ValueError(msg)
        elite = Elite(occupant=occupant, fitness=fitness, cell=self.cell(features))
        incumbent = self._elites.get(elite.cell)
        if incumbent is not None and elite.fitness <= incumbent.fitness:
            return Placement.REJECTED
        self._elites[elite.cell] = elite
        if self._best is None or elite.fitness > self._best.fitness:
            self._best = elite
        return Placement.FILLED if incumbent is None else Placement.REPLACED

    @property
    def best(self) -> Elite[T] | None:
        """The elite of highest fitness, the first that reached it; None: the grid is empty."""
        return self._best

    @property
    def elites(self) -> tuple[T, ...]:
        """The occupants, ordered by cell."""
        return tuple(self._elites[cell].occupant for cell in sorted(self._elites))

    @property
    def cells(self) -> Mapping[Cell, Elite[T]]:
        """The occupied cells, as they are now."""
        return MappingProxyType(dict(self._elites))

    def __len__(self) -> int:
        """How many cells are occupied."""
        return len(self._elites)


def bin_of(value: float, bins: int) -> int:
    """Which of the uniform bins over [0, 1] a value falls into, from 0 to `bins` - 1; the last includes 1.

    Args:
        value: Finite; clipped into [0, 1].
        bins: Positive.

    Raises:
        ValueError: The value is not finite.
    """
    if not math.isfinite(value):
        msg = f"feature value is {value}; only finite numbers are archived"
        raise ValueError(msg)
    return min(int(min(max(value, 0.0), 1.0) * bins), bins - 1)
