"""How a result differs from the wanted one, in words that give away no value of either.

Numbers of rows and columns, places of columns, kinds of values and yes-or-no findings are all there is: whoever reads
them learns in which way a query is wrong, and not what would have been right. Values are compared as `sql.comparison`
has it; rows are sets of different rows, as BIRD has it, and duplicates count only where nothing else differs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from orchestrator.domain.sql import Cell, QueryResult, QueryStatus, RawText
from orchestrator.sql.column_matching import equal_in_some_order_of_columns
from orchestrator.sql.comparison import Row, Rows

_MAX_VISITS = 2_000_000
_MAX_COLUMNS = 12
"""That findings about single columns name."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MAX_NUMBER_CHARACTERS = 40
_FAILURES = {
    QueryStatus.ERROR: "the query failed with an error",
    QueryStatus.REFUSED: "the query was refused, and not run",
    QueryStatus.TIMEOUT: "the query took too long",
    QueryStatus.MEMORY: "the query needed too much memory",
    QueryStatus.KILLED: "the query was ended from outside",
}

Loose = Callable[[Cell], Cell]


def difference(predicted: QueryResult, gold: QueryResult, *, ordered: bool) -> tuple[str, ...]:
    """The shape of the difference.

    Args:
        predicted: What a model's query gave.
        gold: What is wanted.
        ordered: Whether the order of rows matters.

    Returns:
        Findings in words, the coarsest first; none if the results are equal, in number and, where it matters, order of
        rows as well.

    Raises:
        ValueError: What is wanted is no result, but a failure.
    """
    if not gold.is_ok:
        msg = f"the wanted result is none: its query ended as {gold.status.value!r}; judge only what has a result"
        raise ValueError(msg)
    if not predicted.is_ok:
        return (_FAILURES[predicted.status],)
    cut = ("there are more rows than are kept",) if predicted.truncated and not gold.truncated else ()
    return (*cut, *_findings(predicted.rows, gold.rows, ordered=ordered))


def _findings(rows: Rows, wanted: Rows, *, ordered: bool) -> tuple[str, ...]:
    if not rows or not wanted:
        return _emptiness(len(rows), len(wanted))
    if len(rows[0]) != len(wanted[0]):
        return _widths(rows, wanted)
    different, different_wanted = set(rows), set(wanted)
    if different == different_wanted:
        return _repetitions(rows, wanted, ordered=ordered)
    likeness = _likeness(different, different_wanted)
    if likeness:
        return (likeness,)
    return (*_counts(len(rows), len(wanted), different, different_wanted), *_columns(rows, wanted))


def _emptiness(rows: int, wanted: int) -> tuple[str, ...]:
    if rows == wanted:
        return ()
    return (f"{_rows(rows)}, where there should be none",) if rows else (f"no rows, where {wanted} are wanted",)


def _widths(rows: Rows, wanted: Rows) -> tuple[str, ...]:
    excess = len(rows[0]) - len(wanted[0])
    number = f"{abs(excess)} column{'' if abs(excess) == 1 else 's'} too {'many' if excess > 0 else 'few'}"
    held = Counter(map(frozenset, zip(*rows, strict=True)))
    asked = Counter(map(frozenset, zip(*wanted, strict=True)))
    found = (held & asked).total()
    present = f"{found or 'none'} of the {len(wanted[0])} wanted columns {'is' if found < 2 else 'are'} there"
    return (number, present, *_row_count(len(rows), len(wanted)))


def _repetitions(rows: Rows, wanted: Rows, *, ordered: bool) -> tuple[str, ...]:
    """For the same set of rows."""
    if len(rows) != len(wanted):
        return ("only duplicates differ", *_row_count(len(rows), len(wanted)))
    if Counter(rows) != Counter(wanted):
        return ("only duplicates differ: rows are repeated that should not be, and others are not",)
    if ordered and list(rows) != list(wanted):
        return ("the rows are right, and in another order than is wanted",)
    return ()


def _counts(rows: int, wanted: int, different: set[Row], different_wanted: set[Row]) -> Iterator[str]:
    if rows == wanted == 1:
        yield "the only row differs"
        return
    yield from _row_count(rows, wanted)
    there = len(different & different_wanted)
    verb = "is" if there < 2 else "are"
    yield f"{there or 'none'} of the {len(different_wanted)} different rows that are wanted {verb} there"
    if len(different) > there:
        yield f"{_rows(len(different) - there)} that should not be there"


