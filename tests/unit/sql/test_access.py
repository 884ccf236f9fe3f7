"""A query is refused exactly if it asks for what is hidden, and the refusal names the column and the rule."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.data_access import Access, DataRule, access_of
from orchestrator.domain.sql import Column, Schema, Table
from orchestrator.sql.access import refusal
from orchestrator.sql.gate import check

PEOPLE = {
    "person": ("id", "name", "email", "city_id"),
    "city": ("id", "name", "email"),
    "secret": ("key", "person_id"),
    "wide name": ("a b", "email"),
}


def schema_of(tables: dict[str, tuple[str, ...]], *, key: str = "") -> Schema:
    """Tables of text columns; a column named `key` is the integer primary key of its table."""
    return Schema(
        tables=tuple(
            Table(
                name=name,
                kind="table",
                sql="",
                columns=tuple(
                    Column(name=c, type="INTEGER" if c == key else "TEXT", primary_key=int(c == key)) for c in columns
                ),
            )
            for name, columns in tables.items()
        )
    )


def access_for(schema: Schema, *deny: str, redact: tuple[str, ...] = ()) -> Access:
    return access_of(2, DataRule(databases=("*",), deny=deny, redact=redact), schema)


def answer(sql: str, *, key: str = "") -> str | None:
    """What is said of a query on people whose `person.email`, `secret` and `wide name.a b` are hidden."""
    schema = schema_of(PEOPLE, key=key)
    hidden = access_for(schema, "person.email", "secret", redact=("wide name.a b", *([f"person.{key}"] if key else [])))
    return refusal(check(sql), schema, hidden)


EMAIL = "column person.email may not be read: data rule 2, deny person.email"


@pytest.mark.parametrize(
    "sql",
    [
        "select email from person",
        "select EMAIL from Person",
        'select "email" from person',
        "select [email], `name` from main.person",
        "select p.email from person as p",
        "select main.person.email from person",
        "select name from person where email like '%@x.com'",
        'select name from person where "email" <> name',
        "select count(distinct p.email) from person p join city c on c.id = p.city_id",
        "select p.name from person p join city c on p.email = c.email",
        "select name from person order by email",
        "select name from person group by 1 having max(email) > 'a'",
        "select sum(id) over (partition by email) from person",
        "select sum(id) over w from person window w as (order by email)",
        "select name from city where exists (select 1 from person where person.email = city.email)",
        "select name from city c where 'x' in (select email from person)",
        "select (select max(email) from person) from city",
        "select name from person union select email from person",
        "select x.e from (select email as e from person) as x",
        'select x."email" from (select * from person) as x',
        "with x as (select * from person) select email from x",
        "select name as email from person where email = 'x'",
        "select upper(name) as email from person group by email",
        "select name as email from person order by lower(email)",
        "with recursive x as (select * from person union all select * from x) select email from x",
        "select * from person union select * from person order by email",
        "select name from person p where id = (select min(id) from city where city.id = p.id and p.email = 'x')",
        "select * from person join city using (id, email)",
        "select * from city join person using (email)",
        "select * from (city join person using (email))",
        "select * from person natural join city",
        "select city.id from city natural left join (select * from person)",
        "select value from person, json_each(email)",
        "select case when email is null then 1 else 2 end, cast(email as int) from person",
        "select name from person limit (select count(email) from person)",
        "with city as (select 1 as one) select email from person, city",
        "select name as email from person order by -email",
        "select name as email from person order by email || ''",
        "select name as email from person order by (email || '') collate nocase",
        "select name as email from person order by email is null",
        "select name as email from person order by person.email collate nocase",
        "select name as email from person order by rank() over (order by email)",
        "select name as email from person order by (select 1 from city order by person.email)",
        "select name as email from person group by email collate nocase",
    ],
)
def test_a_hidden_column_is_refused_wherever_it_is_asked_for(sql: str) -> None:
    assert answer(sql) == EMAIL


@pytest.mark.parametrize(
    "sql",
    [
        "select * from person",
        "select p.*, city.* from person as p, city",
        "select count(*) from person",
        "select name, id from person",
        "select email from city",
        "select city.email from city join person on person.city_id = city.id",
        "select email from person join city on person.city_id = city.id",
        'select "email" from city, person',
        "select 'email' from person",
        'select name from person where name = "e-mail"',
        "select name as email from person order by email",
        "select upper(name) as e_mail from person group by e_mail having e_mail > 'a'",
        "select email from (select name as email from person)",
        "with person as (select 'x' as email) select email from person",
        "with secret(key) as (select 1) select key, secret.key from secret",
        "with person(email) as (values (1)) select p.email from person p",
        "with recursive x(email) as (select 1 union select email + 1 from x where email < 5) select email from x",
        "with b as (select email from a), a as (select email from city) select * from b",
        "select name from person where exists (select email from city where city.id = person.city_id)",
        "with unused as (select email from person) select 1 from city",
        "select name from city where exists (select 1 from person where city_id = city.id and city.email = 'x')",
        "select * from person join city using (id)",
        "select * from person join city using (name, id)",
        "select * from city as a natural join city as b",
        "select x.email from city as x join person as y on x.id = y.id order by x.email",
        "select other from person",
        "select q.email from person",
        "select email from nowhere",
        "select email from (select count(*) as email from person) natural join city",
        'select email from "wide name"',
        "select key, value from json_each('[1]')",
        "select rowid from person",
        "select 1",
        "select name as email from person order by email collate nocase desc",
        "select name as email from person order by (email)",
        "select name as email from person order by ((email) collate nocase) collate binary nulls last, id",
        'select name as "e mail" from person order by -"e mail", "e mail" || name',
        "select name as e from person order by upper(e) collate nocase",
        "select name as email from person union select name from city order by (email) collate nocase",
    ],
)
def test_what_is_visible_is_never_refused_for_its_name(sql: str) -> None:
    assert answer(sql) is None


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select count(*) from secret", "table secret may not be read: data rule 2, deny secret"),
        ("select 1 from person join SECRET s on 1", "table secret may not be read: data rule 2, deny secret"),
        ("select id in secret from person", "table secret may not be read: data rule 2, deny secret"),
        ("select * from (select * from main.secret)", "table secret may not be read: data rule 2, deny secret"),
        (
            'select "a b" from "wide name"',
            "column wide name.a b may not be read: data rule 2, redact wide name.a b",
        ),
        (
            "select w.[A B] from [Wide Name] w",
            "column wide name.a b may not be read: data rule 2, redact wide name.a b",
        ),
    ],
)
def test_the_refusal_names_what_is_hidden_and_the_rule(sql: str, reason: str) -> None:
    assert answer(sql) == reason


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select rowid from person", True),
        ("select p._rowid_ from person p, city", True),
        ("select name from person order by oid", True),
        ("select c.rowid from person p, city c", False),
        ("select rowid from city", False),
        ("select rowid from (select name as rowid from person)", False),
    ],
)
def test_a_rowid_that_is_a_hidden_key_is_refused(sql: str, is_refused: bool) -> None:
    reason = "column person.id may not be read: data rule 2, redact person.id"
    assert answer(sql, key="id") == (reason if is_refused else None)


def test_nothing_is_refused_where_nothing_is_hidden() -> None:
    schema = schema_of(PEOPLE)
    assert refusal(check("select email, key from person, secret"), schema, access_for(schema)) is None


def test_the_name_of_a_collation_is_no_column() -> None:
    schema = schema_of({"t": ("a", "nocase")})
    hidden = access_for(schema, "t.nocase")
    for sql in ("select a collate nocase from t order by a collate nocase", "select a in ('x') collate nocase from t"):
        assert refusal(check(sql), schema, hidden) is None
    assert refusal(check("select a collate nocase, nocase from t"), schema, hidden) is not None


def test_nested_recursive_expressions_are_read_once_each() -> None:
    sql = "select 1 as a"
    for n in range(20):
        sql = f"with x{n} as ({sql} union all select a from x{n}) select * from x{n}"  # noqa: S608
    assert answer(sql) is None


NAMES = ("a", "b", "c")
TABLES = {"t": ("a", "b", "c"), "u": ("b", "c"), "v": ("c",)}
ORDERS = st.sampled_from(["{}", "({})", "{} collate nocase desc", "({}) collate nocase", "-{}", "+{}", "{} || ''"])
COLUMNS = sorted((table, column) for table, columns in TABLES.items() for column in columns)


@st.composite
def queries(draw: st.DrawFn, depth: int = 2, outer: tuple[str, ...] = ()) -> str:
    """Queries over `TABLES` with aliases, joins, subqueries and common table expressions; many are valid."""
    ctes = []
    known = sorted(TABLES)
    if depth and draw(st.booleans()):
        name = draw(st.sampled_from(["t", "w"]))
        columns = draw(st.sampled_from(["", "", "(a)"]))
        ctes.append(f"{name}{columns} as ({draw(queries(depth=depth - 1))})")
        known.append(name)
    sources, aliases = [], []
    for n in range(draw(st.sampled_from([1, 1, 2]))):
        alias = draw(st.sampled_from([f"x{n}", "t"]))
        inner = f"({draw(queries(depth=depth - 1))})" if depth and draw(st.integers(0, 3)) == 0 else ""
        sources.append(f"{inner or draw(st.sampled_from(known))} as {alias}")
        aliases.append(alias)
    column = st.builds(
        "{}{}".format,
        st.sampled_from(["", "", *(f"{alias}." for alias in (*aliases, *outer))]),
        st.sampled_from(NAMES),
    )
    items = [draw(st.sampled_from(["{}", "{}", "{} as a", "max({})", "*", "x0.*"])).format(draw(column))]
    clauses = ""
    using = f" using ({draw(st.sampled_from(NAMES))})" if len(sources) == 2 and draw(st.booleans()) else ""
    if depth and draw(st.booleans()):
        inside = draw(queries(depth=depth - 1, outer=(*aliases, *outer)))
        clauses += draw(st.sampled_from([" where exists ({})", " where 1 in ({})"])).format(inside)
    elif draw(st.booleans()):
        clauses += f" where {draw(column)} is not null"
    if draw(st.integers(0, 3)) == 0:
        clauses += f" order by {draw(ORDERS).format(draw(column))}"
    head = f"with {', '.join(ctes)} " if ctes else ""
    return f"{head}select {', '.join(items)} from {' join '.join(sources)}{using}{clauses}"  # noqa: S608


Reads = frozenset[tuple[str, str]]


def columns_read(sql: str, hidden: Reads) -> Reads | str:
    """The columns that SQLite finds behind a query's names, without the hidden ones; or why it cannot."""
    connection = sqlite3.connect(":memory:")
    for table, columns in TABLES.items():
        if left := [column for column in columns if (table, column) not in hidden]:
            connection.execute(f"create table {table} ({', '.join(left)})")
    read = set()

    def authorize(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and (table, column) in COLUMNS:
            read.add((str(table), str(column)))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)
    try:
        connection.execute(sql)
    except sqlite3.OperationalError as error:
        return str(error)
    return frozenset(read)


def said(sql: str, hidden: Reads) -> str | None:
    schema = schema_of(TABLES)
    return refusal(check(sql), schema, access_for(schema, *(f"{table}.{column}" for table, column in hidden)))


HIDDEN = st.frozensets(st.sampled_from(COLUMNS), max_size=3)


@settings(max_examples=120)
@given(queries(), HIDDEN)
def test_a_valid_query_is_refused_if_hiding_changes_it_and_only_if_it_reads_what_is_hidden(
    sql: str, hidden: Reads
) -> None:
    before, after = columns_read(sql, frozenset()), columns_read(sql, hidden)
    if isinstance(before, str):
        return
    reason = said(sql, hidden)
    if reason is None:
        assert after == before - hidden
    else:
        # SQLite does not report the columns of USING, nor a table of which no column is read.
        assert before & hidden or " using " in sql or reason.startswith("table ")
        assert any(f"{table}.{column}" in reason or f"table {table} " in reason for table, column in hidden)


@settings(max_examples=80)
@given(queries(depth=0), HIDDEN)
def test_a_query_that_runs_without_what_is_hidden_is_not_refused(sql: str, hidden: Reads) -> None:
    if not isinstance(columns_read(sql, hidden), str):
        assert said(sql, hidden) is None
