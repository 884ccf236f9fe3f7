"""When two results are equal, in each of the five ways that are reported, over recorded rows.

| metric | rows | columns | duplicates |
| --- | --- | --- | --- |
| `bird` | in any order | as they stand | do not count |
| `multiset` | in any order | as they stand | count |
| `spider` | in order if the gold's top level has ORDER BY, else in any | in any order | count |
| `strict` | in order | as they stand | count |
| `relaxed` | in order | in any order | count |

Values are compared as Python and SQLite have it: 1 equals 1.0, exactly and at any size; 0.0 equals -0.0; NULL equals
NULL; text, blobs and text that is not UTF-8 never equal each other or a number. Names of columns do not count. Two
results without rows are equal whatever their columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.domain.sql import Cell
from orchestrator.sql.column_matching import equal_in_some_order_of_columns

Row = tuple[Cell, ...]
Rows = Sequence[Row]

METRICS = ("bird", "multiset", "spider", "strict", "relaxed")


def bird(predicted: Rows, gold: Rows) -> bool:
    """BIRD's execution accuracy."""
    return set(predicted) == set(gold)


def multiset(predicted: Rows, gold: Rows) -> bool:
    """As `bird`, duplicates counted."""
    return Counter(predicted) == Counter(gold)


def spider(predicted: Rows, gold: Rows, *, gold_is_ordered: bool) -> bool | None:
    """Spider's test-suite accuracy with DISTINCT as written; None: it would take too long to find out."""
    if gold_is_ordered:
        return relaxed(predicted, gold)
    return equal_in_some_order_of_columns(predicted, gold)


def strict(predicted: Rows, gold: Rows) -> bool:
    """EvoSQL's strict execution accuracy."""
    return list(predicted) == list(gold)


def relaxed(predicted: Rows, gold: Rows) -> bool:
    """EvoSQL's relaxed execution accuracy: rows in some order of columns are the same columns in some order."""
    if len(predicted) != len(gold):
        return False
    return Counter(zip(*predicted, strict=True)) == Counter(zip(*gold, strict=True))
