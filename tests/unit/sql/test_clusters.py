"""Results have one key if, and only if, they are one answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import QueryResult, QueryStatus, RawText
from orchestrator.sql.clusters import cluster_key
from orchestrator.sql.comparison import Rows, multiset, strict
from tests.unit.sql.results import result, tables


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ([(1,)], [(1.0,)], True),
        ([(0.1 + 0.2,)], [(0.3,)], True),
        ([(1 / 3,)], [(0.3333333333,)], True),
        ([(1 / 3,)], [(0.333333333,)], False),
        ([(0,)], [(-0.0,)], True),
        ([(-1e-300,)], [(0,)], False),
        ([(1e15,)], [(10**15,)], True),
        ([(12345678901.0,)], [(12345678902.0,)], True),
        ([(12345678901,)], [(12345678902,)], False),
        ([(2**63 - 1,)], [(2**63 - 2,)], False),
        ([(float("inf"),)], [(float("inf"),)], True),
        ([(float("inf"),)], [(1.7e308,)], False),
        ([(None,)], [(None,)], True),
        ([(None,)], [("",)], False),
        ([("1",)], [(1,)], False),
        ([("a",)], [(b"a",)], False),
        ([("a",)], [(RawText(b"a"),)], False),
        ([(1, 2)], [(2, 1)], False),
        ([(1,), (2,)], [(2,), (1,)], True),
        ([(1,), (1,)], [(1,)], False),
        ([("a", "b")], [("ab", "")], False),
        ([("a",), ("b",)], [("a", "b")], False),
        ([("1:",)], [("1", "")], False),
        ([], [(None,)], False),
    ],
)
def test_cluster_keys_are_equal_for_one_answer_only(one: Rows, other: Rows, are_one: bool) -> None:
    keys = [cluster_key(result(rows), ordered=False) for rows in (one, other)]
    assert (keys[0] == keys[1]) is are_one


def test_an_order_that_was_asked_for_counts_among_rows_that_differ() -> None:
    up, down = result([(1,), (2,)]), result([(2,), (1,)])
    assert cluster_key(up, ordered=True) != cluster_key(down, ordered=True)
    assert cluster_key(up, ordered=True) != cluster_key(up, ordered=False)
    same = result([(1,), (1.0,)])
    assert cluster_key(same, ordered=True) == cluster_key(same, ordered=False)


def test_invalid_and_truncated_results_never_equal_complete_ones() -> None:
    keys = [cluster_key(QueryResult(status=status), ordered=False) for status in QueryStatus]
    keys += [cluster_key(result([], truncated=True), ordered=False), cluster_key(result([(None,)]), ordered=False)]
    assert len(set(keys)) == len(keys)
    failed = [QueryResult(status=QueryStatus.ERROR, message=message) for message in ("x", "y")]
    assert cluster_key(failed[0], ordered=True) == cluster_key(failed[1], ordered=False)


@given(tables(), tables(), st.booleans())
def test_equal_results_have_equal_cluster_keys(one: Rows, other: Rows, ordered: bool) -> None:
    are_equal = strict(one, other) if ordered else multiset(one, other)
    keys = [cluster_key(result(rows), ordered=ordered) for rows in (one, other)]
    is_rounded = any(isinstance(cell, float) and cell == 2.0**53 for row in (*one, *other) for cell in row)
    if are_equal and not is_rounded:
        assert keys[0] == keys[1]
    if keys[0] == keys[1] and len(one) > 1 and not is_rounded:
        assert are_equal
