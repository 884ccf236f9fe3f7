# ruff: noqa: S608 - the SQL of these tests is their own
"""Q: queries that write, look around, take for ever or take everything; each ends with its status and harms no one.

All of them meet one container, in which the gate is left out: what stops them here is the engine and its process alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
from hostility import RUN, attack

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Policy, Purpose
from orchestrator.domain.sql import QueryStatus
from orchestrator.ports import Session, SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.settings import Blueprint, container_settings
from orchestrator.sandbox.streams import STDOUT, Demultiplexer
from tests.sql_service import Answered, SqlService

pytestmark = pytest.mark.docker

QUERY_SECONDS = 1.0
LATEST = 3 * QUERY_SECONDS + 2
"""Wall seconds until a query must have ended, with room for a busy machine."""
Ask = Callable[..., Answered]
Statuses = set[QueryStatus]
OK, ERROR, REFUSED = QueryStatus.OK, QueryStatus.ERROR, QueryStatus.REFUSED
TIMEOUT, MEMORY = QueryStatus.TIMEOUT, QueryStatus.MEMORY


@pytest.fixture(scope="session")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database with a table to multiply, in which a marker lies."""
    path = tmp_path_factory.mktemp("redteam-sql") / "database.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT, age INT)")
        connection.executemany("INSERT INTO p VALUES (?, ?, ?)", [(n, f"name {n}", n % 90) for n in range(1, 3001)])
        connection.execute("CREATE INDEX by_age ON p (age)")
        connection.commit()
    return path.read_bytes()


@pytest.fixture(scope="session")
def session(sandbox: DockerSandbox, content: bytes) -> Iterator[Session]:
    """A run of its own, because it outlives its tests."""
    run_id = f"{RUN}-sql"
    volume = sandbox.import_volume({"database.sqlite": content}, run_id=run_id)
    request = SessionRequest(
        purpose=Purpose.SQL, run_id=run_id, attempt_id="probe", mounts={MountRole.DATABASE: volume}
    )
    with sandbox.session(request) as session:
        yield session


@pytest.fixture(scope="session")
def service(session: Session) -> SqlService:
    service = SqlService(session.send, session.receive)
    service.open(query_seconds=QUERY_SECONDS)
    return service


@pytest.fixture
def ask(service: SqlService) -> Ask:
    """Asks a query; whatever it does, it ends in time, and the next one is answered rightly."""

    def run(sql: str, statuses: Statuses) -> Answered:
        answered = service.query(sql)
        assert answered.status in statuses, answered.message
        assert answered.wall_seconds < LATEST
        assert "/" in sql or "/" not in answered.message  # no path
        after = service.query("SELECT name FROM p WHERE id = 7")
        assert (after.status, after.rows) == (OK, (("name 7",),)), after.message
        return answered

    return run


@pytest.mark.probe("Q1", "ATTACH a new file, which would be made")
@pytest.mark.parametrize("file", ["/work/q1", "/data/q1", "file:/tmp/q1?mode=rwc", ":memory:", ""])
def test_no_database_is_made(ask: Ask, file: str) -> None:
    assert ask(f"ATTACH '{file}' AS other", {REFUSED}).message.startswith("ATTACH")
    ask("SELECT * FROM other.sqlite_schema", {ERROR})


@pytest.mark.probe("Q2", "ATTACH another database and read it")
def test_no_other_database_is_read(ask: Ask) -> None:
    for file in ("/data/database.sqlite", "/proc/self/fd/3", "file:/data/database.sqlite?immutable=1"):
        ask(f"ATTACH DATABASE '{file}' AS other", {REFUSED})
    ask("DETACH main", {REFUSED})


@pytest.mark.probe("Q3", "VACUUM INTO a copy, and VACUUM itself")
def test_no_copy_is_written(ask: Ask) -> None:
    for sql in ("VACUUM INTO '/tmp/q3'", "VACUUM INTO '/data/q3'", "VACUUM"):
        ask(sql, {REFUSED, ERROR})


