"""The gate lets single read-only queries through, byte for byte, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from orchestrator.sql.gate import MAX_CHARACTERS, MAX_NESTING, Refusal, check
from tests.unit.sql.queries import QUERIES, database, reason_to_refuse


def data() -> Path:
    """The folder of the public data sets."""
    root = Path(os.environ.get("EVOLVARIUM_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (root / "spider" / "dev.json").is_file():
        pytest.skip(f"no data sets at {root}; set EVOLVARIUM_DATA to their folder")
    return root


@pytest.mark.parametrize("sql", QUERIES)
def test_what_sqlite_runs_as_a_query_passes_byte_for_byte(sql: str) -> None:
    database().execute(sql).fetchall()
    assert check(sql).text == sql


def test_every_gold_query_of_the_data_sets_passes() -> None:
    root = data()
    gold = [row["query"] for row in json.loads((root / "spider" / "dev.json").read_text())]
    gold += [row["SQL"] for row in json.loads((root / "bird" / "dev.json").read_text())]
    assert len(gold) == 556 + 129
    for sql in gold:
        statement = check(sql)
        assert statement.text in sql
        assert statement.has_top_level_order == bool(statement.tree.args.get("order"))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "the query is empty"),
        ("   ", "the query is empty"),
        (" ; ", "the query is empty"),
        ("-- nothing", "the query is empty"),
        ("select 1; select 2", "more than one statement; the second begins with 'select'"),
        ("(select 1)", r"only SELECT is allowed, not '\('"),
        ("with x as (select 1) delete from t", "only SELECT is allowed, not 'delete'"),
        ("select a from p where age > = 40", "syntax error near '='"),
        ("select 'open", "syntax error: no token of SQL begins at character 8"),
        ("select 1 /* open", "syntax error: no token of SQL begins at character 10"),
        ("select 1\0", "the query holds a NUL at character 9"),
        ("select '\ud800'", "half a surrogate pair at character 9"),
        ("select ?1", r"the parameter '\?1' has no value"),
        ("select :name", "the parameter ':name' has no value"),
        ("select 1)", "a parenthesis is closed that was not opened"),
        ("select load_extension('x')", "there is no function 'load_extension'"),
        ('select "Load_Extension"(1)', "there is no function 'Load_Extension'"),
        ("select [load_extension] /**/ (1) as materialized", "there is no function 'load_extension'"),
        ("select fts3_tokenizer('x')", "there is no function 'fts3_tokenizer'"),
        ("select readfile('/etc/passwd')", "there is no function 'readfile'"),
        ("select * from pragma_table_info('t')", "there is no function 'pragma_table_info'"),
        ("select * from main.pragma_table_info('t')", "there is no function 'pragma_table_info'"),
        ("select * from PRAGMA_database_list", "the table 'PRAGMA_database_list' is internal"),
        ("select * from 'sqlite_master'", "the table 'sqlite_master' is internal"),
        ("select * from temp.[sqlite_schema]", "the table 'sqlite_schema' is internal"),
        ("select 1 in sqlite_master", "the table 'sqlite_master' is internal"),
        ("select name from dbstat", "the table 'dbstat' is internal"),
        ("select a into x from t", "syntax error near 'into'|no place for Into"),
        ("select a from t for update", "syntax error near 'for'|no place for Lock"),
        ("select 1 " + "x" * MAX_CHARACTERS, "the query has 20009 characters; 20000 are allowed"),
        (f"select {'(' * 25}1{')' * 25}", "the query is nested 25 deep; 24 are allowed"),
        ("select " + "not " * 4000 + "1", "nested too deeply"),
        ("select " + "case when 1 then " * 900, "nested too deeply"),
    ],
)
def test_a_refusal_names_the_thing_and_the_value(sql: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        check(sql)


def test_the_nesting_that_is_allowed_passes() -> None:
    sql = "select " + "(" * MAX_NESTING + "1" + ")" * MAX_NESTING
    assert check(sql).text == sql


def test_a_query_of_the_greatest_length_passes() -> None:
    sql = "select " + "1," * 9_996 + "1"
    assert len(sql) == MAX_CHARACTERS
    assert check(sql).text == sql


def test_what_surrounds_the_statement_is_cut_and_nothing_inside() -> None:
    sql = "/* a; */ select /* b */ ';--', \"x;\"  -- c\n from t ; ; -- done; \n"
    assert check(sql).text == "select /* b */ ';--', \"x;\"  -- c\n from t"


@pytest.mark.parametrize(
    ("sql", "is_ordered"),
    [
        ("select a from t order by a", True),
        ("select a from t union select a from u order /**/ by 1", True),
        ("with x as (select 1 order by 1) select * from x ORDER BY 1", True),
        ("select end from (select 1 as end) order by end", True),
        ("select a from t", False),
        ("select a from (select a from t order by a)", False),
        ("with x as (select 1 order by 1) select * from x", False),
        ("select rank() over (order by a) from t", False),
        ("select a from t where b <> 'order by x'", False),
        ('select a as "order by" from t -- order by a', False),
    ],
)
def test_only_an_order_by_of_the_top_level_counts(sql: str, is_ordered: bool) -> None:
    assert check(sql).has_top_level_order is is_ordered


@pytest.mark.parametrize(
    "sql",
    [
        "select " + "date(" * 22 + "a" + ")" * 22,
        "select " + "json(a, cast(" * 10 + "1" + " as int))" * 10,
        "select 1 from a" + " join a" * 2_800,
        "select 1 from a" + ", b join a" * 1_900,
        "select 1 from a" + " join a join (select 1 from a" * 22 + ")" * 22,
    ],
)
def test_what_sqlglot_reads_in_exponential_time_is_read_at_once(sql: str) -> None:
    assert check(sql).text == sql


def test_other_texts_that_need_exponential_time_are_refused_at_once() -> None:
    sql = "select " + "ln , interval limit count (" * 22 + "1" + ")" * 22
    assert reason_to_refuse(sql) == "it takes too long to read"
