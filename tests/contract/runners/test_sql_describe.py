# ruff: noqa: S608 - the SQL of these tests is their own
"""Descriptions: what a schema says arrives, whatever it says, in bounded time, memory and bytes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Serve

Made = Callable[[str | Callable[[sqlite3.Connection], object]], Path]
HOSTILE_NAME = "a\"b'c`d]e\nf--g;h\U0001f40c"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A database file that a script or a function fills."""

    def make(fill: str | Callable[[sqlite3.Connection], object]) -> Path:
        path = tmp_path / "database.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            if isinstance(fill, str):
                connection.executescript(fill)
            else:
                fill(connection)
            connection.commit()
        return path

    return make


def tables(described: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {table["name"]: table for table in described["tables"]}


def test_a_table_is_described_whole(made: Made, serve_sql: Serve) -> None:
    sql = (
        "CREATE TABLE city (\n id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'x''y', -- who knows\n"
        " land INT REFERENCES land, size REAL,\n len INT GENERATED ALWAYS AS (length(name)) STORED)"
    )
    path = made(
        f"CREATE TABLE land (code INTEGER PRIMARY KEY); {sql};"
        "INSERT INTO land VALUES (1);"
        "INSERT INTO city VALUES (1, 'Oslo', 1, 2.5), (2, 'Rome', NULL, NULL), (3, 'Rome', 1, 9e999)"
    )
    described = serve_sql(path).describe()
    column = {"not_null": False, "default": None, "primary_key": 0, "generated": False}
    assert tables(described)["city"] == {
        "name": "city",
        "kind": "table",
        "sql": sql,
        "rows": 3,
        "columns": [
            {**column, "name": "id", "type": "INTEGER", "primary_key": 1, "examples": ["1", "2", "3"]},
            {
                **column, "name": "name", "type": "VARCHAR(20)", "not_null": True, "default": "'x''y'",
                "examples": ["'Rome'", "'Oslo'"],
            },
            {**column, "name": "land", "type": "INT", "examples": ["1"]},
            {**column, "name": "size", "type": "REAL", "examples": ["2.5", "9e999"]},
            {**column, "name": "len", "type": "INT", "generated": True, "examples": ["4"]},
        ],
        "foreign_keys": [{"columns": ["land"], "table": "land", "references": []}],
    }  # fmt: skip
    assert described["values"] == [["city", "name", ["Oslo", "Rome"]]]


def test_foreign_keys_come_in_the_order_of_their_declaration(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE t (a, b, c REFERENCES gone (x), FOREIGN KEY (a, b) REFERENCES other (p, q),"
        " FOREIGN KEY (b) REFERENCES t)"
    )
    (table,) = serve_sql(path).describe()["tables"]
    assert table["foreign_keys"] == [
        {"columns": ["c"], "table": "gone", "references": ["x"]},
        {"columns": ["a", "b"], "table": "other", "references": ["p", "q"]},
        {"columns": ["b"], "table": "t", "references": []},
    ]


def test_examples_are_literals_of_the_most_frequent_values(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE t (a); INSERT INTO t VALUES (NULL), (NULL), (NULL), (1), (1.0), (1), (1.0), (1.0), ('1'),"
        " (x'31'), " + ", ".join([f"('it''s {'x' * 80}')"] * 4 + [f"(x'{'ab' * 50}')", "('')"])
    )
    (table,) = serve_sql(path).describe(examples=20)["tables"]
    literals = table["columns"][0]["examples"]
    assert literals == ["'it''s " + "x" * 55 + "'", "1.0", "1", "'1'", "X'31'", f"X'{'AB' * 30}'", "''"]
    with closing(sqlite3.connect(path)) as connection:
        assert all(len(connection.execute(f"SELECT {literal}").fetchall()) == 1 for literal in literals)


def test_values_are_short_distinct_texts_of_any_column_that_has_text(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE t (a INT, b BLOB, c TEXT, d TEXT);"
        f"INSERT INTO t VALUES ('one', 'b', 5, '{'x' * 81}'), (1, x'00', 6, '{'x' * 80}'), ('one', 'B', '', '')"
    )
    described = serve_sql(path).describe()
    assert described["values"] == [
        ["t", "a", ["one"]],
        ["t", "b", ["b", "B"]],
        ["t", "c", ["5", "6"]],
        ["t", "d", ["x" * 80]],
    ]
    assert serve_sql(path).describe(values=1)["values"][1] == ["t", "b", ["b"]]
    nothing = serve_sql(path).describe(examples=0, values=0)
    assert nothing["values"] == []
    assert nothing["tables"][0]["columns"][0]["examples"] == []


def test_names_that_mean_harm_are_names(made: Made, serve_sql: Serve) -> None:
    quoted = '"' + HOSTILE_NAME.replace('"', '""') + '"'
    path = made(
        f"CREATE TABLE {quoted} ({quoted} TEXT, [select] INT, \"\" TEXT); INSERT INTO {quoted} VALUES ('v', 1, 'w')"
    )
    described = serve_sql(path).describe()
    (table,) = described["tables"]
    assert (table["name"], table["rows"]) == (HOSTILE_NAME, 1)
    assert [(it["name"], it["examples"]) for it in table["columns"]] == [
        (HOSTILE_NAME, ["'v'"]),
        ("select", ["1"]),
        ("", ["'w'"]),
    ]
    assert described["values"] == [[HOSTILE_NAME, HOSTILE_NAME, ["v"]], [HOSTILE_NAME, "", ["w"]]]


def test_views_are_described_and_never_run(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE t (a INT); INSERT INTO t VALUES (1);"
        "CREATE VIEW good AS SELECT a AS b FROM t;"
        "CREATE VIEW broken AS SELECT nope FROM gone;"
        "CREATE VIEW round AS SELECT * FROM round;"
        "CREATE VIEW bomb AS SELECT printf('%.*c', 900000000, 'x') AS c;"
        "CREATE VIEW endless AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    )
    found = tables(serve_sql(path).describe())
    assert {name: table["kind"] for name, table in found.items()} == {
        **dict.fromkeys(("good", "broken", "round", "bomb", "endless"), "view"),
        "t": "table",
    }
    assert [it["name"] for it in found["good"]["columns"]] == ["b"]
    assert [it["name"] for it in found["bomb"]["columns"]] == ["c"]
    assert found["broken"]["columns"] == found["round"]["columns"] == []
    assert {table["rows"] for table in found.values() if table["kind"] == "view"} == {None}


def test_a_generated_column_is_computed_for_nobody(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE t (a INT); INSERT INTO t VALUES (1);"
        "ALTER TABLE t ADD COLUMN b GENERATED ALWAYS AS (printf('%.*c', 900000000, 'x')) VIRTUAL"
    )
    (table,) = serve_sql(path).describe()["tables"]
    assert [(it["name"], it["generated"], it["examples"]) for it in table["columns"]] == [
        ("a", False, ["1"]),
        ("b", True, []),
    ]


def test_unusual_tables_are_tables(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO w VALUES ('b', x'00'), ('a', 1);"
        "CREATE TABLE empty (a INT, b TEXT);"
        "CREATE TABLE s (a INT, b TEXT) STRICT;"
        "CREATE TABLE seq (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO seq DEFAULT VALUES;"
        "CREATE VIRTUAL TABLE searched USING fts5(words); INSERT INTO searched VALUES ('hello');"
        "CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1)"
    )
    found = tables(serve_sql(path).describe())
    assert "sqlite_sequence" not in found
    assert found["w"]["columns"][1]["examples"] == ["1", "X'00'"]
    assert (found["empty"]["rows"], found["empty"]["columns"][0]["examples"]) == (0, [])
    assert (found["searched"]["kind"], found["searched"]["rows"]) == ("virtual", None)
    assert [it["name"] for it in found["searched"]["columns"]] == ["words"]
    assert found["boxes"]["kind"] == "virtual"


def test_a_virtual_table_of_a_module_that_is_not_there_has_no_columns(made: Made, serve_sql: Serve) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.executescript(
            "PRAGMA writable_schema = ON;"
            "INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING gone(a)')"
        )

    (table,) = serve_sql(made(fill)).describe()["tables"]
    assert (table["kind"], table["columns"], table["rows"]) == ("virtual", [], None)


def test_more_than_a_thousand_columns_are_described(made: Made, serve_sql: Serve) -> None:
    columns = ", ".join(f"c{number} INT" for number in range(1999))
    values = ", ".join(map(str, range(1999)))
    path = made(f"CREATE TABLE t ({columns}); INSERT INTO t VALUES ({values}); CREATE INDEX i ON t (c7)")
    service = serve_sql(path)
    (table,) = service.describe()["tables"]
    assert [it["examples"] for it in table["columns"]] == [[str(number)] for number in range(1999)]
    assert service.query("SELECT c7, c1998 FROM t").rows == ((7, 1998),)
    assert "too many columns" in service.query("SELECT * FROM t").message


def test_text_that_is_not_utf8_breaks_nothing(made: Made, serve_sql: Serve) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.executescript(
            "CREATE TABLE t (a, b DEFAULT 'zzzz'); INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), 'ok')"
        )
        connection.execute("CREATE TABLE yyyy (xxxx)")
        connection.execute("CREATE TABLE last (a)")

    path = made(fill)
    content = path.read_bytes()
    for name in (b"zzzz", b"yyyy", b"xxxx"):
        assert name in content
        content = content.replace(name, b"\xff" * 4)
    path.write_bytes(content)
    described = serve_sql(path).describe()
    found = tables(described)
    assert set(found) == {"t", "last"}  # a name that is not UTF-8 cannot be written in a query
    assert found["t"]["columns"][0]["examples"] == ["'\ufffdA'"]
    assert found["t"]["columns"][1]["default"] == "'" + "\ufffd" * 4 + "'"
    assert described["values"] == [["t", "b", ["ok"]]]


def test_what_may_not_be_read_is_not_described(made: Made, serve_sql: Serve) -> None:
    path = made(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, email TEXT DEFAULT 'secret@x' REFERENCES box (a));"
        "CREATE TABLE other (a TEXT); INSERT INTO person VALUES (1, 'Ann', 'ann@x');"
        "INSERT INTO other VALUES ('secret')"
    )
    described = serve_sql(path, readable={"PERSON": ["id", "NAME"]}).describe()
    (table,) = described["tables"]
    assert [it["name"] for it in table["columns"]] == ["id", "name"]
    assert (table["sql"], table["foreign_keys"]) == ("", [])
    assert described["values"] == [["person", "name", ["Ann"]]]
    assert "@" not in json.dumps(described)


def filled(rows: int, columns: str = "a INTEGER PRIMARY KEY, b TEXT", select: str = "n, 'text ' || (n % 7)") -> str:
    return (
        f"CREATE TABLE t ({columns}); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {rows})"
        f" INSERT INTO t SELECT {select} FROM c"
    )


def test_a_million_rows_are_counted_and_sampled(made: Made, serve_sql: Serve) -> None:
    described = serve_sql(made(filled(1_000_000))).describe()
    (table,) = described["tables"]
    assert table["rows"] == 1_000_000
    assert table["columns"][0]["examples"] == ["1", "2", "3"]
    assert sorted(described["values"][0][2]) == [f"text {number}" for number in range(7)]


LOOK = """
import json, sqlite3
from sampling import Allowance, look_at, texts_of
from schema import read_tables
raw = sqlite3.connect(DATABASE)
raw.text_factory = bytearray
(table,) = read_tables(raw, None)
found = []
for operations, statement_operations in ((1_000_000, 400_000), (1_000_000, 20_000), (20_000, 20_000)):
    allowance = Allowance(raw, operations=operations, statement_operations=statement_operations, cpu_seconds=60)
    it = look_at(raw, table, allowance, examples=1, all_columns=2)
    texts = texts_of(raw, "t", "b", allowance, most=100_000)
    found.append([it.rows, it.examples, len(texts), allowance.is_over])
print(json.dumps(found))
"""


def test_what_takes_too_long_is_given_up_alike_every_time(made: Made, run_in_runner: Callable[[str], Any]) -> None:
    path = made(filled(20_000, select="n, 'text ' || n"))
    whole, statement, over = run_in_runner(f"DATABASE = {str(path)!r}\n{LOOK}")
    assert whole == [20_000, {"a": ["1"], "b": ["'text 1'"]}, 20_000, False]
    assert statement[0] is None
    assert statement[1] == whole[1]
    assert 0 < statement[2] < 20_000
    assert not statement[3]
    assert (over[0], over[3]) == (None, True)
    assert run_in_runner(f"DATABASE = {str(path)!r}\n{LOOK}") == [whole, statement, over]


def test_a_description_stays_below_its_bytes(made: Made, serve_sql: Serve) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        wide = ", ".join(f'"{"n" * 900}{number}" TEXT' for number in range(1000))
        connection.execute(f"CREATE TABLE wide ({wide})")
        connection.execute(f"INSERT INTO wide VALUES ({', '.join(['?'] * 1000)})", [chr(1) * 60] * 1000)
        comment = "\x01" * 90_000
        for number in range(60):
            connection.execute(f"CREATE TABLE t{number} (a TEXT /*{comment}*/)")
            rows = [(f"{row:05d}" + chr(2) * 70,) for row in range(500)]
            connection.executemany(f"INSERT INTO t{number} VALUES (?)", rows)

    described = serve_sql(made(fill)).describe(examples=5, values=1000)  # `describe` checks the size
    found = tables(described)
    assert len(found) == 61
    assert [found[f"t{number}"]["sql"] for number in (58, 59)] == ["", ""]
    assert all(len(found[f"t{number}"]["columns"]) == 1 for number in range(60))
    assert {name for name, _, _ in described["values"]} >= {f"t{number}" for number in range(60)}


def test_a_description_ends_in_time_and_the_service_goes_on(made: Made, serve_sql: Serve) -> None:
    script = ";".join(filled(60_000, f"a{n} TEXT, b{n} TEXT", "hex(n) || n, n || hex(n)").replace(" t ", f" t{n} ")
                      for n in range(6))  # fmt: skip
    service = serve_sql(made(script), query_seconds=0.4)
    described = service.describe(values=1_000_000)
    assert len(described["tables"]) == 6
    assert service.query("SELECT count(*) FROM t5").value == 60_000


OWN_TIME = """
import json
from pathlib import Path
import answering
from child import Task
from connection import Connection, uri_of
from describing import describe
from limits import Limits

limits = Limits.parse({{**LIMITS, "query_seconds": 1e-6}})
path = Path({path!r})
"""


def test_a_schema_that_cannot_be_read_in_time_is_overdue_and_not_taken_for_an_empty_one(
    made: Made, run_in_runner: Callable[[str], Any]
) -> None:
    path = made("".join(f"CREATE TABLE t{number}(a);" for number in range(1_000)))
    described = "describe(Connection(uri_of(path), limits, 1 << 20), limits, None, examples=3, values=10)[0]"
    head = run_in_runner(OWN_TIME.format(path=str(path)) + f"print(json.dumps({described}))")
    assert (head["status"], head["message"]) == ("timeout", "stopped after 1e-06 s of processor time")


def test_the_longest_record_is_measured_whatever_a_query_may_take(
    made: Made, run_in_runner: Callable[[str], Any]
) -> None:
    path = made(filled(20_000, "a, b", "n, hex(n)") + "; INSERT INTO t VALUES (1, zeroblob(3000000))")
    measured = "answering._measured(Task(uri=uri_of(path), limits=limits, length_bytes=0, readable=None), 1 << 30)"
    longest = run_in_runner(OWN_TIME.format(path=str(path)) + f"print(json.dumps({measured}))")
    assert 3_000_000 < longest < 3_100_000


def test_a_damaged_table_has_neither_rows_nor_examples(made: Made, serve_sql: Serve) -> None:
    path = made("CREATE TABLE good (a); INSERT INTO good VALUES (1);" + filled(2000, "a, b", "n, hex(zeroblob(100))"))
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 't'").fetchall()
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xee" * 4096
    path.write_bytes(content)
    found = tables(serve_sql(path).describe())
    assert (found["t"]["rows"], found["good"]["rows"]) == (None, 1)
    assert [it["name"] for it in found["t"]["columns"]] == ["a", "b"]
