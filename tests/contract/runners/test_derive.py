"""The deriving service of the `sql` runner: a database in, another one out, and what is hidden in neither."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.data_access import DataRule, access_of
from orchestrator.evaluation.derivation import parse_dropped
from orchestrator.evaluation.descriptions import columns_kept, parse_survey
from tests.canary_database import CANARY, DENY, VISIBLE, is_clean, make_database

if TYPE_CHECKING:
    from conftest import Launch, Runner

PIECE = 1 << 20
NAME = "database.sqlite"
DATA = Path(os.environ.get("EVOLVARIUM_DATA", Path(__file__).parents[4] / "shared" / "data"))
Keep = Mapping[str, Sequence[str]] | None
Derive = Callable[[Mapping[str, bytes], Keep], "Result"]


@dataclass(frozen=True)
class Result:
    """A derived database, written to a file."""

    path: Path
    dropped: dict[tuple[str, str], str]
    """(kind, name) to the reason."""

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.text_factory = bytes
            return connection.execute(sql).fetchall()


def files_of(path: Path) -> dict[str, bytes]:
    beside = {suffix: path.with_name(path.name + suffix) for suffix in ("", "-wal", "-journal")}
    return {NAME + suffix: file.read_bytes() for suffix, file in beside.items() if file.exists()}


def send(runner: Runner, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        for offset in range(0, max(1, len(content)), PIECE):
            head = {"type": "file", "path": name, "offset": offset, "size": len(content)}
            runner.send(head, content[offset : offset + PIECE])


@pytest.fixture
def derive(launch: Launch, tmp_path: Path) -> Derive:
    """Derives a database from files in a runner of its own."""
    return lambda files, keep: derived_by(launch, tmp_path, files, keep)


def derived_by(launch: Launch, folder: Path, files: Mapping[str, bytes], keep: Keep) -> Result:
    runner = launch("sql")
    send(runner, files)
    derived = runner.ask({"type": "derive", "keep": keep})
    assert derived.type == "derived", derived
    content = bytearray()
    while len(content) < derived.head["size"]:
        piece = runner.receive()
        assert piece is not None
        assert (piece.type, piece.head["offset"]) == ("piece", len(content))
        content += piece.body
    assert hashlib.sha256(content).hexdigest() == derived.head["sha256"]
    assert runner.end() == (0, "")
    path = folder / f"derived-{derived.head['sha256'][:8]}.sqlite"
    path.write_bytes(content)
    dropped = {(kind, name): reason for kind, name, reason in parse_dropped(derived.head["dropped"])}
    return Result(path, dropped)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """The canary database, while somebody has it open."""
    path = tmp_path_factory.mktemp("original") / "original.sqlite"
    with closing(make_database(path)):
        yield Result(path, {})


@pytest.fixture(scope="module")
def canaries(original: Result) -> dict[str, bytes]:
    """Its files, the write-ahead log among them."""
    files = files_of(original.path)
    assert set(files) == {NAME, f"{NAME}-wal"}
    assert all(CANARY.encode() in content for content in files.values())
    return files


@pytest.fixture(scope="module")
def kept(launch_once: Launch, canaries: dict[str, bytes]) -> dict[str, list[str]]:
    """What is kept when `DENY` is denied, as the trusted side computes it."""
    runner = launch_once("sql")
    send(runner, canaries)
    surveyed = runner.ask({"type": "survey"})
    assert runner.end() == (0, "")
    assert CANARY.encode() not in surveyed.body
    schema = parse_survey(surveyed.body)
    rule = DataRule(databases=("*",), deny=DENY)
    return columns_kept(schema, access_of(1, rule, schema))


@pytest.fixture(scope="module")
def cut(
    launch_once: Launch,
    canaries: dict[str, bytes],
    kept: dict[str, list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Result:
    """What is derived then."""
    return derived_by(launch_once, tmp_path_factory.mktemp("cut"), canaries, kept)


def failure(launch: Launch, files: Mapping[str, bytes], question: dict[str, object]) -> str:
    """The message of the `failed` frame that a runner ends with."""
    runner = launch("sql")
    send(runner, files)
    answer = runner.ask(question)
    assert answer.type == "failed", answer
    assert runner.end()[0] == 0
    return str(answer.head["message"])


def made_by(path: Path, script: str) -> dict[str, bytes]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
    return files_of(path)


# A whole copy


def test_a_whole_copy_holds_what_is_in_the_write_ahead_log_and_has_none(
    derive: Derive, canaries: dict[str, bytes]
) -> None:
    copy = derive(canaries, None)
    assert copy.ask("SELECT email FROM person WHERE id = 100000") == [(f"{CANARY}-late".encode(),)]
    assert copy.ask("SELECT count(*) FROM person") == [(201,)]
    assert copy.ask("PRAGMA journal_mode") == [(b"delete",)]
    assert copy.ask("PRAGMA freelist_count") == [(0,)]
    assert copy.path.read_bytes()[18:20] == b"\x01\x01"  # no reader needs a -wal or -shm file
    assert is_clean(copy.path)


def test_a_whole_copy_keeps_every_table_view_index_and_trigger(
    derive: Derive, canaries: dict[str, bytes], original: Result
) -> None:
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    assert derive(canaries, None).ask(schema) == original.ask(schema)


def test_a_transaction_that_was_not_finished_is_rolled_back(derive: Derive, tmp_path: Path) -> None:
    path = tmp_path / "hot.sqlite"
    made_by(path, "CREATE TABLE t(x); INSERT INTO t SELECT 'old' || value FROM json_each('[1,2,3,4,5,6,7,8]')")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET x = 'new'")
        writer.execute("INSERT INTO t SELECT hex(randomblob(2000)) FROM json_each('[1,2,3,4,5,6,7,8,9]')")
        files = files_of(path)  # as a crash would leave them
    assert set(files) == {NAME, f"{NAME}-journal"}
    copy = derive(files, None)
    assert copy.ask("SELECT count(*), min(x), max(x) FROM t") == [(8, b"old1", b"old8")]


# What is hidden


def test_a_canary_in_a_hidden_column_is_nowhere_in_the_derived_file(cut: Result) -> None:
    content = cut.path.read_bytes()
    assert CANARY.encode() not in content
    assert CANARY[:6].encode("utf-16-le") not in content
    assert is_clean(cut.path)
    assert CANARY not in repr(cut.dropped)


def test_what_is_left_is_what_the_rule_leaves(cut: Result) -> None:
    query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type <> 'index'"
    assert sorted(cut.ask(query)) == sorted(
        (table.encode(), column.encode()) for table, columns in VISIBLE.items() for column in columns
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name, born, initial FROM person",
        "SELECT id, person_id, total, typeof(total) FROM orders",
        "SELECT note FROM keyed ORDER BY note",
        "SELECT * FROM v_totals ORDER BY name, total",
        "SELECT count(*) FROM person WHERE name = 'LATE'",
    ],
)
def test_values_that_are_left_are_the_original_ones(cut: Result, original: Result, query: str) -> None:
    assert cut.ask(query) == original.ask(query)


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("column", "person.domain", "needs person.email"),
        ("column", "person.again", "needs person.domain"),
        ("unique constraint", "person", "needs person.email"),
        ("check", "person", "checks are left out"),
        ("index", "by_email", "needs person.email"),
        ("index", "by_part_of_email", "is over an expression"),
        ("index", "by_some", "has a condition"),
        ("foreign key", "orders(by_mail)", "needs orders.by_mail"),
        ("primary key", "keyed", "needs keyed.code"),
        ("view", "v_mail", "needs person.email"),
        ("view", "v_all", "needs person.again"),
        ("view", "v_above", "needs person.email"),
        ("view", "v_constant", "needs person.email"),
        ("triggers", "1", "triggers are left out"),
    ],
)
def test_what_is_lost_is_told_with_its_reason(cut: Result, kind: str, name: str, reason: str) -> None:
    assert cut.dropped[kind, name] == reason


def test_a_foreign_key_goes_with_the_column_that_it_refers_to(derive: Derive, canaries: dict[str, bytes]) -> None:
    result = derive(canaries, {"person": ["id"], "orders": ["id", "person_id", "by_mail"]})
    assert result.ask('SELECT "from", "to" FROM pragma_foreign_key_list(\'orders\')') == [(b"person_id", b"id")]
    assert result.dropped["foreign key", "orders(by_mail)"] == "needs person.email"


def test_several_databases_can_be_derived_from_one_original(launch: Launch, canaries: dict[str, bytes]) -> None:
    runner = launch("sql")
    send(runner, canaries)
    answers = []
    for keep in ({"person": ["id"]}, {"person": ["name"]}, {"person": ["id"]}):
        answers.append(runner.ask({"type": "derive", "keep": keep}))
        assert runner.receive() is not None  # the one piece
    assert answers[0] == answers[2]
    assert answers[0] != answers[1]
    assert runner.end() == (0, "")


# Hostile and odd files


def test_a_file_that_is_no_database_fails_with_a_message(launch: Launch) -> None:
    files = {NAME: b"SQLite format 3\0" + bytes(4000)}
    for question in ({"type": "survey"}, {"type": "derive", "keep": None}, {"type": "derive", "keep": {"t": ["x"]}}):
        assert failure(launch, files, question) == "file is not a database"


def test_a_damaged_database_fails_with_a_message(launch: Launch, canaries: dict[str, bytes]) -> None:
    content = bytearray(canaries[NAME])
    content[8192:-4096] = bytes(len(content) - 8192 - 4096)
    message = failure(launch, {NAME: bytes(content)}, {"type": "derive", "keep": None})
    assert "malformed" in message


def test_a_schema_that_was_tampered_with_fails_with_a_message(launch: Launch, tmp_path: Path) -> None:
    script = "CREATE TABLE t(x); PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'DROP TABLE t'"
    message = failure(launch, made_by(tmp_path / "odd.sqlite", script), {"type": "survey"})
    assert message.startswith("malformed database schema")


def test_a_rule_that_leaves_no_table_fails_with_a_message(launch: Launch, canaries: dict[str, bytes]) -> None:
    assert failure(launch, canaries, {"type": "derive", "keep": {"docs": ["name"]}}) == "no table is left of it"


@pytest.mark.parametrize("keep", [[], "all", {"t": "x"}, {"t": None}])
def test_a_question_that_is_not_understood_ends_the_runner(
    launch: Launch, canaries: dict[str, bytes], keep: object
) -> None:
    runner = launch("sql")
    send(runner, canaries)
    runner.send({"type": "derive", "keep": keep})
    assert runner.receive() is None
    assert runner.end()[0] == 76


@pytest.mark.parametrize("path", ["other.sqlite", "../database.sqlite", f"{NAME}-shm", 3])
def test_no_other_file_is_taken(launch: Launch, path: object) -> None:
    runner = launch("sql")
    runner.send({"type": "file", "path": path, "offset": 0, "size": 1}, b"x")
    assert runner.receive() is None
    assert runner.end()[0] == 76


def test_odd_names_types_and_definitions_are_taken_as_they_are(derive: Derive, tmp_path: Path) -> None:
    script = """
    CREATE TABLE "a ""b"" [c] --"(`x ``y` 'weird (type' , "sel,ect" VARCHAR /*INT*/ (20), 'it''s' DECIMAL ( 5 , 2 ),
      [order] INTEGER, hidden, "é" enum DEFAULT (1+1), PRIMARY KEY ([order] DESC)) ;
    INSERT INTO "a ""b"" [c] --" VALUES ('1', '2', '3.50', 4, 5, 'x');
    CREATE TABLE k(id INTEGER PRIMARY KEY DESC, rowid TEXT, hidden);
    INSERT INTO k VALUES (9, 'r', 1), (3, 'q', 2);
    CREATE TABLE s(a ANY, b INT, hidden ANY) STRICT;
    INSERT INTO s VALUES ('1', 1, 0), (1, 2, 0), (1.0, 3, 0), (x'31', 4, 0);
    CREATE TABLE orphan(x REFERENCES nowhere(y), hidden);
    """
    files = made_by(tmp_path / "odd.sqlite", script)
    names = ["x `y", "sel,ect", "it's", "order", "é"]
    keep = {'a "b" [c] --': names, "k": ["id", "rowid"], "s": ["a", "b"], "orphan": ["x"]}
    result, original = derive(files, keep), Result(tmp_path / "odd.sqlite", {})
    table = '"a ""b"" [c] --"'
    kept = {row[1]: row[2:] for row in result.ask(f"PRAGMA table_xinfo({table})")}
    assert kept[b"x `y"] == (b"weird (type", 0, None, 0, 0)
    assert kept[b"sel,ect"][0] == b"INTEGER"  # without its comment, and with the affinity that the comment gave it
    assert kept[b"order"] == (b"INTEGER", 0, None, 1, 0)
    for query in (
        f'SELECT "x `y", typeof("x `y"), "sel,ect", typeof("sel,ect"), "it\'s", typeof("it\'s"), "é" FROM {table}',  # noqa: S608
        "SELECT id, rowid FROM k ORDER BY id",
        "SELECT a, typeof(a), b FROM s ORDER BY b",
        'SELECT "from", "to", "table" FROM pragma_foreign_key_list(\'orphan\')',
    ):
        assert result.ask(query) == original.ask(query), query


def test_rows_that_do_not_keep_a_constraint_are_kept_without_it(derive: Derive, tmp_path: Path) -> None:
    script = """
    CREATE TABLE t(x, y, hidden); INSERT INTO t VALUES (NULL, 1, 1), (2, 2, 2);
    PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE t(x NOT NULL, y, hidden)'
    """
    result = derive(made_by(tmp_path / "odd.sqlite", script), {"t": ["x", "y"]})
    assert result.ask("SELECT x, y FROM t ORDER BY y") == [(None, 1), (2, 2)]
    assert result.dropped["constraints", "t"] == "do not hold: NOT NULL constraint failed: t.x"


def test_text_is_copied_byte_for_byte_in_every_encoding(derive: Derive, tmp_path: Path) -> None:
    for encoding in ("UTF-8", "UTF-16le", "UTF-16be"):
        path = tmp_path / f"{encoding}.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA encoding = '{encoding}'")
            connection.execute("CREATE TABLE t(x, hidden)")
            connection.execute("INSERT INTO t VALUES (CAST(x'ff00fe41' AS TEXT), 1), ('é', 2), (x'ff00', 3)")
        result = derive(files_of(path), {"t": ["x"]})
        query = "SELECT typeof(x), hex(CAST(x AS BLOB)) FROM t ORDER BY 2"
        assert result.ask("PRAGMA encoding") == [(encoding.encode(),)]
        assert result.ask(query) == Result(path, {}).ask(query)


def test_names_that_are_no_text_are_left_out(derive: Derive, tmp_path: Path) -> None:
    path = tmp_path / "bytes.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE plain(a, b); ")
        connection.execute("CREATE TABLE cut(a, zzzz)")
        connection.execute("INSERT INTO cut VALUES (1, 2)")
    content = path.read_bytes().replace(b"zzzz", b"\xff\xfe\xff\xfe")
    result = derive({NAME: content}, {"plain": ["a"], "cut": ["a"]})
    assert result.ask("SELECT name FROM pragma_table_xinfo('cut')") == [(b"a",)]
    assert result.ask("SELECT a FROM cut") == [(1,)]


def test_the_list_of_what_is_lost_fits_a_frame_whatever_it_holds(derive: Derive, tmp_path: Path) -> None:
    views = "".join(f'CREATE VIEW "{"é" * 300}{n}" AS SELECT y FROM t;' for n in range(400))  # noqa: S608
    result = derive(made_by(tmp_path / "views.sqlite", f"CREATE TABLE t(x, y); {views}"), {
        "t": ["x"], **{f"{'é' * 300}{n}": ["y"] for n in range(400)}
    })  # fmt: skip
    assert [kind for kind, _ in result.dropped].count("view") < 400
    assert [*result.dropped.items()][-1] == (("things", f"{401 - len(result.dropped)} more"), "left out as well")


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data at {DATA}; set EVOLVARIUM_DATA")
def test_real_databases_can_be_derived_whole_and_cut(derive: Derive, tmp_path: Path) -> None:
    paths = [*sorted(DATA.glob("spider/database/*/*.sqlite"))[:3], *sorted(DATA.glob("bird/dev_databases/*/*.sqlite"))]
    assert paths
    for path in paths:
        copy = tmp_path / path.name  # SQLite may not touch the original, not even its folder
        copy.write_bytes(path.read_bytes())
        columns = columns_of(copy)
        keep = {table: names[:-1] or names for table, names in columns.items()}
        for result, shown in ((derive(files_of(path), None), columns), (derive(files_of(path), keep), keep)):
            assert is_clean(result.path)
            for table, names in shown.items():
                assert rows_of(result, table, names) == rows_of(Result(copy, {}), table, names), (path.name, table)


def columns_of(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        return {
            name: [column for (column,) in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))]
            for (name,) in names.fetchall()
        }


def rows_of(result: Result, table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    shown = ", ".join(f'"{column}", typeof("{column}")' for column in columns)
    return sorted(result.ask(f'SELECT {shown} FROM "{table}"'), key=repr)  # noqa: S608


def test_frames_that_are_not_due_end_the_runner(launch: Launch) -> None:
    runner = launch("sql")
    send(runner, {NAME: b"x"})
    runner.send({"type": "query", "id": 1, "reverse": False}, b"select 1")
    assert runner.receive() is None
    assert runner.end()[0] == 76