@pytest.mark.probe("Q4", "load_extension()")
def test_no_extension_is_loaded(ask: Ask) -> None:
    ask("SELECT load_extension('/usr/lib/x86_64-linux-gnu/libm.so.6')", {REFUSED})
    ask("SELECT load_extension('x', 'y') FROM p WHERE 0", {REFUSED})


@pytest.mark.probe("Q5", "PRAGMA: writable_schema, temp_store_directory, and settings that are limits here")
@pytest.mark.parametrize(
    "pragma",
    [
        "writable_schema=ON", "temp_store_directory='/tmp'", "query_only=OFF", "hard_heap_limit=0", "journal_mode=WAL",
        "mmap_size=1000000000", "trusted_schema=ON", "table_info(p)", "database_list", "threads=8", "max_page_count=1",
    ],
)  # fmt: skip
def test_no_setting_is_read_or_changed(ask: Ask, pragma: str) -> None:
    assert ask(f"PRAGMA {pragma}", {REFUSED}).message.startswith("PRAGMA")


@pytest.mark.probe("Q6", "schema tables, pragma_*(), dbstat, fts3_tokenizer, CREATE TEMP, virtual tables")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sql FROM sqlite_master", "SELECT 1 FROM sqlite_temp_schema", "SELECT count(*) FROM main.sqlite_schema",
        "SELECT * FROM pragma_database_list", "SELECT * FROM pragma_table_info('p')", "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_stmt", "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('simple', x'00')",
        "CREATE TEMP TABLE p AS SELECT 1", "CREATE TEMP VIEW p AS SELECT 1", "CREATE VIRTUAL TABLE x USING fts5(a)",
        "CREATE VIRTUAL TABLE temp.x USING rtree(a, b, c)", "SELECT * FROM fts5vocab('p', 'row')",
        "SELECT sqlite_log(1, 'x')", "SELECT sqlite_compileoption_get(0)", "SELECT rtreecheck('p')",
    ],
)  # fmt: skip
def test_nothing_but_tables_is_looked_at(ask: Ask, sql: str) -> None:
    ask(sql, {REFUSED, ERROR} if "fts5vocab" in sql else {REFUSED})


@pytest.mark.probe("Q7", "INSERT, UPDATE, DELETE, DROP, ALTER, RETURNING, REINDEX, triggers")
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO p VALUES (0, 'x', 1)", "INSERT INTO p DEFAULT VALUES RETURNING id",
        "REPLACE INTO p (id) VALUES (1)", "DELETE FROM p", "WITH q AS (SELECT 1) DELETE FROM p RETURNING *",
        "UPDATE p SET name = 'x' RETURNING name", "/* SELECT */ DROP TABLE p", "ALTER TABLE p RENAME TO q",
        "CREATE INDEX i ON p (name)", "REINDEX", "REINDEX p", "EXPLAIN DELETE FROM p",
        "CREATE TRIGGER t AFTER INSERT ON p BEGIN SELECT 1; END",
    ],
)  # fmt: skip
def test_nothing_is_written(ask: Ask, sql: str) -> None:
    ask(sql, {REFUSED})


@pytest.mark.probe("Q8", "several statements, NUL, bytes that are not UTF-8")
def test_one_statement_is_run_and_no_other(ask: Ask, service: SqlService) -> None:
    for sql in ("SELECT 1; DELETE FROM p", "SELECT 1;SELECT 2", "SELECT 1; --\nSELECT 2", "SELECT 1\0; SELECT 2", ";"):
        ask(sql, {ERROR})
    assert ask("SELECT ';' -- ; DELETE FROM p", {OK}).rows == ((";",),)
    assert service.query(b"SELECT '\xff'").status is ERROR
    assert service.query(b"\xef\xbb\xbfSELECT 1").status is OK  # a byte order mark; SQLite skips it


@pytest.mark.probe("Q9", "readfile, writefile, edit, fsdir, shell commands")
def test_functions_of_the_command_line_are_not_there(ask: Ask) -> None:
    for call in (
        "readfile('/etc/passwd')",
        "writefile('/tmp/x', 'y')",
        "edit('x')",
        "shell('id')",
        "zipfile('x', 'y')",
    ):
        assert ask(f"SELECT {call}", {ERROR}).message.startswith("no such function")
    for sql in ("SELECT * FROM fsdir('/')", ".shell id", ".read /etc/passwd"):
        ask(sql, {ERROR})


ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "


