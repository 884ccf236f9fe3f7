# ruff: noqa: S608 - the SQL of these tests is their own
"""Databases that somebody prepared, on real containers: names no rule can name, views that explode, and no time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.frames import Frame
from orchestrator.domain.policies import MountRole, Policy, Purpose
from orchestrator.domain.sql import QueryStatus
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore

if TYPE_CHECKING:
    from conftest import KeptRecords, TakenAsProved

pytestmark = pytest.mark.docker

RUN = "test-databases-hostile"
CANARY = "canary-51c0de"
WHOLE = DataRule(databases=("*",), query_seconds=5)
HIDING = DataRule(databases=("*",), deny=("secret*", "*.secret*"), query_seconds=5)
READER = b"print(open('/work/data/database.sqlite', 'rb').read().hex())\n"
Opened = Callable[[DataRule, Path], SandboxDatabase]


@pytest.fixture
def opened(
    policy: Policy, engine: Engine, images: ImageStore, proofs: TakenAsProved, audit: KeptRecords, tmp_path: Path
) -> Iterator[Opened]:
    """Opens a database under a rule, in a sandbox whose policy has no other one."""
    with ExitStack() as stack:

        def run(rule: DataRule, path: Path) -> SandboxDatabase:
            ruled = policy.model_copy(update={"data": (rule,)})
            sandbox = DockerSandbox(policy=ruled, engine=engine, images=images, proofs=proofs, audit=audit)
            stack.enter_context(sandbox)
            store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=images.digest)
            return stack.enter_context(store.open(path, path.stem, Domain.PREDICTED, run_id=RUN))

        yield run


def made(path: Path, script: str, replaced: tuple[bytes, bytes] | None = None) -> Path:
    """A database; bytes in its file replaced by others of the same length."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
    if replaced:
        path.write_bytes(path.read_bytes().replace(*replaced))
    return path


def mounted_file(sandbox: DockerSandbox, volume: str) -> bytes:
    """The raw bytes of the database in a volume."""
    request = SessionRequest(
        purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="read-back", mounts={MountRole.PUBLIC: volume}
    )
    printed = b""
    with sandbox.session(request) as session:
        session.send(Frame({"type": "start", "script": "analysis.py", "blobs": [["analysis.py", len(READER)]]}, READER))
        while (frame := session.receive()) is not None and frame.type != "done":
            printed += frame.body
    return bytes.fromhex(printed.decode())


# Names


@pytest.mark.parametrize("rule", [WHOLE, HIDING], ids=["whole", "hiding"])
def test_what_has_a_name_that_is_no_text_is_never_shown(
    rule: DataRule, opened: Opened, sandbox: DockerSandbox, tmp_path: Path
) -> None:
    script = f"""
        CREATE TABLE person(name TEXT, secretzz TEXT); INSERT INTO person VALUES ('Ann', '{CANARY}');
        CREATE TABLE secretzz(a TEXT, b TEXT); INSERT INTO secretzz VALUES ('{CANARY}', 1);
        CREATE VIEW looking AS SELECT a FROM secretzz; CREATE VIEW renamed(x, y) AS SELECT * FROM person;
        CREATE VIEW fine AS SELECT name FROM person;
    """
    database = opened(rule, made(tmp_path / "people.sqlite", script, (b"secretzz", b"secret\xff\xfe")))
    schema = {table.name: [c.name for c in table.columns] for table in database.description.schema.tables}
    assert schema == {"person": ["name"], "fine": ["name"]}
    assert database.query("SELECT * FROM person", attempt_id="whole").rows == (("Ann",),)
    for sql in (
        "WITH w(x, y) AS (SELECT * FROM person) SELECT y FROM w",
        "SELECT y FROM renamed",
        "SELECT * FROM looking",
    ):
        assert not database.query(sql, attempt_id="escape").is_ok
    told = "\n".join(database.description.dropped)
    assert r"table secret\\xff\\xfe: it has a name that is no text in UTF-8" in told
    assert "columns person: 1 with a name that is no text in UTF-8: left out, since no rule can name them" in told
    assert "view looking: " in told
    assert CANARY.encode() not in mounted_file(sandbox, database.digest)


def test_a_name_that_only_looks_like_another_one_is_hidden_where_anything_is(
    opened: Opened, sandbox: DockerSandbox, tmp_path: Path
) -> None:
    script = f"""
        CREATE TABLE person(name TEXT, "sec\u200bret" TEXT); INSERT INTO person VALUES ('Ann', '{CANARY}');
        CREATE TABLE "sec\bret"(a TEXT); INSERT INTO "sec\bret" VALUES ('{CANARY}');
    """
    path = made(tmp_path / "people.sqlite", script)
    whole = opened(WHOLE, path)
    assert whole.query('SELECT "sec\u200bret" FROM person', attempt_id="whole").rows == ((CANARY,),)
    hiding = opened(HIDING, path)
    refused = hiding.query('SELECT "sec\u200bret" FROM person', attempt_id="hiding")
    assert refused.status is QueryStatus.REFUSED
    assert r"person.sec\u200bret may not be read: data rule 1, sec\u200bret has characters" in refused.message
    assert [table.name for table in hiding.description.schema.tables] == ["person"]
    assert CANARY.encode() not in mounted_file(sandbox, hiding.digest)


