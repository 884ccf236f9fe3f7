"""Rebuilding a database without some columns, as an invariant: what is hidden cannot be told from what is left.

The modules are those of the image, called directly: a process for every example would take too long.
"""

from __future__ import annotations

import importlib
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.canary_database import is_clean

VALUES = (
    st.none()
    | st.integers(-3, 3)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "a", "A", "b ", "12", "1.0", "é"])
    | st.binary(max_size=3)
)
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=12)
TYPES = st.sampled_from(["", "INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "TEXT COLLATE NOCASE"])
SOME = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
Rebuild = Callable[[str, list[tuple[str, tuple[object, ...]]], Mapping[str, list[str]]], Path]


@pytest.fixture(scope="module")
def runner(assembled: Mapping[str, Path]) -> Iterator[SimpleNamespace]:
    """Modules of the image."""
    sys.path.insert(0, str(assembled["sql"]))
    try:
        names = ("rebuilding", "definitions", "survey")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(assembled["sql"]))


@pytest.fixture
def rebuild(runner: SimpleNamespace, tmp_path: Path) -> Rebuild:
    """Makes a database by a script and rows, and derives another one from it."""
    source, target = tmp_path / "source.sqlite", tmp_path / "target.sqlite"

    def run(script: str, rows: list[tuple[str, tuple[object, ...]]], keep: Mapping[str, list[str]]) -> Path:
        for path in (source, target):
            path.unlink(missing_ok=True)
        with closing(sqlite3.connect(source, isolation_level=None)) as connection:
            connection.executescript(script)
            connection.execute("BEGIN")
            for statement, values in rows:
                connection.execute(statement, values)
            connection.execute("COMMIT")
        runner.rebuilding.rebuild(source, target, keep)
        return target

    return run


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def inserts(table: str, rows: list[tuple[object, ...]]) -> list[tuple[str, tuple[object, ...]]]:
    return [(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row) for row in rows]  # noqa: S608


@SOME
@given(rows=ROWS, others=st.lists(VALUES, min_size=12, max_size=12), types=st.tuples(TYPES, TYPES), data=st.data())
@pytest.mark.parametrize("key", ["", "a", "WITHOUT ROWID"])
def test_two_originals_that_differ_in_hidden_values_and_order_alone_give_the_same_file(
    rebuild: Rebuild,
    rows: list[tuple[object, ...]],
    others: list[object],
    types: tuple[str, str],
    data: st.DataObject,
    key: str,
) -> None:
    script = (
        f"CREATE TABLE t(hidden, a {types[0]}, b {types[1]}); CREATE INDEX i ON t(hidden, a); CREATE INDEX j ON t(b)"
    )
    if key == "WITHOUT ROWID":
        script = f"CREATE TABLE t(hidden, a PRIMARY KEY, b {types[1]}) WITHOUT ROWID; CREATE INDEX i ON t(hidden, b)"
        rows = [(row[0], f"{number * 7919 % 13}{'x' * 400}", row[2]) for number, row in enumerate(rows)]
    if key == "a":
        script = f"CREATE TABLE t(hidden, a INTEGER PRIMARY KEY, b {types[1]}); CREATE INDEX i ON t(hidden); ANALYZE"
        rows = [(row[0], number, row[2]) for number, row in enumerate(rows)]
    first = rebuild(script, inserts("t", rows), {"t": ["a", "b"]}).read_bytes()
    shuffled = data.draw(st.permutations([(other, *row[1:]) for other, row in zip(others, rows, strict=False)]))
    second = rebuild(script, inserts("t", [*shuffled]), {"t": ["a", "b"]}).read_bytes()
    assert first == second


@SOME
@given(rows=ROWS)
def test_the_order_of_a_hidden_key_is_not_kept(rebuild: Rebuild, rows: list[tuple[object, ...]]) -> None:
    script = """CREATE TABLE t(hidden INTEGER PRIMARY KEY, a, b);
    CREATE TABLE u(hidden, a, b, PRIMARY KEY (a, hidden)) WITHOUT ROWID"""
    keep = {"t": ["a", "b"], "u": ["a", "b"]}
    files = []
    for sign in (1, -1):
        keyed = [(sign * number, row[1] or 0, row[2]) for number, row in enumerate(rows)]
        files.append(rebuild(script, [*inserts("t", keyed), *inserts("u", keyed)], keep).read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("TEXT COLLATE NOCASE", ["a", "A", "aA", "AA"]),
        ("TEXT COLLATE RTRIM", ["b ", "b", "b  "]),
        ("", [1, 1.0, "1", b"1"]),
        ("BLOB", [2.0, 2]),
        ("BLOB", [0.0, -0.0]),
        ("", [-0.0, 0, 0.0]),
        ("ANY", ["3", 3, 3.0]),
    ],
)
def test_rows_that_only_seem_equal_have_one_order_too(rebuild: Rebuild, declared: str, values: list[object]) -> None:
    strict = " STRICT" if declared == "ANY" else ""
    script = f"CREATE TABLE t(hidden INTEGER PRIMARY KEY, a {declared}){strict}"
    files = set()
    for order in (values, values[::-1]):
        rows = [(number, value) for number, value in enumerate(order)]
        files.add(rebuild(script, inserts("t", rows), {"t": ["a"]}).read_bytes())
    assert len(files) == 1