@pytest.mark.probe("Q10", "endless common table expressions, with and without RECURSIVE, counted and deduplicated")
@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        (f"{ENDLESS} SELECT count(*) FROM c", {TIMEOUT}),
        (f"{ENDLESS.replace('RECURSIVE', '')} SELECT max(n) FROM c", {TIMEOUT}),
        (f"{ENDLESS.replace('n + 1', 'n').replace('UNION ALL', 'UNION')} SELECT count(*) FROM c", {OK}),
        (f"{ENDLESS.replace('UNION ALL', 'UNION')} SELECT count(*) FROM c", {TIMEOUT, MEMORY}),
        (f"{ENDLESS} SELECT n FROM c ORDER BY -n LIMIT 1", {TIMEOUT, MEMORY}),
        ("WITH RECURSIVE c(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c", {MEMORY}),
    ],
)
def test_what_never_ends_is_ended(ask: Ask, sql: str, statuses: Statuses) -> None:
    ask(sql, statuses)


MANY = ENDLESS.replace("FROM c)", "FROM c WHERE n < 3000000)")


@pytest.mark.probe("Q11", "cross joins, correlated subqueries, huge sorts and windows")
@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        ("SELECT count(*) FROM p a, p b, p c", {TIMEOUT}),
        ("SELECT count(*) FROM p a, p b, p c, p d WHERE a.age + b.age + c.age + d.age = -1", {TIMEOUT}),
        ("SELECT sum((SELECT count(*) FROM p b, p c WHERE b.age < c.age + a.age)) FROM p a", {TIMEOUT}),
        ("SELECT name FROM p a WHERE name NOT IN (SELECT b.name || c.name FROM p b, p c WHERE b.id > a.id)", {TIMEOUT}),
        (f"{MANY} SELECT hex(randomblob(150)) AS s FROM c ORDER BY s LIMIT 1", {TIMEOUT, MEMORY}),
        (f"{MANY} SELECT n, zeroblob(300) FROM c ORDER BY n % 1000", {TIMEOUT, MEMORY}),
        (f"{MANY} SELECT max(n) OVER (ORDER BY n ROWS 99999 PRECEDING) FROM c", {TIMEOUT, MEMORY}),
        (f"{MANY} SELECT DISTINCT hex(n) || n FROM c UNION SELECT n FROM c", {TIMEOUT, MEMORY}),
    ],
)  # fmt: skip
def test_what_grows_too_fast_is_ended(ask: Ask, sql: str, statuses: Statuses) -> None:
    ask(sql, statuses)


@pytest.mark.probe("Q12", "zeroblob, hex, randomblob, replace, group_concat and JSON that grow without end")
@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        ("SELECT zeroblob(900000000)", {MEMORY}),
        ("SELECT hex(zeroblob(490000000))", {MEMORY}),
        ("SELECT length(randomblob(900000000))", {MEMORY}),
        ("SELECT length(replace(hex(zeroblob(400000)), '0', hex(zeroblob(400000))))", {MEMORY}),
        (f"{MANY} SELECT length(group_concat(n, ', and then comes ')) FROM c", {MEMORY, TIMEOUT}),
        (f"{ENDLESS} SELECT length(json_group_array(n)) FROM c", {MEMORY, TIMEOUT}),
        (f"{ENDLESS} SELECT length(json_group_object(n, n)) FROM c", {MEMORY, TIMEOUT}),
        (f"SELECT {' || '.join(['hex(zeroblob(400000))'] * 20)}", {MEMORY}),
    ],
)
def test_no_cell_outgrows_its_length(ask: Ask, sql: str, statuses: Statuses) -> None:
    ask(sql, statuses)


@pytest.mark.probe("Q13", "functions that nothing can interrupt: printf with a width, instr of long texts")
@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        ("SELECT printf('%.*c', 900000000, 'x')", {TIMEOUT}),
        ("SELECT length(format('%.*c', 2000000000, 'x'))", {TIMEOUT}),
        ("SELECT sum(instr(zeroblob(900000), zeroblob(400000) || x'01')) FROM p", {TIMEOUT}),
        ("SELECT count(printf('%.*c', 900000, 'x')) FROM p a, p b", {TIMEOUT}),
    ],
)
def test_what_cannot_be_interrupted_is_killed(ask: Ask, sql: str, statuses: Statuses) -> None:
    ask(sql, statuses)