def test_values_of_what_is_hidden_do_not_come_out_of_generated_columns_however_they_are_written(
    opened: Opened, sandbox: DockerSandbox, tmp_path: Path
) -> None:
    script = f"""
        CREATE TABLE t(id INTEGER PRIMARY KEY, secret TEXT, "" TEXT, a TEXT AS (\ufeffsecret),
            b TEXT AS (lower(\n\v\ufeffsecret)), c TEXT AS (""), d AS (id + 1));
        CREATE TABLE u(id, "" TEXT, c TEXT AS (upper("")), d AS (id + 1)); CREATE TABLE w(id, secret);
        INSERT INTO t(id, secret, "") VALUES (1, '{CANARY}', '{CANARY}'); INSERT INTO u(id, "") VALUES (1, '{CANARY}');
        CREATE VIEW joined AS SELECT id FROM u \ufeffNATURAL JOIN w;
    """
    database = opened(HIDING, made(tmp_path / "odd.sqlite", script))
    schema = {table.name: [c.name for c in table.columns] for table in database.description.schema.tables}
    assert schema == {"t": ["id"], "u": ["id", "d"], "w": ["id"]}
    refused = database.query("SELECT a FROM t", attempt_id="hiding")
    assert refused.status is QueryStatus.REFUSED
    assert "column t.a: needs t.*" in refused.message
    assert "columns u: 1 with no name: left out, since no rule can name them" in database.description.dropped
    content = mounted_file(sandbox, database.digest)
    assert CANARY.encode() not in content
    assert CANARY.upper().encode() not in content


# Views


@pytest.mark.parametrize("rule", [WHOLE, HIDING], ids=["whole", "hiding"])
@pytest.mark.parametrize("form", ["x.a FROM v{1} x, v{1} y", "a FROM v{1} UNION ALL SELECT a FROM v{1}"])
def test_views_that_explode_are_left_out_and_the_database_works(
    rule: DataRule, form: str, opened: Opened, tmp_path: Path
) -> None:
    views = "".join(f"CREATE VIEW v{{0}} AS SELECT {form};".format(n, n - 1) for n in range(1, 31))
    script = f"CREATE TABLE t(a, secret); INSERT INTO t VALUES (7, 8); CREATE VIEW v0 AS SELECT a FROM t; {views}"
    database = opened(rule, made(tmp_path / "bomb.sqlite", f"{script} CREATE VIEW above AS SELECT a AS b FROM v30;"))
    first, two, bomb, above = database.query_all(
        ["SELECT a FROM t", "SELECT DISTINCT a FROM v2", "SELECT a FROM v30", "SELECT b FROM above"], attempt_id="views"
    )
    assert (first.rows, two.rows) == (((7,),), ((7,),))
    assert (bomb.status, above.status) == (QueryStatus.REFUSED, QueryStatus.REFUSED)
    assert bomb.message.startswith("view v30 was left out: needs view v2")
    assert above.message == "view above was left out: needs view v30, which is left out"
    names = {table.name for table in database.description.schema.tables}
    assert {"t", "v0", "v1", "v2"} <= names
    assert not {"v30", "above"} & names


# Time


def test_a_query_without_time_leaves_the_description_as_it_is(opened: Opened, tmp_path: Path) -> None:
    many = "".join(f"CREATE TABLE t{n}(a TEXT, b); INSERT INTO t{n} VALUES ('word {n}', {n});" for n in range(300))
    path = made(tmp_path / "many.sqlite", many)
    hurried = opened(WHOLE.model_copy(update={"query_seconds": 0.001}), path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert hurried.query(endless, attempt_id="hurried").status is QueryStatus.TIMEOUT
    assert len(hurried.description.schema.tables) == 300
    assert all(table.rows == 1 for table in hurried.description.schema.tables)
    assert hurried.description.values[("t299", "a")] == ("word 299",)
    assert opened(WHOLE, path).description == hurried.description


# Queries


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT CAST('12.5x' AS UNSIGNED BIG INT)", 12),
        ("SELECT CAST('1.5' AS DOUBLE PRECISION) + CAST(2 AS varchar(10))", 3.5),
        ("SELECT CAST(65 AS 'my text'(3, -1))", "65"),
        ("SELECT 'a' 'b'", "a"),
        ("SELECT count(*) FROM t WHERE name IN ('ann') COLLATE NOCASE", 0),
        ("SELECT sum(name IN ('Ann') * 5) FROM t", 5),
        ("SELECT name LIKE 'A^%' ESCAPE char(94) FROM t", 0),
        ("SELECT name AS email FROM t ORDER BY (email) COLLATE NOCASE DESC", "Ann"),
    ],
)
def test_what_sqlite_takes_for_a_query_is_answered(opened: Opened, tmp_path: Path, sql: str, value: object) -> None:
    path = made(tmp_path / "t.sqlite", "CREATE TABLE t(name, email); INSERT INTO t VALUES ('Ann', 'x')")
    database = opened(DataRule(databases=("*",), deny=("t.email",)), path)
    result = database.query(sql, attempt_id="q")
    assert (result.status, result.rows) == (QueryStatus.OK, ((value,),))