def test_rows_have_one_order_however_many_columns_they_have(rebuild: Rebuild) -> None:
    columns = [f"c{number}" for number in range(1200)]
    script = f"CREATE TABLE t(hidden, {', '.join(columns)})"
    files = set()
    for order in ((1, 1.0), (1.0, 1)):
        rows = [(number, *[0] * 1199, value) for number, value in enumerate(order)]
        files.add(rebuild(script, inserts("t", rows), {"t": columns}).read_bytes())
    assert len(files) == 1


def test_a_table_with_too_many_columns_to_order_is_left_out(rebuild: Rebuild) -> None:
    columns = [f"c{number}" for number in range(1950)]
    script = f"CREATE TABLE t(hidden, {', '.join(columns)}); CREATE TABLE u(x)"
    target = rebuild(script, [], {"t": columns, "u": ["x"]})
    assert ask(target, "SELECT name FROM sqlite_schema") == [("u",)]
    whole = rebuild(script, [], {"t": ["hidden", *columns], "u": ["x"]})
    assert ask(whole, "SELECT name FROM sqlite_schema") == [("t",), ("u",)]


def test_indexes_and_constraints_keep_their_order_and_collation(rebuild: Rebuild) -> None:
    script = """CREATE TABLE t(a TEXT COLLATE NOCASE, b, hidden, UNIQUE (b COLLATE RTRIM, a));
    CREATE INDEX i ON t(a COLLATE BINARY DESC, b COLLATE NOCASE)"""
    target = rebuild(script, [], {"t": ["a", "b"]})
    query = """SELECT l.name, l."unique", l.origin, x.name, x.desc, upper(x.coll)
    FROM pragma_index_list('t') l, pragma_index_xinfo(l.name) x WHERE x.key ORDER BY 1, x.seqno"""
    assert ask(target, query) == ask(target.with_name("source.sqlite"), query)
    assert len(ask(target, query)) == 4


@SOME
@given(rows=ROWS, types=st.tuples(TYPES, TYPES, TYPES))
def test_visible_values_keep_their_bits_and_their_types(
    rebuild: Rebuild, rows: list[tuple[object, ...]], types: tuple[str, str, str]
) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in zip("abc", types, strict=True))
    keep = {"t": ["a", "c"], "whole": ["a", "b", "c"]}
    target = rebuild(
        f"CREATE TABLE t({columns}); CREATE TABLE whole({columns})",
        [*inserts("t", rows), *inserts("whole", rows)],
        keep,
    )
    assert is_clean(target)
    source = target.with_name("source.sqlite")
    whole = "SELECT typeof(a), a, typeof(b), b, typeof(c), c FROM whole"
    assert repr(ask(target, whole)) == repr(ask(source, whole))  # in the same order, too
    part = "SELECT typeof(a), a, typeof(c), c FROM t"
    assert sorted(map(repr, ask(target, part))) == sorted(map(repr, ask(source, part)))


@SOME
@given(rows=ROWS)
def test_comparisons_work_as_in_the_original(rebuild: Rebuild, rows: list[tuple[object, ...]]) -> None:
    script = "CREATE TABLE t(a TEXT COLLATE NOCASE, b NUMERIC COLLATE RTRIM, c); CREATE UNIQUE INDEX i ON t(c)"
    target = rebuild(script, inserts("t", rows), {"t": ["a", "b"]})
    source = target.with_name("source.sqlite")
    for query in (
        "SELECT count(*) FROM t WHERE a = 'A'",
        "SELECT count(DISTINCT a), count(DISTINCT b) FROM t",
        "SELECT count(*) FROM t WHERE b = '12' OR b = 'b'",
        "SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.a AND x.b < y.b",
    ):
        assert ask(target, query) == ask(source, query), query


