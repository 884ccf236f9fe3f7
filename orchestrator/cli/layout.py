"""Tables that fit the width of a terminal without breaking a word, so that ids and figures can be read and copied."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

_GAP = 3
"""Cells between two columns, with the padding on both sides."""


def fitting_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    spare_columns: Sequence[str] = (),
    one_line: bool = False,
) -> Table:
    """A table at most `width` wide where that is possible with whole words; otherwise it is wider.

    Args:
        columns: Visible text; likewise the rows.
        rows: As many cells each as there are columns.
        width: Of the terminal, in character cells.
        spare_columns: Left out one after the other, the first first, as long as the table does not fit.
        one_line: Leave out spare columns sooner than wrap a cell.
    """
    kept = list(range(len(columns)))
    natural = [max(map(cell_len, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)]
    words = [max(map(_longest_word, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)]
    needed = natural if one_line else words
    for spare in spare_columns:
        if _total([needed[i] for i in kept]) <= width:
            break
        kept = [i for i in kept if columns[i] != spare]
    widths = _narrowed([natural[i] for i in kept], [words[i] for i in kept], width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, width=_total(widths))
    for i, column_width in zip(kept, widths, strict=True):
        table.add_column(columns[i], width=column_width, overflow="fold")
    for row in rows:
        table.add_row(*(row[i] for i in kept))
    return table


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths) - 1


def _narrowed(natural: Sequence[int], words: Sequence[int], width: int) -> list[int]:
    """Widths of columns: the widest one that can still wrap becomes narrower until all fit or none can."""
    widths = list(natural)
    while _total(widths) > width:
        wrapping = [i for i, word in enumerate(words) if widths[i] > max(word, 1)]
        if not wrapping:
            break
        widths[max(wrapping, key=lambda i: widths[i])] -= 1
    return widths


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)
