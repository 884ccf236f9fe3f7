# ruff: noqa: S608 - the SQL of these tests is their own
"""The `sql` image through the sandbox: one database, one container, and a process for every query."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.domain.sql import QueryStatus, RawText
from orchestrator.ports import Session, SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from tests.sql_service import LIMITS, SqlService

pytestmark = pytest.mark.docker

LONG = 2_000_000


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sql") / "database.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE city (id INTEGER PRIMARY KEY, [the "name"] TEXT, size REAL, flag BLOB);
            INSERT INTO city VALUES (1, 'Oslo', 1.5, x'00ff'), (2, CAST(x'ff41' AS TEXT), 9e999, NULL);
            CREATE VIEW broken AS SELECT * FROM gone;
            CREATE VIEW bomb AS SELECT printf('%.*c', 900000000, 'x') AS c;
            CREATE TABLE long (t TEXT);
            """
        )
        connection.execute("INSERT INTO long VALUES (?)", ("x" * LONG,))
        connection.commit()
    return path.read_bytes()


@pytest.fixture(scope="module")
def database(sandbox: DockerSandbox, content: bytes) -> str:
    """Digest of the volume that holds it."""
    return sandbox.import_volume({"database.sqlite": content}, run_id="test-sql")


@pytest.fixture(scope="module")
def session(sandbox: DockerSandbox, database: str) -> Iterator[Session]:
    request = SessionRequest(
        purpose=Purpose.SQL, run_id="test-sql", attempt_id="test", mounts={MountRole.DATABASE: database}
    )
    with sandbox.session(request) as session:
        yield session


@pytest.fixture(scope="module")
def service(session: Session, content: bytes) -> SqlService:
    service = SqlService(session.send, session.receive)
    assert service.open(query_seconds=2.0)["sha256"] == hashlib.sha256(content).hexdigest()
    return service


def test_cells_arrive_as_they_are_stored(service: SqlService) -> None:
    assert service.query("SELECT * FROM city").rows == (
        (1, "Oslo", 1.5, b"\0\xff"),
        (2, RawText(b"\xffA"), math.inf, None),
    )
    assert service.query("SELECT t FROM long").value == "x" * LONG  # longer than what is granted without it


def test_a_batch_is_answered_in_its_order(service: SqlService) -> None:
    for number in range(100):
        service.send(f"SELECT {number}, id FROM city ORDER BY id", identity=number)
    taken = [service.take() for _ in range(100)]
    assert [one.id for one in taken] == list(range(100))
    assert all(one.rows == ((number, 1), (number, 2)) for number, one in enumerate(taken))


def test_a_query_that_is_killed_takes_nothing_along(service: SqlService) -> None:
    service.send("SELECT printf('%.*c', 2000000000, 'x')", identity="bomb")
    service.send("SELECT count(*) FROM city", identity="next")
    bomb, after = service.take(), service.take()
    assert (bomb.id, bomb.status) == ("bomb", QueryStatus.TIMEOUT)
    assert (after.id, after.value) == ("next", 2)


def test_a_schema_that_means_harm_is_described(service: SqlService) -> None:
    described = service.describe()
    tables = {table["name"]: table for table in described["tables"]}
    assert {name: (table["kind"], table["rows"]) for name, table in tables.items()} == {
        "city": ("table", 2),
        "broken": ("view", None),
        "bomb": ("view", None),
        "long": ("table", 1),
    }
    assert [column["name"] for column in tables["city"]["columns"]] == ["id", 'the "name"', "size", "flag"]
    assert described["values"] == [["city", 'the "name"', ["Oslo"]]]


def test_the_file_is_the_same_after_all_of_this(service: SqlService, session: Session, content: bytes) -> None:
    assert service.digest() == hashlib.sha256(content).hexdigest()
    outcome = session.finish(Ending.OK)
    assert (outcome.ending, outcome.output) == (Ending.OK, b"")


def test_a_frame_that_does_not_belong_there_ends_the_container(
    sandbox: DockerSandbox, database: str, request_for: Callable[..., SessionRequest]
) -> None:
    with sandbox.session(request_for(Purpose.SQL, mounts={MountRole.DATABASE: database})) as session:
        session.send(Frame({"type": "open", "readable": None, "limits": {**LIMITS, "network": True}}))
        assert session.receive() is None
        outcome = session.finish(Ending.OK)
    assert outcome.ending is not Ending.OK
    assert b"'limits' does not name" in outcome.output
