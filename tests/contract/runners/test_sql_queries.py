"""The answering service: cells as they are stored, a status for every ending, and caps that say so."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import Cell, QueryStatus, RawText
from tests.sql_service import LIMITS, SqlService

if TYPE_CHECKING:
    from conftest import Launch, Serve

LONG = 1_500_000


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop with a view, a text longer than a million characters and text that is not UTF-8."""
    path = tmp_path_factory.mktemp("sql") / "database.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, email TEXT, age INT);
            INSERT INTO person VALUES (1, 'Ann', 'ann@x', 30), (2, 'Bob', 'bob@x', 40), (3, 'Cy', NULL, 30);
            CREATE TABLE pair (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
            INSERT INTO pair VALUES ('a', 1), ('b', 2);
            CREATE VIEW mail AS SELECT name, email FROM person;
            CREATE TABLE odd (t);
            INSERT INTO odd VALUES (CAST(x'66ff6f' AS TEXT));
            CREATE TABLE long (t);
            CREATE VIRTUAL TABLE searched USING fts5(words);
            """
        )
        connection.execute("INSERT INTO long VALUES (?)", ("x" * LONG,))
        connection.commit()
    return path


@pytest.fixture(scope="module")
def service(database: Path, serve_sql_once: Serve) -> SqlService:
    return serve_sql_once(database)


def test_opening_tells_the_version_and_the_digest_of_the_file(database: Path, launch: Launch) -> None:
    opened = launch("sql", "--database", str(database)).ask({"type": "open", "readable": None, "limits": LIMITS})
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    assert opened.head == {"type": "opened", "sqlite": sqlite3.sqlite_version, "sha256": digest}


def test_every_kind_of_cell_arrives_as_it_is(service: SqlService) -> None:
    answered = service.query(
        "SELECT NULL, 9223372036854775807, -9223372036854775808, 1.5, 9e999, -9e999, '', 'é\U0001f40c',"
        " 'a' || char(0) || 'b', x'', x'00ff', CAST(x'ff' AS TEXT)"
    )
    assert answered.rows == (
        (
            *(None, 2**63 - 1, -(2**63), 1.5, math.inf, -math.inf, "", "é\U0001f40c", "a\0b"),
            *(b"", b"\0\xff", RawText(b"\xff")),
        ),
    )
    assert service.query("SELECT t FROM odd").value == RawText(b"f\xffo")


def test_minus_zero_keeps_its_sign_and_one_is_no_float(service: SqlService) -> None:
    zero, one, real = service.query("SELECT -0.0, 1, 1.0").rows[0]
    assert math.copysign(1, zero) == -1  # type: ignore[arg-type]
    assert (type(one), type(real)) == (int, float)


CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
    st.binary(max_size=30),
)


def as_sql(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return f"x'{cell.hex()}'"
    if isinstance(cell, str):
        return "'" + cell.replace("'", "''") + "'"
    if isinstance(cell, float):
        return repr(cell) if "." in repr(cell) else f"{cell!r}".replace("e", ".0e")
    return "NULL" if cell is None else "(-9223372036854775807 - 1)" if cell == -(2**63) else str(cell)


@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_rows_come_back_in_their_order(service: SqlService, rows: list[tuple[Cell, Cell]]) -> None:
    values = ", ".join(f"({as_sql(left)}, {as_sql(right)})" for left, right in rows)
    answered = service.query(f"VALUES {values}")
    with closing(sqlite3.connect(":memory:")) as plain:
        assert list(answered.rows) == plain.execute(f"VALUES {values}").fetchall()


def test_columns_keep_their_names(service: SqlService) -> None:
    assert service.query('SELECT 1 AS "", 2 AS "a b\n`]", 3, 3, id AS "" FROM person LIMIT 1').columns == (
        *("", "a b\n`]", "3", "3", ""),
    )
    assert service.query("SELECT * FROM person LIMIT 0").columns == ("id", "name", "email", "age")


def test_names_too_long_for_a_frame_are_cut_alike(service: SqlService) -> None:
    snail = "\U0001f40c"  # twelve bytes as JSON
    assert service.query(f'SELECT 1 AS "{snail * 4000}"').columns == (snail * 4000,)
    wide = ", ".join(f'1 AS "{snail * 40}"' for _ in range(400))
    assert service.query(f"SELECT {wide}").columns == (snail * 9,) * 400
    short = service.query(f'SELECT 1 AS a, 2 AS "{snail * 9000}", 3 AS "{"x" * 9000}"')
    assert short.columns == ("a", snail * 1365, "x" * 9000)


ENDINGS = [
    ("SELECT name FROM person WHERE city = 'Oslo'", "error", "no such column: city"),
    ("SELEC 1", "error", 'near "SELEC": syntax error'),
    ("SELECT 1; SELECT 2", "error", "only execute one statement"),
    ("SELECT 1;;", "error", "only execute one statement"),
    ("SELECT 1; -- done", "ok", ""),
    ("", "error", "gives no rows"),
    ("-- nothing", "error", "gives no rows"),
    ("SELECT 'a\0b'", "error", "null character"),
    (b"SELECT '\xff'", "error", "not UTF-8"),
    ("SELECT ?", "error", "too many SQL variables"),
    ("SELECT nope(1)", "error", "no such function: nope"),
    ("SELECT 1 REGEXP 1", "error", "no such function: REGEXP"),
    (f"SELECT {'1,' * 9_996}1", "error", "too many columns in result set"),
    (f"SELECT {'1,' * 9_996}10", "refused", "20001 characters is over the limit of 20000"),
    (f"SELECT {'1,' * 500}1", "error", "too many columns in result set"),
    (f"SELECT {'1+' * 300}1", "error", "Expression tree is too large"),
    (" UNION ALL ".join(["SELECT 1"] * 51), "error", "too many terms in compound SELECT"),
    ("SELECT 1 LIKE '" + "%a" * 251 + "'", "error", "pattern too complex"),
    (f"SELECT max({'1,' * 64}1)", "error", "too many arguments"),
    ("SELECT zeroblob(1600000)", "memory", "too big"),
    ("SELECT length(hex(zeroblob(900000)))", "memory", "too big"),
    ("SELECT * FROM sqlite_master", "refused", "reading sqlite_master.type is not allowed"),
    ("SELECT count(*) FROM sqlite_schema", "refused", "reading sqlite_schema is not allowed"),
    ("SELECT * FROM pragma_table_info('person')", "refused", "a virtual table is not allowed"),
    ("SELECT count(*) FROM dbstat", "refused", "a virtual table is not allowed"),
    ("SELECT * FROM searched", "refused", "a virtual table is not allowed"),
    ("PRAGMA query_only = 0", "refused", "PRAGMA query_only is not allowed"),
    ("DELETE FROM person", "refused", "DELETE person is not allowed"),
    ("INSERT INTO person DEFAULT VALUES RETURNING *", "refused", "INSERT person is not allowed"),
    ("UPDATE person SET age = 1", "refused", "UPDATE person is not allowed"),
    ("CREATE TEMP TABLE person AS SELECT 1", "refused", "is not allowed"),
    ("SELECT load_extension('x')", "refused", "function load_extension is not allowed"),
    ("SELECT sqlite_compileoption_get(1)", "refused", "function sqlite_compileoption_get is not allowed"),
]


@pytest.mark.parametrize(("sql", "status", "message"), ENDINGS, ids=lambda value: str(value)[:40])
def test_every_ending_has_its_status_and_one_line(
    service: SqlService, sql: str | bytes, status: str, message: str
) -> None:
    answered = service.query(sql)
    assert (answered.status, message in answered.message) == (QueryStatus(status), True), answered
    assert answered.message.isprintable()
    assert "database.sqlite" not in answered.message


def test_an_explanation_is_a_query_like_any_other(service: SqlService) -> None:
    assert service.query("EXPLAIN SELECT * FROM person").columns[:2] == ("addr", "opcode")
    assert "SCAN person" in str(service.query("EXPLAIN QUERY PLAN SELECT * FROM person").rows)
    assert service.query("EXPLAIN DELETE FROM person").status is QueryStatus.REFUSED


def test_what_benchmarks_use_works(service: SqlService) -> None:
    assert service.query('SELECT count(*) FROM person WHERE name = "Ann"').value == 1  # a string in double quotes
    assert service.query("SELECT value FROM json_each('[7]')").value == 7
    assert service.query("SELECT count(*) FROM JSON_TREE('[1, [2]]')").value == 4
    assert service.query("SELECT strftime('%Y', '2024-05-01', 'localtime')").value == "2024"
    assert service.query(SERIES.format(5)).rows == ((1,), (2,), (3,), (4,), (5,))
    assert service.query("WITH dbs AS (SELECT 1) SELECT count(*) FROM dbs").value == 1
    assert service.query("SELECT sum(age) OVER (ORDER BY id) FROM person").rows == ((30,), (70,), (100,))
    assert service.query("SELECT round(sqrt(2), 2) || iif(1, 'y', 'n') || soundex('Ann')").value == "1.41yA500"


def test_random_numbers_differ_from_query_to_query(service: SqlService) -> None:
    assert len({service.query("SELECT random()").value for _ in range(4)}) == 4


def test_rows_without_an_order_can_be_had_the_other_way_round(service: SqlService) -> None:
    forth = service.query("SELECT id FROM person").rows
    assert service.query("SELECT id FROM person", reverse=True).rows == forth[::-1]
    assert service.query("SELECT id FROM person ORDER BY id", reverse=True).rows == forth
    assert service.query("SELECT id FROM person").rows == forth  # the next child knows nothing of it


def test_the_longest_stored_text_is_granted_and_no_longer_one(service: SqlService) -> None:
    assert service.query("SELECT t FROM long").value == "x" * LONG
    assert service.query("SELECT t || t FROM long").status is QueryStatus.MEMORY


def test_a_given_length_holds(database: Path, serve_sql: Serve) -> None:
    service = serve_sql(database, length_bytes=1_000_000)
    assert service.query("SELECT t FROM long").status is QueryStatus.MEMORY
    assert service.query("SELECT length(zeroblob(999999))").value == 999_999


SERIES = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {}) SELECT n FROM c"


def test_exactly_as_many_rows_as_are_kept_are_told_from_more(service: SqlService) -> None:
    whole, cut = service.query(SERIES.format(1000)), service.query(SERIES.format(1001))
    assert (len(whole.rows), whole.truncated) == (1000, False)
    assert (len(cut.rows), cut.truncated) == (1000, True)
    endless = service.query(SERIES.replace(" WHERE n < {}", ""))
    assert (endless.status, endless.rows, endless.truncated) == (QueryStatus.OK, whole.rows, True)


def test_exactly_as_many_bytes_as_are_kept_are_told_from_more(database: Path, serve_sql: Serve) -> None:
    service = serve_sql(database, max_bytes=2010)
    row = "SELECT zeroblob({})"
    assert not service.query(row.format(2005)).truncated  # a tag and four bytes of length come with it
    alone = service.query(row.format(2006))
    assert (alone.status, alone.rows, alone.truncated) == (QueryStatus.OK, (), True)
    two = service.query("SELECT zeroblob(1000) UNION ALL SELECT zeroblob(1000)")
    assert (len(two.rows), two.truncated) == (2, False)
    three = service.query("SELECT zeroblob(1000) UNION ALL SELECT zeroblob(1000) UNION ALL SELECT NULL")
    assert (len(three.rows), three.truncated) == (2, True)


def test_results_come_in_the_order_of_the_queries(service: SqlService) -> None:
    for number in range(60):
        service.send(f"SELECT {number}" if number % 3 else "SELECT nope", identity=f"q{number}")
    taken = [service.take() for _ in range(60)]
    assert [one.id for one in taken] == [f"q{number}" for number in range(60)]
    assert all(one.value == n if n % 3 else one.status is QueryStatus.ERROR for n, one in enumerate(taken))
    assert all(0 < one.wall_seconds < 60 for one in taken)


READABLE = {"Person": ["ID", "name"], "mail": ["name", "email"], "pair": ["v"]}


@pytest.fixture(scope="module")
def restricted(database: Path, serve_sql_once: Serve) -> SqlService:
    return serve_sql_once(database, readable=READABLE)


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
        ("SELECT id, NAME, rowid FROM PERSON", None),
        ("SELECT count(*) FROM person", None),
        ("SELECT * FROM person", "reading person.email"),
        ("SELECT 1 FROM person WHERE email LIKE 'a%'", "reading person.email"),
        ("SELECT id FROM person ORDER BY email", "reading person.email"),
        ("SELECT name FROM person NATURAL JOIN (SELECT age FROM person)", "reading person.age"),
        ("SELECT count(*) FROM person GROUP BY age", "reading person.age"),
        ("SELECT name FROM mail", "reading person.email"),  # its text names what lies below
        ("SELECT v FROM pair", None),
        ("SELECT k FROM pair", "reading pair.k"),
        ("SELECT count(*) FROM odd", "reading odd"),
        ("SELECT t FROM odd", "reading odd.t"),
        ("WITH odd AS (SELECT 1 AS t) SELECT t FROM odd", None),
        ("WITH other AS (SELECT 1) SELECT count(*) FROM other", None),
        ("SELECT key FROM json_each('[1]')", None),
    ],
)
def test_what_may_not_be_read_is_named(restricted: SqlService, sql: str, refused: str | None) -> None:
    answered = restricted.query(sql)
    assert answered.status is (QueryStatus.REFUSED if refused else QueryStatus.OK), answered
    assert answered.message == (f"{refused} is not allowed" if refused else "")


def test_a_file_that_is_no_database_fails_its_queries_and_not_the_service(tmp_path: Path, serve_sql: Serve) -> None:
    (tmp_path / "x").write_bytes(b"no database" * 1000)
    service = serve_sql(tmp_path / "x")
    for _ in range(2):
        answered = service.query("SELECT 1")
        assert (answered.status, answered.message) == (QueryStatus.ERROR, "file is not a database")


@pytest.mark.parametrize("where", ["header", "schema", "rows"])
def test_a_damaged_database_is_an_error(tmp_path: Path, serve_sql: Serve, where: str) -> None:
    path = tmp_path / "x"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 1000)
        connection.commit()
    content = bytearray(path.read_bytes())
    start = {"header": 16, "schema": 100, "rows": 4096 + 8}[where]
    content[start : start + 80] = b"\xee" * 80
    path.write_bytes(content)
    service = serve_sql(path)
    assert service.query("SELECT sum(length(a)) FROM t").status is QueryStatus.ERROR
    assert service.query("SELECT sum(length(a)) FROM t").status is QueryStatus.ERROR
    assert service.digest() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"query_seconds": 0}, {"query_seconds": None}, {"max_rows": 1.5}, {"max_rows": True}, {"heap_bytes": -1},
        {"max_bytes": "1"}, {"length_bytes": 0}, {"surprise": 1},
    ],
)  # fmt: skip
def test_limits_that_are_none_end_the_runner(database: Path, launch: Launch, change: dict[str, object]) -> None:
    runner = launch("sql", "--database", str(database))
    runner.send({"type": "open", "readable": None, "limits": {**LIMITS, **change}})
    assert runner.receive() is None
    assert runner.end()[0] == 76


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "open", "readable": None, "limits": dict(LIMITS)},
        {"type": "query", "id": 1},
        {"type": "query", "reverse": False},
        {"type": "describe", "examples": -1, "values": 1},
        {"type": "describe", "examples": 1, "values": True},
        {"type": "finish"},
    ],
)
def test_a_frame_that_does_not_belong_here_ends_the_runner(
    database: Path, launch: Launch, frame: dict[str, object]
) -> None:
    runner = launch("sql", "--database", str(database))
    runner.ask({"type": "open", "readable": None, "limits": LIMITS})
    runner.send(frame)
    assert runner.receive() is None
    assert runner.end()[0] == 76


@pytest.mark.parametrize("readable", [[], {"t": "a"}, {"t": [1]}, 1])
def test_a_restriction_of_another_form_ends_the_runner(database: Path, launch: Launch, readable: object) -> None:
    runner = launch("sql", "--database", str(database))
    runner.send({"type": "open", "readable": readable, "limits": LIMITS})
    assert runner.receive() is None
    assert runner.end()[0] == 76


def test_a_database_that_is_not_there_ends_the_runner(tmp_path: Path, launch: Launch) -> None:
    runner = launch("sql", "--database", str(tmp_path / "none"))
    runner.send({"type": "open", "readable": None, "limits": LIMITS})
    assert runner.receive() is None
    assert runner.end()[0] == 74