@pytest.mark.parametrize(
    "view",
    [
        "SELECT email FROM p",
        'SELECT "email" FROM p',
        "SELECT [email] FROM p",
        "SELECT `EMAIL` FROM p",
        "SELECT * FROM p",
        "SELECT p.* FROM p",
        "SELECT count(email) FROM p",
        "SELECT id FROM p WHERE email > ''",
        "SELECT id FROM p ORDER BY email",
        "SELECT (SELECT max(email) FROM p)",
        "WITH w AS (SELECT email AS x FROM p) SELECT x FROM w",
        "SELECT row_number() OVER (ORDER BY email) FROM p",
        "SELECT id FROM p GROUP BY id HAVING max(email) > ''",
        "SELECT x FROM (SELECT email AS x FROM p)",
        "SELECT other FROM (SELECT name AS other, email FROM p)",
        "SELECT computed FROM p",
        "SELECT domain FROM above",
        "SELECT p.id FROM p JOIN q USING (email)",
        "SELECT q.id FROM p NATURAL JOIN q",
        "SELECT 1 FROM hidden",
        "SELECT count(*) FROM hidden",
        "SELECT rowid FROM q",
        "SELECT sql FROM sqlite_master",
        "SELECT count(*) FROM sqlite_schema",
        "SELECT name FROM pragma_table_info('p')",
        "SELECT * FROM f",
        "SELECT id FROM p AS email WHERE email.email = 1",
    ],
)
def test_a_view_goes_with_whatever_it_reads_that_is_hidden(rebuild: Rebuild, view: str) -> None:
    target = rebuild(f"{TABLES} CREATE VIEW v AS {view};", [], {**KEPT, "v": columns_of(view)})
    assert ask(target, "SELECT name FROM sqlite_master WHERE type = 'view' AND name = 'v'") == []


@pytest.mark.parametrize(
    "view",
    [
        "SELECT name FROM p",
        "SELECT count(*) FROM p",
        "SELECT id, email FROM (SELECT id, name AS email FROM p)",
        "WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w LIMIT 3) SELECT n, name FROM w, p WHERE id = n",
        "SELECT name, 'email' FROM p",
        "SELECT initial FROM p",
        "SELECT name /* email */ FROM p -- email",
        "SELECT value FROM json_each('[1, 2]')",
        "SELECT p.name FROM p JOIN q ON q.id = p.id",
        'SELECT name, "no such column" FROM p',
        "VALUES (1), (2)",
    ],
)
def test_a_view_that_reads_nothing_hidden_works_as_before(rebuild: Rebuild, view: str) -> None:
    rows = [("INSERT INTO p(id, name, email) VALUES (?, ?, ?)", (n, f"n{n}", f"canary{n}")) for n in range(5)]
    target = rebuild(f"{TABLES} CREATE VIEW v AS {view};", rows, {**KEPT, "v": columns_of(view)})
    assert ask(target, "SELECT * FROM v") == ask(target.with_name("source.sqlite"), "SELECT * FROM v")
    assert b"canary" not in target.read_bytes()


TABLES = """
CREATE TABLE p(id INTEGER PRIMARY KEY, name, email, computed AS (email || '!'), initial AS (substr(name, 1, 1)));
CREATE TABLE q(id INT, email);
CREATE TABLE hidden(x);
CREATE VIRTUAL TABLE f USING fts5(x);
CREATE VIEW above AS SELECT substr(email, 1) AS domain FROM p;
"""
KEPT = {"p": ["id", "name", "computed", "initial"], "q": ["id"], "f": ["x"], "above": ["domain"]}


