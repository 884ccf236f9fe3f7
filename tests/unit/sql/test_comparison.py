"""Each way to compare results does what its definition says, exactly, and in bounded work."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.domain.sql import Cell, QueryResult, QueryStatus, RawText
from orchestrator.sql.column_matching import equal_in_some_order_of_columns
from orchestrator.sql.comparison import METRICS, Rows, bird, multiset, relaxed, spider, strict
from orchestrator.sql.gate import check
from orchestrator.sql.verdicts import GoldStatus, Verdict, gold_status, judge
from tests.unit.sql.results import result, tables


def verdicts(predicted: Rows, gold: Rows, *, ordered: bool = False) -> dict[str, bool]:
    """Every metric by the judge."""
    sql = "select 1 order by 1" if ordered else "select 1"
    verdict = judge(result(predicted), result(gold), gold_statement=check(sql), nondeterministic=False)
    assert not verdict.undecided
    return dict(verdict.metrics)


def permuted(rows: Rows, order: list[int]) -> list[tuple[Cell, ...]]:
    """The rows with their columns in another order."""
    return [tuple(row[column] for column in order) for row in rows]


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (None, None, True),
        (2**53, 2.0**53, True),
        (2**53 + 1, 2.0**53, False),
        (2**63 - 1, 2.0**63, False),
        (-(2**63), -(2.0**63), True),
        (float("inf"), float("inf"), True),
        (float("inf"), -float("inf"), False),
        (0.1 + 0.2, 0.3, False),
        (30, "30", False),
        (None, "", False),
        (None, 0, False),
        ("a", b"a", False),
        ("a", RawText(b"a"), False),
        (b"\xff", RawText(b"\xff"), False),
        (RawText(b"\xff"), RawText(b"\xff"), True),
        (RawText(b"\xff"), RawText(b"\xfe"), False),
        ("a", "A", False),
        ("\u00e9", "e\u0301", False),
    ],
)
def test_values_are_compared_exactly(one: Cell, other: Cell, are_equal: bool) -> None:
    for ordered in (False, True):
        assert set(verdicts([(one,)], [(other,)], ordered=ordered).values()) == {are_equal}
        assert set(verdicts([(other, 1)], [(one, 1)], ordered=ordered).values()) == {are_equal}


@given(tables(), st.booleans())
def test_every_result_equals_itself(rows: Rows, ordered: bool) -> None:
    assert set(verdicts(rows, rows, ordered=ordered).values()) == {True}


@given(tables(), tables(), st.booleans())
def test_no_metric_depends_on_which_of_two_results_is_the_gold(one: Rows, other: Rows, ordered: bool) -> None:
    assert verdicts(one, other, ordered=ordered) == verdicts(other, one, ordered=ordered)


@given(tables(), st.randoms(use_true_random=False))
def test_an_order_of_rows_matters_only_where_the_metric_says_so(rows: Rows, rng: random.Random) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    found = verdicts(shuffled, rows)
    assert found["bird"]
    assert found["multiset"]
    assert found["spider"]
    assert found["strict"] == (shuffled == list(rows))


@given(tables(), st.randoms(use_true_random=False))
def test_an_order_of_columns_matters_only_where_the_metric_says_so(rows: Rows, rng: random.Random) -> None:
    order = list(range(len(rows[0]) if rows else 1))
    rng.shuffle(order)
    other = permuted(rows, order) if rows else []
    for ordered in (False, True):
        found = verdicts(other, rows, ordered=ordered)
        assert found["spider"]
        assert found["relaxed"]
        assert found["strict"] == (other == list(rows))
        assert found["bird"] == (set(other) == set(rows))


@given(tables(), tables(), st.booleans())
def test_what_a_stricter_metric_accepts_a_weaker_one_accepts(one: Rows, other: Rows, ordered: bool) -> None:
    found = verdicts(one, other, ordered=ordered)
    for stricter, weaker in [
        ("strict", "relaxed"),
        ("strict", "multiset"),
        ("strict", "spider"),
        ("multiset", "bird"),
        ("relaxed", "spider"),
    ]:
        assert found[weaker] or not found[stricter], (stricter, weaker)
    if not ordered:
        assert found["spider"] or not found["multiset"]
    else:
        assert found["spider"] == found["relaxed"]


def by_trying_all(left: Rows, right: Rows) -> bool:
    """The definition, in factorial time."""
    if not left and not right:
        return True
    width = len(left[0]) if left else len(right[0])
    if any(len(row) != width for row in (*left, *right)):
        return False
    return any(Counter(permuted(left, list(order))) == Counter(right) for order in itertools.permutations(range(width)))


BITS = st.integers(1, 4).flatmap(
    lambda width: st.tuples(*[st.lists(st.tuples(*[st.integers(0, 1)] * width), min_size=3, max_size=5)] * 2)
)


@settings(max_examples=300)
@given(st.tuples(tables(), tables()) | BITS)
@example(([(0, 1), (1, 0)], [(0, 0), (1, 1)]))
@example(([(0, 0, 1), (0, 0, 1)], [(0, 1, 1), (0, 1, 1)]))
def test_the_search_for_an_order_of_columns_agrees_with_trying_all(pair: tuple[Rows, Rows]) -> None:
    assert equal_in_some_order_of_columns(*pair) is by_trying_all(*pair)


@given(BITS, st.randoms(use_true_random=False))
def test_the_search_finds_an_order_that_is_there(pair: tuple[Rows, Rows], rng: random.Random) -> None:
    rows = list(pair[0])
    order = list(range(len(rows[0])))
    rng.shuffle(order)
    other = permuted(rows, order)
    rng.shuffle(other)
    assert equal_in_some_order_of_columns(rows, other) is True


def cycles(*lengths: int) -> list[tuple[int, ...]]:
    """The incidence of rows and columns that form rings: each row meets two columns, each column two rows."""
    width = sum(lengths)
    rows = []
    start = 0
    for length in lengths:
        for n in range(length):
            met = {start + n, start + (n + 1) % length}
            rows.append(tuple(int(column in met) for column in range(width)))
        start += length
    return rows


def test_the_search_sees_what_colours_alone_do_not() -> None:
    assert equal_in_some_order_of_columns(cycles(6), cycles(3, 3)) is False
    assert equal_in_some_order_of_columns(cycles(3, 4, 3), cycles(4, 3, 3)) is True


def test_wide_results_take_no_factorial_time() -> None:
    rng = random.Random(0)  # noqa: S311
    rows = [tuple(rng.randrange(3) for _ in range(60)) for _ in range(40)]
    order = list(range(60))
    rng.shuffle(order)
    assert equal_in_some_order_of_columns(permuted(rows, order), rows) is True
    alike = [tuple(int(row == column) for column in range(40)) for row in range(40)]
    assert equal_in_some_order_of_columns(permuted(alike, list(reversed(range(40)))), [*alike[1:], alike[0]]) is True


def test_a_search_that_would_take_too_long_is_given_up() -> None:
    assert equal_in_some_order_of_columns(cycles(6), cycles(3, 3), max_visits=1_000) is None
    assert equal_in_some_order_of_columns(cycles(6), cycles(6)[::-1], max_visits=0) is True


def test_a_truncated_result_is_wrong_in_every_metric_even_against_the_same_rows() -> None:
    rows = [(1,), (2,)]
    verdict = judge(
        result(rows, truncated=True), result(rows), gold_statement=check("select 1"), nondeterministic=False
    )
    assert dict(verdict.metrics) == dict.fromkeys(METRICS, False)
    assert verdict.truncated
    empty = judge(result([], truncated=True), result([]), gold_statement=check("select 1"), nondeterministic=False)
    assert not any(empty.metrics.values())
    assert not empty.both_empty


@pytest.mark.parametrize("status", [status for status in QueryStatus if status is not QueryStatus.OK])
def test_a_query_that_did_not_end_well_is_wrong_in_every_metric_and_keeps_its_status(status: QueryStatus) -> None:
    failed = QueryResult(status=status, message="why")
    verdict = judge(failed, result([]), gold_statement=check("select 1"), nondeterministic=True)
    assert verdict == Verdict(metrics=dict.fromkeys(METRICS, False), predicted_status=status, nondeterministic=True)


@pytest.mark.parametrize(
    ("gold", "status"),
    [
        (result([(1,)]), GoldStatus.OK),
        (result([]), GoldStatus.OK),
        (result([(1,)], truncated=True), GoldStatus.TRUNCATED),
        (QueryResult(status=QueryStatus.TIMEOUT), GoldStatus.TIMEOUT),
        (QueryResult(status=QueryStatus.REFUSED), GoldStatus.REFUSED),
        (QueryResult(status=QueryStatus.ERROR), GoldStatus.ERROR),
        (QueryResult(status=QueryStatus.MEMORY), GoldStatus.ERROR),
        (QueryResult(status=QueryStatus.KILLED), GoldStatus.ERROR),
    ],
)
def test_a_question_is_judged_only_if_its_gold_is_complete(gold: QueryResult, status: GoldStatus) -> None:
    assert gold_status(gold) is status
    if status is GoldStatus.OK:
        assert all(judge(gold, gold, gold_statement=check("select 1"), nondeterministic=False).metrics.values())
    else:
        with pytest.raises(ValueError, match=f"the status '{status}' cannot be judged"):
            judge(result([]), gold, gold_statement=check("select 1"), nondeterministic=False)


def test_flags_tell_what_a_verdict_rests_on() -> None:
    lossy = QueryResult(status=QueryStatus.OK, rows=((RawText(b"\xff"),),), lossy_text=True)
    verdict = judge(lossy, lossy, gold_statement=check("select 1"), nondeterministic=True)
    assert (verdict.lossy_text, verdict.nondeterministic, verdict.both_empty) == (True, True, False)
    empty = judge(result([]), result([]), gold_statement=check("select 1"), nondeterministic=False)
    assert (empty.lossy_text, empty.nondeterministic, empty.both_empty) == (False, False, True)


def test_the_plain_functions_are_what_the_judge_reports() -> None:
    one, other = [(1, 2), (3, 4)], [(4, 3), (2, 1)]
    direct = {
        "bird": bird(one, other),
        "multiset": multiset(one, other),
        "spider": spider(one, other, gold_is_ordered=False),
        "strict": strict(one, other),
        "relaxed": relaxed(one, other),
    }
    assert verdicts(one, other) == direct
    assert direct == {"bird": False, "multiset": False, "spider": True, "strict": False, "relaxed": False}
