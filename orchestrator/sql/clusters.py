"""When two results are one answer for EvoSQL, as a key that equal results share.

Equal are results with the same multiset of rows, columns in their order, or the same list of rows where the SQL asks
for an order; NULL equals NULL. Floats are rounded to 10 significant digits first, then numbers are equal by value,
whether stored as integer or float. Integers are never rounded: ids and time stamps of 11 digits and more must not fall
together (so one of them differs from the same number stored as a float, which is rounded).
"""

from __future__ import annotations

import hashlib
from decimal import Decimal

from orchestrator.domain.sql import Cell, QueryResult, RawText


def cluster_key(result: QueryResult, *, ordered: bool) -> str:
    """A key that two results share exactly if they are one answer.

    A result that is not ok shares its key with those of the same status, and with no other. One that is truncated never
    equals one that is complete. An order counts only among rows that differ, so that one row is the same answer with
    and without ORDER BY.

    Args:
        result: Any result; names of columns and messages do not count.
        ordered: Whether the SQL has a top-level ORDER BY.
    """
    if not result.is_ok:
        return result.status.value
    rows = [_packed(row) for row in result.rows]
    in_order = ordered and len(set(rows)) > 1
    kind = ("truncated " if result.truncated else "") + ("list" if in_order else "multiset")
    digest = hashlib.sha256(kind.encode())
    for row in rows if in_order else sorted(rows):
        digest.update(row)
    return "sha256:" + digest.hexdigest()


def _packed(row: tuple[Cell, ...]) -> bytes:
    """Bytes that no other row has: the number of cells, then each with its kind and its length."""
    cells = [_cell(cell) for cell in row]
    return b"%d;" % len(cells) + b"".join(b"%s%d:%s" % (kind, len(content), content) for kind, content in cells)


def _cell(cell: Cell) -> tuple[bytes, bytes]:
    match cell:
        case None:
            return b"null", b""
        case str():
            return b"text", cell.encode("utf-8", errors="surrogatepass")
        case bytes():
            return b"blob", cell
        case RawText():
            return b"raw", cell.raw
        case int() | float():
            return b"number", _number(cell)


def _number(value: float) -> bytes:
    """Digits that equal numbers share; a float's are those that are left of it after rounding."""
    if value == 0:
        return b"0"  # -0.0 as well
    digits = f"{value:.9e}" if isinstance(value, float) else str(value)
    return str(Decimal(digits).normalize()).encode()