def _row_count(rows: int, wanted: int) -> tuple[str, ...]:
    if rows == wanted:
        return ()
    return (f"{_rows(abs(rows - wanted))} too {'many' if rows > wanted else 'few'}",)


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _columns(rows: Rows, wanted: Rows) -> Iterator[str]:
    """Column by column, for tables of one width."""
    held, asked = list(zip(*rows, strict=True)), list(zip(*wanted, strict=True))
    agreeing = [set(column) == set(other) for column, other in zip(held, asked, strict=True)]
    differing = [number for number, agrees in enumerate(agreeing, 1) if not agrees]
    if len(held) > 1:
        if not differing:
            yield "each column holds the wanted values, and they are combined in other ways"
        elif len(differing) < len(held) and len(differing) <= _MAX_COLUMNS:
            is_one = len(differing) == 1
            places = ", ".join(map(str, differing))
            yield f"only column {places} differs" if is_one else f"only columns {places} differ"
    for number in differing[:_MAX_COLUMNS]:
        yield from (f"column {number}: {finding}" for finding in _kinds(held[number - 1], asked[number - 1]))


def _kinds(column: Sequence[Cell], wanted: Sequence[Cell]) -> Iterator[str]:
    held, asked = (set(map(_kind, cells)) for cells in (column, wanted))
    if "NULL" in held and "NULL" not in asked:
        yield "NULL, where there should be none"
    if "NULL" in asked and "NULL" not in held:
        yield "no NULL, where some is wanted"
    kinds, wanted_kinds = (sorted(found - {"NULL"}) for found in (held, asked))
    if kinds and wanted_kinds and kinds != wanted_kinds:
        yield f"{' and '.join(kinds)}, where {' and '.join(wanted_kinds)} should be"


def _kind(cell: Cell) -> str:
    match cell:
        case None:
            return "NULL"
        case int() | float():
            return "numbers"
        case bytes():
            return "blobs"
        case _:
            return "text"


def _likeness(rows: set[Row], wanted: set[Row]) -> str:
    """What alone makes the difference; empty: it is more than one such thing."""
    if equal_in_some_order_of_columns(list(rows), list(wanted), max_visits=_MAX_VISITS):
        return "the values are right, and the columns in another order than is wanted"
    for words, loosen in _LOOSE:
        if _loosened(rows, loosen) == _loosened(wanted, loosen):
            return f"the values differ only in {words}"
    if _rounded(wanted, rows) == rows:
        return "the numbers differ only in rounding: they have fewer digits than is wanted"
    if _rounded(rows, wanted) == wanted:
        return "the numbers differ only in rounding: they have more digits than is wanted"
    return ""


def _loosened(rows: Iterable[Row], loosen: Loose) -> set[Row]:
    return {tuple(map(loosen, row)) for row in rows}


def _rounded(rows: Iterable[Row], model: Iterable[Row]) -> set[Row]:
    """Rows with their numbers rounded to as many places, column by column, as those of other rows have at most."""
    places = [max(map(_places, column)) for column in zip(*model, strict=True)]
    return {
        tuple(round(cell, n) if isinstance(cell, float) else cell for cell, n in zip(row, places, strict=True))
        for row in rows
    }


def _places(cell: Cell) -> int:
    """Decimal places of a number as it is written shortest."""
    if not isinstance(cell, float) or not math.isfinite(cell) or cell.is_integer():
        return 0
    digits, _, exponent = repr(cell).partition("e")
    return max(0, len(digits.partition(".")[2]) - int(exponent or 0))


def _without_case(cell: Cell) -> Cell:
    return cell.casefold() if isinstance(cell, str) else cell


def _without_space(cell: Cell) -> Cell:
    return " ".join(cell.split()) if isinstance(cell, str) else cell


def _as_number(cell: Cell) -> Cell:
    """Text that reads as a number, as that number."""
    text = cell.strip() if isinstance(cell, str) else ""
    if not 0 < len(text) <= _MAX_NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        return cell
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _to_nine_digits(cell: Cell) -> Cell:
    return float(f"{cell:.9g}") if isinstance(cell, float) else cell


def _plain(cell: Cell) -> Cell:
    return _as_number(_without_case(_without_space(cell)))


def _without_bytes(cell: Cell) -> Cell:
    """Blobs and text that is not UTF-8 as the text they would be."""
    match cell:
        case RawText():
            return str(cell)
        case bytes():
            return cell.decode("utf-8", errors="replace")
        case _:
            return cell


_LOOSE: tuple[tuple[str, Loose], ...] = (
    ("the case of letters", _without_case),
    ("white space", _without_space),
    ("kind: numbers, and texts that read the same", _as_number),
    ("the last digits of numbers", _to_nine_digits),
    ("kind: blobs, and texts that read the same", _without_bytes),
    ("the case of letters, white space and kind together", _plain),
)
