"""Known traps of comparing SQL by execution, run on real SQLite and judged in every metric.

Prediction and gold run on databases of their own, as they do in production; numbers are those of the project's table.
"""

from __future__ import annotations

import sqlite3

import pytest

from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.sql.comparison import METRICS
from orchestrator.sql.gate import Refusal, check
from orchestrator.sql.verdicts import Verdict, judge

TABLES = """
create table p(id integer, name text, age integer, city text, pay real, born text);
insert into p values (1, 'Ann', 30, 'Oslo', 10.0, '1990-01-01'), (2, 'Bob', 40, 'Rome', 20.5, '1980-01-01'),
    (3, 'Cy', 30, 'Oslo', null, '1990-05-05'), (4, 'Dee', 50, null, 33.333333, null);
create table e(x);
"""


def run(sql: str) -> QueryResult:
    """A query through the gate, on a database that nothing else uses."""
    try:
        statement = check(sql)
    except Refusal as refusal:
        return QueryResult(status=QueryStatus.REFUSED, message=refusal.reason)
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    return QueryResult(status=QueryStatus.OK, rows=tuple(connection.execute(statement.text).fetchall()))


def verdict(predicted: str, gold: str) -> Verdict:
    return judge(run(predicted), run(gold), gold_statement=check(gold), nondeterministic=False)


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),  # expected: bird, multiset, spider, strict, relaxed
    [
        pytest.param("select name from p order by name desc", "select name from p", "11100", id="1-row-order"),
        pytest.param(
            "select name from p order by age desc, name",
            "select name from p order by age, name",
            "11000",
            id="2-row-order-with-order-by-in-gold",
        ),
        pytest.param(
            "select name from p where id in (2, 1) order by name desc",
            "select name from p where id in (select id from p order by id limit 2)",
            "11100",
            id="3-order-by-only-in-a-subquery-of-gold",
        ),
        pytest.param(
            "select name from p where name <> 'order by x' order by id desc",
            "select name from p where name <> 'order by x'",
            "11100",
            id="4-order-by-in-a-string-of-gold",
        ),
        pytest.param(
            "select city from p where city = 'Oslo'",
            "select distinct city from p where city = 'Oslo'",
            "10000",
            id="5-extra-duplicates",
        ),
        pytest.param("select age from p union all select 30", "select age from p", "10000", id="6-multiset-differs"),
        pytest.param("select count(distinct age) from p", "select count(age) from p", "00000", id="7-distinct-count"),
        pytest.param("select age, name from p", "select name, age from p", "00101", id="8-column-order"),
        pytest.param("select name, age from p", "select name from p", "00000", id="9-extra-column"),
        pytest.param("select name as n from p", "select name from p", "11111", id="10-alias"),
        pytest.param("select 1", "select 1.0", "11111", id="11-integer-and-float"),
        pytest.param("select '30'", "select 30", "00000", id="13-number-and-text"),
        pytest.param("select 0.1 + 0.2", "select 0.3", "00000", id="14-float-noise"),
        pytest.param(
            "select round(pay, 2) from p where id = 4", "select pay from p where id = 4", "00000", id="15-round"
        ),
        pytest.param("select city from p where id = 4", "select null", "11111", id="17-null-is-null"),
        pytest.param("select ''", "select null", "00000", id="18-null-and-empty-text"),
        pytest.param("select max(x) from e", "select x from e", "00000", id="18-null-row-and-no-row"),
        pytest.param("select x from e", "select count(*) from e", "00000", id="18-no-row-and-zero"),
        pytest.param("select x, x, x from e", "select name from p where id = 99", "11111", id="19-both-empty"),
        pytest.param("select name from p; -- done", "select name from p", "11111", id="27-trailing-semicolon"),
        pytest.param(
            'select name from p where city = "Oslo"',
            "select name from p where city = 'Oslo'",
            "11111",
            id="32-string-in-double-quotes",
        ),
        pytest.param("select true, -0.0", "select 1, 0", "11111", id="34-true-and-negative-zero"),
    ],
)
def test_a_prediction_is_right_exactly_in_these_metrics(predicted: str, gold: str, expected: str) -> None:
    found = verdict(predicted, gold)
    assert "".join(str(int(found.metrics[name])) for name in METRICS) == expected
    assert found.predicted_status is QueryStatus.OK
    assert found.both_empty is (predicted == "select x, x, x from e")


@pytest.mark.parametrize(
    ("predicted", "gold"),
    [
        pytest.param("   ", "select x from e", id="21-blank"),
        pytest.param("pragma query_only=1", "select x from e", id="22-pragma"),
        pytest.param("delete from p", "select name from p", id="23-delete"),
        pytest.param(
            "create temp table p as select 1 as id,'z' as name where 0", "select name from p", id="24-temporary-table"
        ),
        pytest.param("select name from p; select 1", "select name from p", id="26-two-statements"),
        pytest.param("select name from p where age > = 40", "select name from p where age >= 40", id="29-split-sign"),
    ],
)
def test_what_is_not_one_query_is_refused_and_wrong_in_every_metric(predicted: str, gold: str) -> None:
    found = verdict(predicted, gold)
    assert found.predicted_status is QueryStatus.REFUSED
    assert dict(found.metrics) == dict.fromkeys(METRICS, False)
    assert not found.both_empty
