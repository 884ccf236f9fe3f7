"""Results that the tests of comparisons share."""

from __future__ import annotations

from hypothesis import strategies as st

from orchestrator.domain.sql import Cell, QueryResult, QueryStatus, RawText
from orchestrator.sql.comparison import Rows

CELLS: st.SearchStrategy[Cell] = st.sampled_from(
    [None, 0, 1, 1.0, -0.0, 2, "1", "", "a", b"a", b"", RawText(b"a"), RawText(b"\xff"), float("inf"), 2**53, 2.0**53]
)


def tables(max_rows: int = 5, max_columns: int = 4) -> st.SearchStrategy[list[tuple[Cell, ...]]]:
    """Rows of one width, with few values, so that many are equal."""
    return st.integers(1, max_columns).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=max_rows))


def result(rows: Rows, *, truncated: bool = False) -> QueryResult:
    """An ok result."""
    return QueryResult(status=QueryStatus.OK, rows=tuple(rows), truncated=truncated)