@pytest.mark.probe("Q15", "LIKE and GLOB patterns of many wildcards, and REGEXP")
def test_patterns_are_bounded(ask: Ask) -> None:
    text, many = "a" * 10_000, "%a" * 240 + "b"
    ask(f"SELECT '{text}' LIKE '{many}'", {OK, TIMEOUT})
    ask(f"SELECT '{text}' GLOB '{many.replace('%', '*')}'", {OK, TIMEOUT})
    assert "too complex" in ask(f"SELECT 'a' LIKE '{'%a' * 251}'", {ERROR}).message
    assert "no such function" in ask(f"SELECT '{text}b' REGEXP '(a+)+$'", {ERROR}).message


def doubled(levels: int) -> str:
    tables = [f"a{n} AS (SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1})" for n in range(1, levels + 1)]
    return f"WITH a0 AS (SELECT 1), {', '.join(tables)} SELECT count(*) FROM a{levels}"


@pytest.mark.probe("Q16", "statements that are large or deep, and tables that double while a statement is prepared")
@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        (f"SELECT {'(' * 900}1{')' * 900}", {ERROR}),
        (f"SELECT {'1+' * 5000}1", {ERROR}),
        (f"SELECT {'-' * 5000}1", {ERROR, OK}),  # two of them begin a comment
        (f"SELECT {'NOT ' * 4000}1", {ERROR}),
        (f"SELECT {'1,' * 2000}1", {ERROR}),
        (" UNION ALL ".join(["SELECT 1"] * 500), {ERROR}),
        (f"SELECT 1 IN ({','.join('1' for _ in range(4000))})", {OK}),
        (f"SELECT '{'x' * 20_000}'", {REFUSED}),
        (f"SELECT {'(SELECT ' * 300}1{')' * 300}", {ERROR, MEMORY}),
        (f"SELECT * FROM {'(SELECT * FROM ' * 150}p{')' * 150}", {ERROR, MEMORY, OK}),
        (f"SELECT * FROM {', '.join(['p'] * 65)}", {ERROR}),
        (f"SELECT {'case when 1 then ' * 900}1{' end' * 900}", {ERROR}),
        (doubled(22), {MEMORY, TIMEOUT}),
        (doubled(16), {MEMORY, TIMEOUT, OK}),
        (doubled(16).replace("count(*)", "*"), {MEMORY, TIMEOUT, OK}),
        (doubled(9), {MEMORY, OK}),
    ],
    ids=lambda value: "-".join(sorted(value)) if isinstance(value, set) else str(value)[:24],  # equal in all processes
)
def test_what_is_too_large_to_prepare_is_an_error(ask: Ask, sql: str, statuses: Statuses) -> None:
    ask(sql, statuses)


@pytest.mark.probe("Q17", "floods: rows, bytes, wide rows, one huge cell")
def test_a_flood_is_cut_at_its_caps(ask: Ask) -> None:
    rows = ask(f"{ENDLESS} SELECT n FROM c", {OK})
    assert (len(rows.rows), rows.truncated) == (1000, True)
    wide = ask(f"SELECT {', '.join(['a.*'] * 160)} FROM p a, p b", {OK})
    assert (len(wide.rows) > 100, wide.truncated) == (True, True)
    large = ask(f"{ENDLESS} SELECT zeroblob(1000000) FROM c", {OK})
    assert (len(large.rows), large.truncated) == (4, True)
    broad = ask(f"SELECT {', '.join(['zeroblob(1000000)'] * 400)}", {OK, MEMORY})
    assert broad.rows == ()
    assert ask("SELECT zeroblob(1000001)", {MEMORY}).rows == ()


