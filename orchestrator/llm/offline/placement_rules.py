"""Rules for online placement, as data: what a bin costs by its room, by time, and by what else is open.

A rule is a member of a parametric family, not an answer: it begins as Best Fit and is changed by operators only.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

MAX_ROOMS = 22
MAX_SHARES = 5
MAX_REACH = 8
_MAX_VALUE = 1e6

Row = tuple[float, ...]
Table = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementTask:
    """The figures of a task, as its description gives them."""

    function: str
    capacity: int
    items: int
    smallest: int
    largest: int

    @classmethod
    def read(cls, description: str, program: str) -> Self | None:
        """Find the figures in a task's description and its initial program; None: it is another kind of task."""
        capacity = re.search(r"\bcapacity (?:of )?(\d{1,6})\b", description)
        items = re.search(r"\b(\d{1,6}) items\b", description)
        sizes = re.search(r"uniform\w*\s+(?:from|between|on|in)\s+\[?(\d{1,6})(?:,| to| and)\s*(\d{1,6})", description)
        function = re.search(r"^def (\w{1,40})\(item\b[^()]*\bbins\b", program, re.MULTILINE)
        if capacity is None or items is None or sizes is None or function is None:
            return None
        task = cls(
            function=function[1],
            capacity=int(capacity[1]),
            items=int(items[1]),
            smallest=int(sizes[1]),
            largest=int(sizes[2]),
        )
        return task if task.is_sensible else None

    @property
    def is_sensible(self) -> bool:
        """Whether instances can be generated from the figures, at a size that an analysis can handle."""
        sizes = 0 < self.smallest <= self.largest <= self.capacity
        return sizes and 2 * self.smallest <= self.capacity <= 2000 and 1 < self.items <= 2000

    def as_json(self) -> dict[str, int]:
        """For the analysis script."""
        return {
            "capacity": self.capacity,
            "items": self.items,
            "smallest": self.smallest,
            "largest": self.largest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Costs of bins; an item goes where it lowers the total cost most."""

    shares: Row
    """Knots in time: shares of the items still to come, increasing; one knot means that time plays no role."""
    rooms: tuple[int, ...]
    """Knots in remaining capacity, increasing."""
    costs: Table
    """(shares, rooms)"""
    reach: int = 1
    """How near two rooms must be to crowd each other; 1: only equal rooms do."""
    crowding_rooms: tuple[int, ...] = ()
    """Knots; empty: without the term."""
    crowding: Table = ()
    """(shares, crowding_rooms) added to the cost of a room for every similar open bin."""

    @classmethod
    def best_fit(cls, task: PlacementTask, chance: random.Random) -> Self:
        """Best Fit up to ties: any concave increasing cost gives it. The knots differ from island to island."""
        fixed = {0, task.smallest - 1, task.smallest, task.capacity - task.smallest, task.capacity}
        free = chance.sample(range(1, task.capacity), k=min(8, task.capacity - 1))
        rooms = tuple(sorted(fixed | set(free)))
        costs = tuple(room * (2 * task.capacity - room) / task.capacity**2 for room in rooms)
        return cls(shares=(1.0,), rooms=rooms, costs=(costs,))

    @classmethod
    def from_json(cls, document: object, task: PlacementTask) -> Self | None:
        """The inverse of `as_json`; None: it is not a rule that could be packed with."""
        if not isinstance(document, Mapping):
            return None
        shares, rooms = _numbers(document.get("shares")), _knots(document.get("rooms"), task)
        reach = document.get("reach", 1)
        if not 1 <= len(shares) <= MAX_SHARES or shares != tuple(sorted(set(shares))) or not rooms:
            return None
        if type(reach) is not int or not 1 <= reach <= MAX_REACH:
            return None
        costs = _table(document.get("costs"), len(shares), len(rooms))
        if costs is None or "crowding" not in document:
            return None if costs is None else cls(shares=shares, rooms=rooms, costs=costs)
        crowding_rooms = _knots(document.get("crowding_rooms"), task)
        crowding = _table(document.get("crowding"), len(shares), len(crowding_rooms))
        if not crowding:
            return None
        return cls(
            shares=shares, rooms=rooms, costs=costs, reach=reach, crowding_rooms=crowding_rooms, crowding=crowding
        )

    def as_json(self) -> dict[str, Any]:
        """For the analysis script and the handoff."""
        document: dict[str, Any] = {"shares": self.shares, "rooms": self.rooms, "costs": self.costs}
        if self.crowding:
            document |= {
                "reach": self.reach,
                "crowding_rooms": self.crowding_rooms,
                "crowding": self.crowding,
            }
        return document

    @property
    def has_fading(self) -> bool:
        """Whether time plays a role."""
        return len(self.shares) > 1

    @property
    def size(self) -> int:
        """Number of adjustable values."""
        return len(self.shares) * (len(self.rooms) + len(self.crowding_rooms))

    def with_values(self, change: Callable[[float], float]) -> Rule:
        """Every adjustable value changed."""
        costs, crowding = (
            tuple(tuple(change(value) for value in row) for row in t) for t in (self.costs, self.crowding)
        )
        return replace(self, costs=costs, crowding=crowding)

    def mixed_with(self, other: Rule) -> Rule:
        """Halfway between two rules, at the knots of this one; the other's crowding counts only if this one has it."""
        costs = _mean(self.costs, [[other.cost(share, room) for room in self.rooms] for share in self.shares])
        near = [[other.crowding_cost(share, room) for room in self.crowding_rooms] for share in self.shares]
        return replace(self, costs=costs, crowding=_mean(self.crowding, near) if self.crowding else ())

    def cost(self, share: float, room: float) -> float:
        """Cost of a bin, between the knots."""
        return _between(share, self.shares, [_between(room, self.rooms, row) for row in self.costs])

    def crowding_cost(self, share: float, room: float) -> float:
        """Crowding cost, between the knots; 0 without the term."""
        if not self.crowding:
            return 0.0
        return _between(share, self.shares, [_between(room, self.crowding_rooms, row) for row in self.crowding])


def _numbers(values: object) -> Row:
    """Finite numbers of moderate size as a tuple; anything else is empty."""
    if not isinstance(values, list | tuple) or len(values) > 64:
        return ()
    if not all(type(value) in {int, float} and math.isfinite(value) and abs(value) <= _MAX_VALUE for value in values):
        return ()
    return tuple(float(value) for value in values)


def _knots(values: object, task: PlacementTask) -> tuple[int, ...]:
    numbers = _numbers(values)
    knots = tuple(sorted({int(number) for number in numbers if 0 <= number <= task.capacity}))
    return knots if knots == numbers and len(knots) <= MAX_ROOMS + 2 else ()


def _table(rows: object, height: int, width: int) -> Table | None:
    if not isinstance(rows, list | tuple) or len(rows) != height or width == 0:
        return None
    table = tuple(_numbers(row) for row in rows)
    return table if all(len(row) == width for row in table) else None


def _mean(first: Table, second: Sequence[Sequence[float]]) -> Table:
    return tuple(tuple((a + b) / 2 for a, b in zip(*rows, strict=True)) for rows in zip(first, second, strict=True))


def _between(x: float, knots: Sequence[float], values: Sequence[float]) -> float:
    """Piecewise-linear interpolation, constant outside the knots."""
    for i in range(1, len(knots)):
        if x < knots[i]:
            weight = max(0.0, (x - knots[i - 1]) / (knots[i] - knots[i - 1]))
            return values[i - 1] * (1 - weight) + values[i] * weight
    return values[-1]
