"""The shape of a difference: found for what it is, and never a value of either result."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import Cell, QueryResult, QueryStatus, RawText
from orchestrator.sql.differences import difference

Rows = Sequence[tuple[Cell, ...]]


def result(rows: Rows, *, truncated: bool = False) -> QueryResult:
    columns = tuple(f"c{n}" for n in range(len(rows[0]) if rows else 1))
    return QueryResult(status=QueryStatus.OK, columns=columns, rows=tuple(rows), truncated=truncated)


def shape(predicted: Rows, gold: Rows, *, ordered: bool = False) -> tuple[str, ...]:
    return difference(result(predicted), result(gold), ordered=ordered)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (QueryStatus.ERROR, "failed"),
        (QueryStatus.REFUSED, "refused"),
        (QueryStatus.TIMEOUT, "too long"),
        (QueryStatus.MEMORY, "memory"),
        (QueryStatus.KILLED, "ended"),
    ],
)
def test_a_query_that_gave_nothing_is_told_as_that_without_its_message(status: QueryStatus, words: str) -> None:
    failed = QueryResult(status=status, message="no such column: canary")
    (finding,) = difference(failed, result([(1,)]), ordered=False)
    assert words in finding
    assert "canary" not in finding


def test_a_wanted_result_that_is_none_is_refused() -> None:
    gold = QueryResult(status=QueryStatus.TIMEOUT)
    with pytest.raises(ValueError, match="'timeout'"):
        difference(result([(1,)]), gold, ordered=False)


@pytest.mark.parametrize(
    ("predicted", "gold", "findings"),
    [
        pytest.param([], [(1,), (2,)], ("no rows, where 2 are wanted",), id="empty"),
        pytest.param([(1,)], [], ("1 row, where there should be none",), id="not empty"),
        pytest.param([], [], (), id="both empty"),
        pytest.param(
            [("a", 1), ("b", 2)],
            [("a",), ("b",)],
            ("1 column too many", "1 of the 1 wanted columns is there"),
            id="column too many",
        ),
        pytest.param(
            [("x",)],
            [("a", 1, 2), ("b", 2, 3)],
            ("2 columns too few", "none of the 3 wanted columns is there", "1 row too few"),
            id="columns too few",
        ),
        pytest.param([(1,), (1,), (2,)], [(1,), (2,)], ("only duplicates differ", "1 row too many"), id="duplicates"),
        pytest.param(
            [(1,), (1,), (2,)],
            [(1,), (2,), (2,)],
            ("only duplicates differ: rows are repeated that should not be, and others are not",),
            id="other duplicates",
        ),
        pytest.param(
            [("a", 1), ("b", 2)],
            [(1, "a"), (2, "b")],
            ("the values are right, and the columns in another order than is wanted",),
            id="columns exchanged",
        ),
        pytest.param(
            [("a", 1), ("b", 2), ("b", 2)],
            [(1, "a"), (2, "b")],
            ("the values are right, and the columns in another order than is wanted",),
            id="columns exchanged, with duplicates",
        ),
        pytest.param([("ANN",)], [("Ann",)], ("the values differ only in the case of letters",), id="case"),
        pytest.param([(" Ann ",)], [("Ann",)], ("the values differ only in white space",), id="space"),
        pytest.param(
            [("12",)], [(12,)], ("the values differ only in kind: numbers, and texts that read the same",), id="kind"
        ),
        pytest.param([(0.1 + 0.2,)], [(0.3,)], ("the values differ only in the last digits of numbers",), id="noise"),
        pytest.param(
            [(b"ab",)], [("ab",)], ("the values differ only in kind: blobs, and texts that read the same",), id="blob"
        ),
        pytest.param(
            [(" ANN", "7")],
            [("Ann", 7)],
            ("the values differ only in the case of letters, white space and kind together",),
            id="all at once",
        ),
        pytest.param(
            [("a", 33.33)],
            [("a", 33.3333333)],
            ("the numbers differ only in rounding: they have fewer digits than is wanted",),
            id="rounded",
        ),
        pytest.param(
            [("a", 33.3333333)],
            [("a", 33)],
            ("the numbers differ only in rounding: they have more digits than is wanted",),
            id="not rounded",
        ),
        pytest.param([(5,)], [(6,)], ("the only row differs",), id="another number"),
        pytest.param([(0.2,)], [(0.4,)], ("the only row differs",), id="no rounding makes these equal"),
        pytest.param(
            [("Ann",)], [(6,)], ("the only row differs", "column 1: text, where numbers should be"), id="another kind"
        ),
        pytest.param(
            [(1, "a"), (2, "b"), (3, "c")],
            [(1, "a"), (2, "b")],
            ("1 row too many", "2 of the 2 different rows that are wanted are there", "1 row that should not be there",
             "only columns 1, 2 differ")[:3],
            id="rows too many",
        ),
        pytest.param(
            [(1, "a"), (2, "x")],
            [(1, "a"), (2, "b")],
            (
                "1 of the 2 different rows that are wanted is there",
                "1 row that should not be there",
                "only column 2 differs",
            ),
            id="half of the rows",
        ),
        pytest.param(
            [(1, "b"), (2, "a")],
            [(1, "a"), (2, "b")],
            (
                "none of the 2 different rows that are wanted is there",
                "2 rows that should not be there",
                "each column holds the wanted values, and they are combined in other ways",
            ),
            id="crossed",
        ),
        pytest.param(
            [(None,), (1,)],
            [(2,), (1,)],
            (
                "1 of the 2 different rows that are wanted is there",
                "1 row that should not be there",
                "column 1: NULL, where there should be none",
            ),
            id="NULL",
        ),
        pytest.param(
            [(3,), (1,)],
            [(None,), (1,)],
            (
                "1 of the 2 different rows that are wanted is there",
                "1 row that should not be there",
                "column 1: no NULL, where some is wanted",
            ),
            id="no NULL",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_named(predicted: Rows, gold: Rows, findings: tuple[str, ...]) -> None:
    assert shape(predicted, gold) == findings


def test_another_order_is_a_difference_only_where_order_matters() -> None:
    rows, turned = [(1,), (2,)], [(2,), (1,)]
    assert shape(turned, rows) == ()
    assert shape(turned, rows, ordered=True) == ("the rows are right, and in another order than is wanted",)
    assert shape(rows, rows, ordered=True) == ()


def test_a_result_that_is_cut_is_said_to_be() -> None:
    found = difference(result([(1,), (2,)], truncated=True), result([(1,)]), ordered=False)
    assert found[0] == "there are more rows than are kept"
    assert "1 row too many" in found


cells = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, width=16),
    st.text(string.ascii_letters + " 0123456789.", max_size=4),
    st.binary(max_size=3),
    st.binary(max_size=3).map(lambda raw: RawText(raw + b"\xff")),
)


def tables(cell: st.SearchStrategy[Cell]) -> st.SearchStrategy[list[tuple[Cell, ...]]]:
    return st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[cell] * width), max_size=6))


@given(tables(cells), tables(cells))
def test_no_finding_means_equal_sets_of_rows_and_equal_sets_mean_nothing_but_duplicates(
    predicted: list[tuple[Cell, ...]], gold: list[tuple[Cell, ...]]
) -> None:
    found = shape(predicted, gold)
    assert bool(found) == (sorted(map(repr_key, predicted)) != sorted(map(repr_key, gold)))
    if set(predicted) == set(gold):
        assert all("duplicates" in finding or "row" in finding for finding in found)


def repr_key(row: tuple[Cell, ...]) -> str:
    """Equal for equal rows: 1 is 1.0, and 0.0 is -0.0."""
    return repr([float(cell) + 0.0 if isinstance(cell, int | float) else cell for cell in row])


CANARIES = ["canaryfalcon", "CANARYFALCON ", "73194567", "x'deadbeef'"]
canary_cells: st.SearchStrategy[Cell] = st.sampled_from(
    [
        "canaryfalcon",
        "CANARYFALCON ",
        73194567,
        73194567.5,
        "73194567",
        b"\xde\xad\xbe\xef",
        RawText(b"canary\xff"),
        None,
        1,
    ]
)


@given(tables(canary_cells), tables(canary_cells), st.booleans(), st.sampled_from(QueryStatus))
def test_findings_are_our_words_and_small_counts_whatever_the_values_are(
    predicted: list[tuple[Cell, ...]], gold: list[tuple[Cell, ...]], ordered: bool, status: QueryStatus
) -> None:
    secret = QueryResult(
        status=QueryStatus.OK,
        message="canarymessage",
        columns=tuple(f"canarycolumn{n}" for n in range(len(gold[0]) if gold else 1)),
        rows=tuple(gold),
    )
    made = QueryResult(status=status, message="SELECT canarycolumn0", columns=("canaryname",), rows=tuple(predicted))
    for finding in difference(made, secret, ordered=ordered):
        assert "canary" not in finding.lower()
        assert "dead" not in finding
        assert all(int(number) <= 6 for number in re.findall(r"\d+", finding))
        assert re.fullmatch(r"[A-Za-z0-9 ,:-]+", finding)


def test_a_hundred_thousand_rows_are_compared_with_no_more_than_a_few_passes() -> None:
    class Counting(str):
        """A text that counts how often it is looked at."""

        __slots__ = ()
        looks = 0

        def __hash__(self) -> int:
            Counting.looks += 1
            return super().__hash__()

    size = 100_000
    gold = [(n, Counting(f"name {n}")) for n in range(size)]
    predicted = [(n, f"Name {n + 1}") for n in range(size)]
    assert f"none of the {size} different rows that are wanted is there" in shape(predicted, gold)
    assert Counting.looks < 40 * size
