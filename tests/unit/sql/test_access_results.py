"""Names and places of a result mean the same column before and after something was hidden, or the query is refused."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest

from orchestrator.sql.access import refusal
from orchestrator.sql.gate import check
from orchestrator.sql.result_columns import MAX_PLACES
from tests.unit.sql.test_access import access_for, schema_of

STAFF = {"e": ("id", "name", "secret"), "d": ("id", "place"), "f": ("secret", "id")}
HIDDEN = "column e.secret may not be read: data rule 2, deny e.secret"
ROWS = {
    "e": [(1, "b", 30), (2, "a", 10), (3, "c", 20), (4, "b", 5)],
    "d": [(1, "y"), (2, "z"), (3, "x"), (4, "w")],
    "f": [(7, 1), (9, 2), (8, 3), (6, 4)],
}


def answer(sql: str, *deny: str) -> str | None:
    schema = schema_of(STAFF)
    return refusal(check(sql), schema, access_for(schema, *(deny or ("e.secret",))))


@pytest.mark.parametrize(
    "sql",
    [
        "select name as secret from e order by +secret",
        "select name as secret from e order by (+secret)",
        'select name as secret from e order by +"secret" collate nocase',
        "select name as secret from e order by + +secret desc",
        "select name as secret from e group by +secret",
        "select *, name as secret from e order by secret",
        "select e.*, name as secret from e order by (secret) collate nocase",
        "select id, e.*, name as secret from e order by secret",
        "select x.secret from (select *, name as secret from e) as x",
        "with x as (select e.*, name as secret from e) select secret from x",
        "select *, name as secret from e union select *, name from e order by secret",
        "select * from e order by 3",
        "select * from e order by (3)",
        "select * from e order by +3",
        "select * from e order by -(-3) desc",
        "select * from e order by 0x3",
        "select * from e order by 000000000003",
        "select * from e order by 3 collate nocase",
        "select *, name from e order by 1, 4",
        "select id, e.* from e order by 4",
        "select *, count(*) from e group by 3",
        "select d.*, e.* from d join e on d.id = e.id order by 5",
        "select * from d join e using (id) order by 4",
        "select * from d natural join e order by 4",
        "select * from (select * from e) order by 3",
        "select * from (select * from e) as x order by 3",
        "select * from (d join e on d.id = e.id) order by 5",
        "select * from e union all select id, name, id from e order by 3",
        "select id, name, id from e union all select * from e order by 3",
    ],
)
def test_a_name_or_place_that_means_a_hidden_column_is_refused(sql: str) -> None:
    assert answer(sql) == HIDDEN


@pytest.mark.parametrize(
    "sql",
    [
        "select name as secret from e order by secret",
        "select name as other from e order by +other",
        "select name as secret, * from e order by secret",
        "select secret from (select name as secret, * from e)",
        "select d.*, name as secret from d join e on d.id = e.id order by secret",
        "select f.*, name as secret from f join e on f.id = e.id order by secret",
        "select * from e order by 1",
        "select * from e order by 2 desc, 1",
        "select id, name, e.* from e order by 4",
        "select +id, +name from e order by +id, 2",
        "select d.*, e.* from d join e on d.id = e.id order by 4",
        "select * from d join e using (id) order by 3",
        "select * from d natural join e order by 3",
        "select * from d order by 2",
        "select *, key from d, json_each('[1]') order by 11",
        "select count(*), name from e group by 2",
        "select id, name from e order by 3.0",
        "select id, name from e order by '3'",
        "select * from d where id = +3 limit +3",
    ],
)
def test_a_name_or_place_that_means_a_visible_column_is_not_refused(sql: str) -> None:
    assert answer(sql) is None


def test_a_chain_of_joins_is_read_without_counting_what_it_doubles() -> None:
    doubled = ", x{} as (select a.*, b.* from x{} a, x{} b)"
    chain = "".join(doubled.format(n, n - 1, n - 1) for n in range(1, 61))
    query = "with x0 as (select * from {}){} select * from x60 order by 9"
    assert answer(query.format("d", chain)) is None
    assert answer(query.format("e", chain)) == HIDDEN


def test_no_wider_result_is_looked_at_than_sqlite_takes() -> None:
    assert sqlite3.connect(":memory:").getlimit(sqlite3.SQLITE_LIMIT_COLUMN) == MAX_PLACES


ITEMS = ("*", "e.*", "name as secret", "id as name", "d.*", "place as secret", "name")
TERMS = ("secret", "+secret", "(secret)", "name", "+name", "2", "+3", "4", "- -5", "place", "(+place) collate nocase")


def database(*hidden: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for table, columns in STAFF.items():
        kept = [at for at, column in enumerate(columns) if f"{table}.{column}" not in hidden]
        connection.execute(f"create table {table} ({', '.join(columns[at] for at in kept)})")
        marks = ", ".join("?" for _ in kept)
        rows = [[row[at] for at in kept] for row in ROWS[table]]
        connection.executemany(f"insert into {table} values ({marks})", rows)  # noqa: S608
    return connection


def order(connection: sqlite3.Connection, sql: str) -> list[object] | None:
    """The first value of each row, in order; None: it is no query there."""
    try:
        return [row[0] for row in connection.execute(sql)]
    except sqlite3.OperationalError:
        return None


@pytest.mark.parametrize("deny", [("e.secret",), ("e.name",), ("d.place", "e.secret")])
def test_an_order_that_is_not_refused_is_the_one_that_was_asked_for(deny: tuple[str, ...]) -> None:
    before, after = database(), database(*deny)
    answered = 0
    for first, second, term in product(ITEMS, ITEMS, TERMS):
        sql = f"select e.id as first, {first}, {second} from e join d on d.id = e.id order by {term}"  # noqa: S608
        asked = order(before, sql)
        if asked is not None and answer(sql, *deny) is None:
            answered += 1
            assert order(after, sql) == asked, sql
    assert answered > 100
