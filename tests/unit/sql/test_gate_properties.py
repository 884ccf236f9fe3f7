"""Whatever is tried, the gate lets through only what SQLite takes for a read, and raises nothing but its refusal."""

from __future__ import annotations

import random
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.sql.gate import check
from tests.unit.sql.queries import QUERIES, WRITES, database, reason_to_refuse

READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def disguised(sql: str) -> list[str]:
    """A statement written otherwise, and statements around it."""
    word, _, rest = sql.partition(" ")
    mixed = "".join(letter.upper() if n % 2 else letter for n, letter in enumerate(word))
    alone = ["{}", " \t\n\r\f{} ; ", "/* select 1 */ -- select\n{}", "\ufeff{}", "({})", "(({}))", "{} -- select 1"]
    behind = [
        "explain {}",
        "explain query plan {}",
        "explain select 1; {}",
        "select 1; {}",
        ";{}",
        "select '1;' ; {} --",
    ]
    ctes = [
        "with x as (select 1) {}",
        "with x as (select 1), y(a) as (select 2) /* select */ {}",
        "with recursive x as not materialized (select 1) {}",
    ]
    return [form.format(sql) for form in alone + behind + ctes] + [sql.upper(), f"{mixed} {rest}", f"{word}/**/{rest}"]


@pytest.mark.parametrize("sql", WRITES)
def test_no_other_statement_passes_in_any_disguise(sql: str) -> None:
    assert [attempt for attempt in disguised(sql) if reason_to_refuse(attempt) is None] == []


@pytest.mark.parametrize("sql", [sql for sql in WRITES if not sql.startswith("values")])
@pytest.mark.parametrize(
    "query",
    [
        "with x as ({}) select * from x",
        "select * from ({})",
        "select 1 where exists ({})",
        "select ({})",
        "select 1 union {}",
    ],
)
def test_a_query_cannot_hold_another_statement(sql: str, query: str) -> None:
    attempt = query.format(sql)
    if reason_to_refuse(attempt) is None:  # `select (vacuum)` asks for a column of that name
        with pytest.raises(sqlite3.OperationalError, match=r"no such (column|table)|syntax error"):
            database().execute(attempt)
        assert actions(attempt) <= READS


_WORDS = """
select from where join on using natural left a b t u 1 'x' not exists case when then end with as union all values order
by group limit over partition between and or like is null distinct having window filter insert into delete update set
pragma attach explain create table drop vacuum returning recursive in ( ( ) ) , . * - = < > ; -- /* */ \x0b \ufeff ? '
date( count( load_extension( replace( "a" [b] `t` x'00' 0x || ->> 'a;b' " [ """
TEXTS = st.builds(
    lambda start, pieces, glue: start + glue.join(pieces),
    st.sampled_from(["select ", "select a from t ", "with a as (select 1) ", "select * from (", ""]),
    st.lists(st.sampled_from([*_WORDS.split(), "\n", "\u00a0"]), max_size=14),
    st.sampled_from([" ", " ", ""]),
)


def actions(sql: str) -> set[int]:
    """What SQLite asks its authorizer for, as far as it understands the text."""
    connection = database()
    seen: set[int] = set()

    def authorize(action: int, *_: object) -> int:
        seen.add(action)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: 1, 5_000)
    try:
        connection.execute(sql).fetchall()
    except sqlite3.OperationalError:
        return seen
    return seen


@settings(max_examples=200)
@given(st.one_of(TEXTS, st.text(max_size=60), st.sampled_from(QUERIES)))
@example("select " + "[" * 500)
@example("select 0x" + "f" * 19_000)
@example("select json_extract(a, '$[?(((') from t")
def test_whatever_passes_only_reads_in_the_eyes_of_sqlite(sql: str) -> None:
    reason = reason_to_refuse(sql)
    if reason is None:
        text = check(sql).text
        assert text in sql
        assert actions(text) <= READS
    else:
        assert reason.isprintable()


def test_the_property_would_notice_a_write() -> None:
    assert actions("delete from t") - READS
    assert actions("select a from pragma_table_info('t')") - READS


@settings(max_examples=60)
@given(st.sampled_from([sql for sql in QUERIES if "'" not in sql]), st.randoms(use_true_random=False), st.booleans())
def test_a_query_stays_one_when_it_is_written_otherwise(sql: str, rng: random.Random, upper: bool) -> None:
    gaps = [" ", "\n", "\t ", " /* ; */ ", " --;\n"]
    written = "".join(rng.choice(gaps) if letter == " " else letter for letter in sql.upper())
    text = f"\n{written if upper else written.lower()}\n;"
    assert check(text).has_top_level_order is check(sql).has_top_level_order
