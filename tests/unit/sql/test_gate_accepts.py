"""What SQLite takes for one query, the gate takes too, but for the kinds that are listed here."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.sql.gate import check
from tests.unit.sql.queries import database, reason_to_refuse

TYPES = [
    "unsigned big int",
    "DOUBLE PRECISION",
    "varchar(10)",
    "decimal(10, 2)",
    "decimal(+10,-2)",
    "native character(70)",
    "national varying character(3)",
    "long varchar",
    "int unsigned",
    "timestamp with time zone",
    "my own type name",
    "'text'",
    "'x' y(1)",
    '"int"',
    "[int] `big`",
    "text(1.5)",
    "temp",
    "date",
    "",
]


def is_query(sql: str) -> bool:
    """Whether SQLite can prepare it."""
    try:
        database().execute(f"explain {sql}").close()
    except sqlite3.OperationalError:
        return False
    return True


@pytest.mark.parametrize("declared", TYPES)
def test_a_cast_takes_every_type_that_sqlite_takes(declared: str) -> None:
    for place in ("select {} from t", "select a from t where {} / 2 > 1"):
        sql = place.format(f"cast(a + 1 as {declared})")
        assert is_query(sql)
        assert check(sql).text == sql


@pytest.mark.parametrize("declared", ["int(", "int(a)", "int(1, 2, 3)", "int int(1)(2)", "(1)", "1", "int, 2"])
def test_a_cast_takes_no_type_that_sqlite_does_not_know(declared: str) -> None:
    sql = f"select cast(a as {declared}) from t"  # noqa: S608 - ours
    assert not is_query(sql)
    assert reason_to_refuse(sql) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "select 'a' 'b'",
        "select 'a' 'b', 'c' \"d\", a || 'x' 'y' from t 'z'",
        "select a = 'x' 'same' from t",
        r"select a like 'x' escape char(92), a not like 'x' escape b || '' from t",
        "select a from t where a in ('x', 'y') collate nocase and b isnull collate nocase",
        "select sum(a in (1, 2) * b), a in (1) || 'x', a is null + 1 from t",
        "select a not in (select 1) -> 'x', a in t2 << 1 | b notnull - 1 from t",
    ],
)
def test_what_has_a_reading_of_its_own_in_sqlite_passes(sql: str) -> None:
    assert is_query(sql)
    assert check(sql).text == sql


def test_a_string_beside_a_string_is_its_alias() -> None:
    assert check("select 'a' 'b'").tree.expressions[0].alias == "b"


@pytest.mark.parametrize(
    "sql",
    [
        "values (1)",
        "with x as (select 1) values (1)",
        "explain select 1",
        "select 1 /* open",
        "select 't'.* from t",
        "select true.a from t as true",
        "select 1 from t left natural join u",
        "select 1 from t outer left join u",
        "select 1 from t cross inner join u",
        "with replace as (select 1 as a) select a from replace",
        *map("select x.{0} from (select 1 as {0}) as x where {0} > 0".format, ("for", "rollback", "with")),
        *map("select {0} from (select 1 as {0})".format, ("cross", "inner", "outer", "like", "glob", "regexp")),
        *(f"select {name}()" for name in ("changes", "total_changes", "last_insert_rowid", "sqlite_version")),
    ],
)
def test_what_sqlite_runs_and_nobody_needs_is_refused(sql: str) -> None:
    """Keywords as bare names can be written in quotes; the functions tell of the connection and the library."""
    database().execute(sql.removesuffix(" /* open"))
    assert reason_to_refuse(sql) is not None


_ATOMS = """a;b;t.a;1;'x';null;x'00';1.5;"a";(a);count(*);max(a);(select 1);exists (select 1);cast(a as int);
current_date;true;case when a then b else 1 end;sum(a) over ();coalesce(a, b)"""
_AFTER = """isnull;notnull;not null;is null;is not null;in (1, 2);not in (1);in t2;in (select 1);collate nocase;
escape 'x';between 1 and 2"""
_BETWEEN = """+;-;*;/;%;||;<<;>>;&;|;<;<=;>;>=;=;==;!=;<>;is;is not;is distinct from;and;or;like;not like;glob;->;->>"""


def one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from([word.strip() for word in words.split(";")])


EXPRESSIONS = st.recursive(
    one_of(_ATOMS),
    lambda inner: st.one_of(
        st.builds("{} {}".format, inner, one_of(_AFTER)),
        st.builds("{} {} {}".format, inner, one_of(_BETWEEN), inner),
        st.builds("{} {}".format, st.sampled_from(["-", "+", "~", "not"]), inner),
        st.builds("{} not between {} and {}".format, inner, one_of(_ATOMS), inner),
        st.builds("{} like {} escape {}".format, inner, one_of(_ATOMS), inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=5,
)
PLACES = st.sampled_from(["select {} from t", "select {} x from t", "select 1 from t where {}", "select 1 order by {}"])


@settings(max_examples=300)
@given(EXPRESSIONS, PLACES)
def test_every_expression_that_sqlite_can_prepare_passes(expression: str, place: str) -> None:
    sql = place.format(expression)
    if is_query(sql):
        assert reason_to_refuse(sql) is None