@pytest.mark.probe("Q18", "BEGIN EXCLUSIVE, SAVEPOINT, ANALYZE")
def test_no_lock_and_no_statistics(ask: Ask) -> None:
    for sql in ("BEGIN EXCLUSIVE", "BEGIN", "COMMIT", "SAVEPOINT a", "RELEASE a", "ROLLBACK", "ANALYZE", "ANALYZE p"):
        ask(sql, {REFUSED})


@pytest.mark.probe("Q21", "generate_series, rtree, JSON that is deep or multiplies")
def test_other_table_functions_do_no_harm(ask: Ask) -> None:
    assert ask("SELECT * FROM generate_series(1, 1000000000)", {ERROR}).message == "no such table: generate_series"
    ask(f"SELECT count(*) FROM json_tree('{'[' * 1500}{']' * 1500}')", {OK, ERROR})
    ask(f"SELECT json_valid('{'[' * 9000}{']' * 9000}')", {OK})
    array = f"'[{','.join('1' for _ in range(2500))}]'"
    ask(f"SELECT count(*) FROM json_each({array}) a, json_each({array}) b, json_each({array}) c", {TIMEOUT})


@pytest.mark.probe("Q22", "EXPLAIN")
def test_an_explanation_is_a_query(ask: Ask) -> None:
    assert ask("EXPLAIN QUERY PLAN SELECT * FROM p", {OK}).rows
    ask(f"EXPLAIN {doubled(22)}", {MEMORY, TIMEOUT})
    ask("EXPLAIN SELECT * FROM sqlite_schema", {REFUSED})


@pytest.mark.probe("Q23", "a query that took its process over: files, programs, signals, the runner and its siblings")
def test_a_process_that_was_taken_over_reaches_nothing(
    engine: Engine, images: ImageStore, policy: Policy, expected: Mapping[str, Any]
) -> None:
    found = json.loads(run_in_the_image(engine, images, policy, attack("take_over")))
    assert found["channel"] == "EAGAIN"  # nothing came through it
    for kind in ("filtered", "unfiltered"):
        assert isinstance(found[kind], dict), found[kind]
        reached = {name for name, answer in found[kind].items() if answer == "allowed"}
        seen = {name for name in reached if name.startswith(("runner ", "sibling "))}
        assert reached - seen == set(), kind
        assert seen == set() or (kind == "unfiltered" and not expected["undumpable"]), seen
        assert found[kind]["grow"] == "MemoryError"
        assert found[kind]["channel"] == "EBADF"
    assert {found["filtered"][name] for name in ("fork", "exec", "open", "write", "kill", "socket")} == {"EPERM"}


def run_in_the_image(engine: Engine, images: ImageStore, policy: Policy, code: str) -> str:
    """What Python code prints in a `sql` container in which it stands in the place of the runner."""
    grant = policy.purposes[Purpose.SQL]
    blueprint = Blueprint(
        purpose=Purpose.SQL, run_id=RUN, image_digest=images.digest("sql"), grant=grant, limits=grant.limits
    )
    settings = container_settings(blueprint, name=f"evolvarium-probe-{secrets.token_hex(8)}", uid=65534, labels={})
    settings |= {"Entrypoint": ["python3", "-I", "-B", "-c", code], "Cmd": []}
    printed = bytearray()
    demultiplexer = Demultiplexer({STDOUT: printed.extend, 2: printed.extend})
    container = engine.create(settings)
    try:
        with engine.attach(container) as stream:
            stream.settimeout(60)
            engine.start(container)
            while chunk := stream.recv(1 << 16):
                demultiplexer.feed(memoryview(chunk))
    finally:
        engine.remove(container)
    return printed.decode()


@pytest.mark.probe("Q24", "after all of this: the file, the container, an honest query")
def test_the_database_and_the_service_are_as_before(service: SqlService, session: Session, content: bytes) -> None:
    assert service.digest() == hashlib.sha256(content).hexdigest()
    assert service.query("SELECT count(*), sum(age), group_concat(name) IS NOT NULL FROM p").rows == (
        (3000, sum(n % 90 for n in range(1, 3001)), 1),
    )
    outcome = session.finish(Ending.OK)
    assert outcome.ending is Ending.OK, outcome.detail
    assert outcome.output == b""
    assert outcome.memory_peak_bytes is None or outcome.memory_peak_bytes < 1 << 30
