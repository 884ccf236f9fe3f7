"""Whether two tables hold the same rows, in any order, once the columns of one are put in some order.

In general this is as hard as graph isomorphism. Rows and columns are coloured by what they hold, and by the colours of
what they meet, until nothing changes (colour refinement); where columns of one colour remain, each pairing is tried.
Real results are decided by the first colouring. The answer is exact, and the work is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

MAX_VISITS = 20_000_000
"""Cells looked at in all; some ten seconds."""

Colours = list[int]


@dataclass(frozen=True, slots=True)
class _Table:
    """Distinct columns over distinct rows; what occurs twice has another colour than what occurs once."""

    columns: list[tuple[int, ...]]
    """Each with one number per row, the same for equal cells of both tables."""
    row_colours: Colours
    column_colours: Colours


class _GaveUp(Exception):
    """The work would be too much."""


def equal_in_some_order_of_columns(
    left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]], *, max_visits: int = MAX_VISITS
) -> bool | None:
    """Whether some order of the columns makes the two equal as multisets of rows.

    Args:
        left: Rows of one width.
        right: Likewise.
        max_visits: When to give up.

    Returns:
        None: It was given up; neither answer is known.
    """
    if len(left) != len(right) or (left and len(left[0]) != len(right[0])):
        return False
    if Counter(map(tuple, left)) == Counter(map(tuple, right)):
        return True
    numbers: dict[Hashable, int] = {}
    try:
        return _Search(max_visits).matches(_table(left, numbers), _table(right, numbers))
    except _GaveUp:
        return None


def _table(rows: Sequence[Sequence[Hashable]], numbers: dict[Hashable, int]) -> _Table:
    numbered = Counter(tuple(numbers.setdefault(cell, len(numbers)) for cell in row) for row in rows)
    columns = Counter(zip(*numbered, strict=True))
    return _Table(list(columns), list(numbered.values()), list(columns.values()))


class _Search:
    """One comparison, with what it may still look at."""

    def __init__(self, visits: int) -> None:
        self._visits_left = visits

    def matches(self, left: _Table, right: _Table) -> bool:
        """Whether some pairing of columns of equal colours makes the rows equal.

        Raises:
            _GaveUp: `visits` do not suffice.
        """
        refined = self._refine(left, right)
        if refined is None:
            return False
        left, right = refined
        sizes = Counter(left.column_colours)
        if len(sizes) == len(left.columns):
            return self._rows(left) == self._rows(right)
        colour = min((c for c in sizes if sizes[c] > 1), key=lambda c: sizes[c])
        fixed = left.column_colours.index(colour)
        return any(
            self.matches(_single_out(left, fixed), _single_out(right, candidate))
            for candidate, its in enumerate(right.column_colours)
            if its == colour
        )

    def _refine(self, left: _Table, right: _Table) -> tuple[_Table, _Table] | None:
        """Colour until nothing changes or every column has a colour of its own; None: the two cannot be equal."""
        colours = 0
        while True:
            self._visit(left, right)
            columns = _recolour(_column_signs(left), _column_signs(right))
            if columns is None:
                return None
            left = _Table(left.columns, left.row_colours, columns[0])
            right = _Table(right.columns, right.row_colours, columns[1])
            if len(set(columns[0])) == len(columns[0]):
                return left, right
            self._visit(left, right)
            rows = _recolour(_row_signs(left), _row_signs(right))
            if rows is None:
                return None
            left = _Table(left.columns, rows[0], columns[0])
            right = _Table(right.columns, rows[1], columns[1])
            before, colours = colours, len(set(rows[0])) + len(set(columns[0]))
            if colours == before:
                return left, right

    def _rows(self, table: _Table) -> Counter[tuple[int, ...]]:
        """The rows with their columns in the order of their colours, which are all different."""
        self._visit(table)
        order = sorted(range(len(table.columns)), key=lambda column: table.column_colours[column])
        return Counter(zip(table.row_colours, *(table.columns[column] for column in order), strict=True))

    def _visit(self, *tables: _Table) -> None:
        self._visits_left -= sum(len(table.columns) * len(table.row_colours) for table in tables)
        if self._visits_left < 0:
            raise _GaveUp


def _single_out(table: _Table, column: int) -> _Table:
    colours = list(table.column_colours)
    colours[column] = -1
    return _Table(table.columns, table.row_colours, colours)


def _column_signs(table: _Table) -> Iterable[Hashable]:
    for colour, column in zip(table.column_colours, table.columns, strict=True):
        met = Counter(zip(table.row_colours, column, strict=True))
        yield colour, frozenset(met.items())


def _row_signs(table: _Table) -> Iterable[Hashable]:
    for colour, *row in zip(table.row_colours, *table.columns, strict=True):
        yield colour, tuple(sorted(zip(table.column_colours, row, strict=True)))


def _recolour(left: Iterable[Hashable], right: Iterable[Hashable]) -> tuple[Colours, Colours] | None:
    """A colour for each sign, the same on both sides; None: one side has a sign more often than the other."""
    colours: dict[Hashable, int] = {}
    new_left = [colours.setdefault(sign, len(colours)) for sign in left]
    new_right = [colours.setdefault(sign, len(colours)) for sign in right]
    return (new_left, new_right) if Counter(new_left) == Counter(new_right) else None