def columns_of(view: str) -> list[str]:
    """Names of a view's columns, so that none of them is hidden by its own name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(f"{TABLES} CREATE VIEW v AS {view};")
        return [row[0] for row in connection.execute("SELECT name FROM pragma_table_xinfo('v')")]


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("substr(name, 1)", True),
        ("name || 'email'", True),
        ("name /* email */", True),
        ("email", False),
        ("name || EMAIL", False),
        ('"email"', False),
        ("[Email] || name", False),
        ("`email`", False),
        ("length(email) > 3", False),
        ("'x' || before", False),
        ("before2 || ')'", True),
    ],
)
@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_a_generated_column_stays_only_if_nothing_that_it_needs_is_hidden(
    rebuild: Rebuild, definition: str, kept: bool, kind: str
) -> None:
    script = f"""CREATE TABLE t(email, name TEXT, before AS (email), before2 AS (name),
        made TEXT GENERATED ALWAYS AS ({definition}) {kind}, last)"""
    rows = [("INSERT INTO t(email, name, last) VALUES ('canary', 'n', 1)", ())]
    target = rebuild(script, rows, {"t": ["name", "before", "before2", "made", "last"]})
    expected = ["name", "before2", *(["made"] if kept else []), "last"]
    assert [row[0] for row in ask(target, "SELECT name FROM pragma_table_xinfo('t')")] == expected
    query = f"SELECT {', '.join(expected)} FROM t"  # noqa: S608
    assert ask(target, query) == ask(target.with_name("source.sqlite"), query)
    assert b"canary" not in target.read_bytes()


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ("DEFAULT 'plain'", "'plain'"),
        ("DEFAULT -1.5e3", "-1.5e3"),
        ("DEFAULT x'ab'", "x'ab'"),
        ("DEFAULT NULL", "NULL"),
        ("DEFAULT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("DEFAULT (1 /* canary */ + 2)", None),
        ("DEFAULT (lower('canary'))", None),
    ],
)
def test_a_default_stays_only_if_it_is_one_plain_value(rebuild: Rebuild, declared: str, kept: str | None) -> None:
    target = rebuild(
        f"CREATE TABLE t(a {declared}, hidden DEFAULT 'canary', CHECK (hidden <> 'canary'))", [], {"t": ["a"]}
    )
    assert ask(target, "SELECT dflt_value FROM pragma_table_xinfo('t')") == [(kept,)]
    assert b"canary" not in target.read_bytes()


def test_what_a_module_that_is_not_there_has_stored_is_left_out(rebuild: Rebuild) -> None:
    script = """CREATE TABLE t(a); CREATE TABLE search_content(canary); CREATE TABLE searching(b);
    PRAGMA writable_schema = ON;
    INSERT INTO sqlite_master VALUES ('table', 'search', 'search', 0,
      'CREATE VIRTUAL TABLE search USING nowhere(a)');"""
    target = rebuild(script, [], {"t": ["a"], "search": ["a"], "search_content": ["canary"], "searching": ["b"]})
    assert ask(target, "SELECT name FROM sqlite_master") == [("t",), ("searching",)]


def test_a_table_that_only_seems_to_belong_to_a_virtual_one_is_kept(rebuild: Rebuild) -> None:
    script = "CREATE VIRTUAL TABLE search USING fts5(a); CREATE TABLE search_log(b)"
    keep = {"search": ["a"], "search_content": ["id", "c0"], "search_log": ["b"]}
    assert ask(rebuild(script, [], keep), "SELECT name FROM sqlite_master") == [("search_log",)]


@given(st.text(st.sampled_from("ab'\"`[]-/*\n ;é"), max_size=30))
def test_tokens_are_the_whole_text_and_leaving_comments_out_leaves_none(runner: SimpleNamespace, text: str) -> None:
    definitions = runner.definitions
    assert "".join(token.text for token in definitions.tokens(text)) == text


@given(st.lists(st.sampled_from(["'--'", "'/*'", '"--"', "[/*]", "`--`", " -- x\n", "/* ' */", "a", "1", "(", ")"])))
def test_what_looks_like_a_comment_within_quotes_is_none(runner: SimpleNamespace, parts: list[str]) -> None:
    text = " ".join(parts)
    expected = " ".join(" " if part.strip().startswith(("--", "/*")) else part for part in parts)
    assert runner.definitions.without_comments(text).split() == expected.split()


@given(
    st.text(max_size=12) | st.sampled_from(["int", "Point", "FLOATING", "character(20)", "DECIMAL(1,2)", "primary key"])
)
def test_a_type_is_written_so_that_sqlite_reads_the_same_one(runner: SimpleNamespace, declared: str) -> None:
    definitions = runner.definitions
    if "\0" in declared or not declared.isprintable():
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t (c {definitions.type_text(declared)}, d)")
        ((found,), _) = connection.execute("SELECT type FROM pragma_table_xinfo('t')")
    assert definitions.affinity(found) == definitions.affinity(declared)
    plain, kept = definitions.without_comments(declared), " ".join(declared.split())
    if plain == declared and definitions.affinity(kept) == definitions.affinity(declared):
        assert found.casefold() == kept.casefold()


def test_a_blank_type_is_numeric_and_written_so(runner: SimpleNamespace) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE blank (c " ")')
        connection.execute("INSERT INTO blank VALUES ('1')")
        assert connection.execute("SELECT typeof(c) FROM blank").fetchall() == [("integer",)]
    assert runner.definitions.type_text(" ") == "NUMERIC"
    assert runner.definitions.type_text("") == ""


def test_affinity_is_as_sqlite_has_it(runner: SimpleNamespace) -> None:
    for declared in (
        "INT",
        "CHARINT",
        "CLOB",
        "VARCHAR(9)",
        "BLOB",
        "",
        "DOUBLE",
        "FLOAT",
        "REAL",
        "NUMERIC",
        "DATE",
        "POINT",
    ):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(f"CREATE TABLE t (c {declared})")
            connection.execute("INSERT INTO t VALUES ('1'), (1.5), (1)")
            kinds = [kind for (kind,) in connection.execute("SELECT typeof(c) FROM t ORDER BY rowid")]
        expected = {
            "INTEGER": ["integer", "real", "integer"],
            "NUMERIC": ["integer", "real", "integer"],
            "TEXT": ["text", "text", "text"],
            "REAL": ["real", "real", "real"],
            "BLOB": ["text", "real", "integer"],
        }
        assert kinds == expected[runner.definitions.affinity(declared)], declared
