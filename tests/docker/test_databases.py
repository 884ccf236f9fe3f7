"""Databases on real containers: what a rule hides is in no file and no frame, and a container that ends is replaced."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.frames import Frame
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose
from orchestrator.domain.sql import QueryStatus
from orchestrator.errors import InputError, PolicyError, SandboxError
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.session import ContainerSession
from tests.canary_database import CANARY, DENY, VISIBLE, make_database

if TYPE_CHECKING:
    from conftest import KeptRecords, TakenAsProved

pytestmark = pytest.mark.docker

RUN = "test-databases"
HIDING = DataRule(databases=("people*",), deny=DENY, max_rows=1000, query_seconds=2)
WHOLE = DataRule(databases=("whole",), query_seconds=2)
FOREVER = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
GREEDY = "SELECT length(group_concat(hex(zeroblob(300000)))) FROM person a, person b"


class HeardSandbox(DockerSandbox):
    """Keeps every frame that a container for queries is sent or sends, by the volume it has mounted."""

    heard: dict[str, list[Frame]]

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[ContainerSession]:
        with super().session(request) as session:
            if request.purpose is Purpose.SQL:
                _listen(session, self.heard.setdefault(request.mounts[MountRole.DATABASE], []))
            yield session


def _listen(session: ContainerSession, heard: list[Frame]) -> None:
    send, receive = session.send, session.receive

    def hear_sent(frame: Frame) -> None:
        heard.append(frame)
        send(frame)

    def hear_received() -> Frame | None:
        frame = receive()
        heard.extend([] if frame is None else [frame])
        return frame

    session.send, session.receive = hear_sent, hear_received


@pytest.fixture(scope="module")
def make_sandbox(
    policy: Policy, engine: Engine, images: ImageStore, proofs: TakenAsProved, audit: KeptRecords
) -> Iterator[Callable[..., HeardSandbox]]:
    """Makes sandboxes whose policy is the shipped one with other data rules, and with some limits of `sql` lowered."""
    with ExitStack() as stack:

        def make(*rules: DataRule, **limits: Any) -> HeardSandbox:
            grant = policy.purposes[Purpose.SQL]
            lowered = grant.model_copy(
                update={"limits": Limits.model_validate({**grant.limits.model_dump(), **limits})}
            )
            changed = policy.model_copy(update={"data": rules, "purposes": {**policy.purposes, Purpose.SQL: lowered}})
            sandbox = HeardSandbox(policy=changed, engine=engine, images=images, proofs=proofs, audit=audit)
            sandbox.heard = {}
            return stack.enter_context(sandbox)

        yield make


@pytest.fixture(scope="module")
def sandbox(make_sandbox: Callable[..., HeardSandbox]) -> HeardSandbox:
    return make_sandbox(HIDING, WHOLE)


@pytest.fixture(scope="module")
def store(sandbox: HeardSandbox, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> DatabaseStore:
    return DatabaseStore(sandbox, home=tmp_path_factory.mktemp("home"), image_digest=images.digest)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The canary database, its last changes in the write-ahead log alone."""
    path = tmp_path_factory.mktemp("original") / "people.sqlite"
    with closing(make_database(path)):
        yield path


@pytest.fixture(scope="module")
def hiding(store: DatabaseStore, original: Path) -> Iterator[SandboxDatabase]:
    """The canary database, as predicted SQL sees it under a rule that hides the canary."""
    with store.open(original, "people", Domain.PREDICTED, run_id=RUN) as database:
        yield database


@pytest.fixture(scope="module")
def whole(store: DatabaseStore, original: Path) -> Iterator[SandboxDatabase]:
    with store.open(original, "whole", Domain.PREDICTED, run_id=RUN) as database:
        yield database


def digests(path: Path) -> Mapping[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir()}


def containers(audit: KeptRecords, name: str) -> list[tuple[str, str]]:
    """(attempt, ending) of the query containers of one database that have ended."""
    return [
        (record.attempt_id, record.ending)
        for record in audit.records
        if record.purpose == "sql" and record.attempt_id.split("/")[1:2] == [name]
    ]


# Hiding


def test_the_description_is_of_what_may_be_seen(hiding: SandboxDatabase) -> None:
    tables = {table.name: tuple(c.name for c in table.columns) for table in hiding.description.schema.tables}
    assert tables == VISIBLE
    assert "view v_mail: needs person.email" in hiding.description.dropped
    assert CANARY not in repr(hiding.description)


def test_visible_data_can_be_asked_for(hiding: SandboxDatabase) -> None:
    found = hiding.query_all(
        ["SELECT count(*) FROM person", "SELECT name FROM person WHERE id = 100000", "SELECT count(*) FROM v_totals"],
        attempt_id="visible",
    )
    assert [result.rows for result in found][:2] == [((201,),), (("late",),)]
    assert all(result.is_ok for result in found)


@pytest.mark.parametrize(
    ("sql", "rule", "place"),
    [
        ("SELECT email FROM person", "data rule 1, deny person.email", "column person.email"),
        ("SELECT name FROM person WHERE email > 'c'", "data rule 1, deny person.email", "column person.email"),
        ("SELECT code FROM keyed", "data rule 1, deny keyed.code", "column keyed.code"),
        ("SELECT secret FROM vault", "data rule 1, deny vault", "table vault"),
        ("SELECT domain FROM person", "data rule 1, column person.domain: needs person.email", "column person.domain"),
        ("SELECT contact FROM v_mail", "data rule 1, view v_mail: needs person.email", "table v_mail"),
    ],
)
def test_a_refused_read_says_which_rule_and_which_column(
    hiding: SandboxDatabase, sql: str, rule: str, place: str
) -> None:
    result = hiding.query(sql, attempt_id="refused")
    assert result.status is QueryStatus.REFUSED
    assert rule in result.message
    assert place in result.message


def test_a_canary_in_a_hidden_column_is_in_no_volume_and_no_frame_of_a_query_container(
    sandbox: HeardSandbox, hiding: SandboxDatabase
) -> None:
    hiding.query_all(
        ["SELECT * FROM person", "SELECT * FROM v_totals", "SELECT * FROM keyed", "SELECT * FROM orders"],
        attempt_id="canary",
    )
    heard = sandbox.heard[hiding.digest]
    assert {"open", "described", "query", "result"} <= {frame.type for frame in heard}
    assert [frame for frame in heard if CANARY.encode() in frame.body or CANARY in repr(frame.head)] == []
    content = mounted_file(sandbox, hiding.digest)
    assert content.startswith(b"SQLite format 3\0")
    assert CANARY.encode() not in content


def mounted_file(sandbox: DockerSandbox, volume: str) -> bytes:
    """The raw bytes of the database in a volume, read by a container for experiments, which has it as public data."""
    policy = sandbox.policy
    table = [["analysis.py", len(READER)]]
    request = SessionRequest(
        purpose=Purpose.ANALYSIS, run_id=RUN, attempt_id="read-back", mounts={MountRole.PUBLIC: volume}
    )
    assert MountRole.PUBLIC in policy.purposes[Purpose.ANALYSIS].mounts
    printed = b""
    with DockerSandbox.session(sandbox, request) as session:
        session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, READER))
        while (frame := session.receive()) is not None and frame.type != "done":
            printed += frame.body
    return bytes.fromhex(printed.decode())


READER = b"print(open('/work/data/database.sqlite', 'rb').read().hex())\n"


def test_the_same_rows_are_there_where_nothing_is_hidden(whole: SandboxDatabase) -> None:
    result = whole.query("SELECT email FROM person WHERE id = 100000", attempt_id="whole")
    assert result.rows == ((f"{CANARY}-late",),)
    assert whole.access.hidden == ()


def test_what_is_mounted_stays_as_it_was_imported(hiding: SandboxDatabase, whole: SandboxDatabase) -> None:
    for database in (hiding, whole):
        database.query("SELECT count(*) FROM person", attempt_id="before")
        assert database.digest_check()


def test_a_database_that_no_rule_names_cannot_be_read(store: DatabaseStore, original: Path) -> None:
    with (
        pytest.raises(PolicyError, match=r"no data rule of policy 'default' names database 'other'.*add a rule"),
        store.open(original, "other", Domain.PREDICTED, run_id=RUN),
    ):
        pass


def test_a_rule_that_hides_everything_is_an_input_error(
    make_sandbox: Callable[..., HeardSandbox], images: ImageStore, original: Path, tmp_path: Path
) -> None:
    sandbox = make_sandbox(DataRule(databases=("*",), deny=("*",)))
    store = DatabaseStore(sandbox, home=tmp_path, image_digest=images.digest)
    with (
        pytest.raises(InputError, match="data rule 1 hides all"),
        store.open(original, "people", Domain.GOLD, run_id=RUN),
    ):
        pass


def test_a_hostile_file_is_an_input_error_with_its_reason(store: DatabaseStore, original: Path, tmp_path: Path) -> None:
    content = bytearray(original.read_bytes())
    content[8192:-4096] = bytes(len(content) - 8192 - 4096)
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(content)
    with (
        pytest.raises(InputError, match=r"damaged\.sqlite.*malformed"),
        store.open(path, "whole", Domain.PREDICTED, run_id=RUN),
    ):
        pass


# Domains


def test_predicted_and_gold_sql_never_share_a_container(
    store: DatabaseStore, original: Path, audit: KeptRecords
) -> None:
    seen = len(audit.records)
    with (
        store.open(original, "people-2", Domain.PREDICTED, run_id=RUN) as predicted,
        store.open(original, "people-2", Domain.GOLD, run_id=RUN) as gold,
    ):
        assert predicted.digest == gold.digest
        for number in range(2):
            for database in (predicted, gold):
                assert database.query("SELECT count(*) FROM person", attempt_id=f"q{number}").rows == ((201,),)
    ended = [record for record in audit.records[seen:] if record.attempt_id.split("/")[1:2] == ["people-2"]]
    assert sorted(record.attempt_id for record in ended) == ["gold/people-2/q0", "predicted/people-2/q0"]
    assert len({record.container_id for record in ended}) == 2
    assert len({record.input_digest for record in ended}) == 1  # both were asked the same, each on its own
    assert {record.ending for record in ended} == {"ok"}


# Endings


def test_a_query_that_takes_too_long_is_a_timeout_and_the_next_one_works(whole: SandboxDatabase) -> None:
    found = whole.query_all([FOREVER, "SELECT 1", "SELECT nonsense", "DROP TABLE person"], attempt_id="endings")
    assert [result.status for result in found] == [
        QueryStatus.TIMEOUT,
        QueryStatus.OK,
        QueryStatus.ERROR,
        QueryStatus.REFUSED,
    ]


def test_a_container_that_meets_its_own_limit_gives_the_query_its_ending_and_is_replaced(
    make_sandbox: Callable[..., HeardSandbox], images: ImageStore, original: Path, tmp_path: Path, audit: KeptRecords
) -> None:
    # The query may compute for 60 s, its container for 1 s only.
    sandbox = make_sandbox(DataRule(databases=("*",), query_seconds=60), cpu_seconds=1)
    store = DatabaseStore(sandbox, home=tmp_path, image_digest=images.digest)
    with store.open(original, "replaced", Domain.PREDICTED, run_id=RUN) as database:
        found = database.query_all([FOREVER, "SELECT 2"], attempt_id="limit")
        assert [result.status for result in found] == [QueryStatus.TIMEOUT, QueryStatus.OK]
        assert found[1].rows == ((2,),)
    assert "timeout" in [ending for _, ending in containers(audit, "replaced")]


def test_a_container_out_of_memory_gives_the_query_its_ending_and_is_replaced(
    make_sandbox: Callable[..., HeardSandbox], images: ImageStore, original: Path, tmp_path: Path
) -> None:
    sandbox = make_sandbox(DataRule(databases=("*",), query_seconds=20), memory_bytes=40 << 20)
    store = DatabaseStore(sandbox, home=tmp_path, image_digest=images.digest)
    with store.open(original, "greedy", Domain.PREDICTED, run_id=RUN) as database:
        found = database.query_all([GREEDY, "SELECT 2"], attempt_id="memory")
        assert [result.status for result in found] == [QueryStatus.MEMORY, QueryStatus.OK]


def test_a_container_that_somebody_else_removes_is_a_failure_of_the_sandbox(
    store: DatabaseStore, original: Path, engine: Engine, sandbox: HeardSandbox
) -> None:
    run_id = f"{RUN}-removed"
    with store.open(original, "whole", Domain.TOOL, run_id=run_id) as database:
        assert database.query("SELECT 1", attempt_id="before").is_ok
        for container in engine.containers({"evolvarium.run": run_id}):
            engine.remove(str(container["Id"]))
        with pytest.raises(SandboxError):
            database.query("SELECT 1", attempt_id="removed")
        assert database.query("SELECT 1", attempt_id="after").is_ok
    assert sandbox.live_containers(run_id) == 0


def test_a_batch_of_many_queries_is_answered_in_its_order(whole: SandboxDatabase) -> None:
    queries = [f"SELECT {number}, hex(zeroblob({number * 40}))" for number in range(150)]
    found = whole.query_all(queries, attempt_id="batch")
    assert [result.rows[0][0] for result in found] == list(range(150))
    assert [len(str(result.rows[0][1])) for result in found] == [number * 80 for number in range(150)]


def test_large_results_in_a_batch_do_not_stop_it(whole: SandboxDatabase) -> None:
    large = "SELECT hex(zeroblob(450000)) FROM person a LIMIT 8"
    found = whole.query_all([large, "SELECT 1", large, large], attempt_id="large")
    assert [len(result.rows) for result in found] == [8, 1, 8, 8]


# Importing once


def test_the_original_is_left_as_it_is(original: Path, store: DatabaseStore) -> None:
    before = digests(original)
    with store.open(original, "whole", Domain.GOLD, run_id=RUN) as database:
        database.query("SELECT count(*) FROM person", attempt_id="original")
    assert digests(original) == before


def test_an_import_is_remembered_by_a_second_store_and_repeated_when_the_volume_is_gone(
    make_sandbox: Callable[..., HeardSandbox], images: ImageStore, tmp_path: Path, audit: KeptRecords, engine: Engine
) -> None:
    path = tmp_path / "own.sqlite"
    with closing(make_database(path, people=7)) as connection:
        connection.execute(f"CREATE TABLE own_{os.getpid()}(x)")  # a volume that nobody else uses

        def opened() -> tuple[str, list[str]]:
            seen = len(audit.records)
            sandbox = make_sandbox(HIDING)
            store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=images.digest)
            with store.open(path, "people", Domain.PREDICTED, run_id=RUN) as database:
                assert database.query("SELECT count(*) FROM person", attempt_id="cached").rows == ((6,),)
                digest = database.digest
            return digest, [record.purpose for record in audit.records[seen:]]

        digest, first = opened()
        assert sorted(first) == ["derive", "import", "sql", "sql"]
        assert opened() == (digest, ["sql"])
        (remembered,) = (tmp_path / "home" / "databases").iterdir()
        assert remembered.stat().st_mode & 0o077 == 0
        assert CANARY.encode() not in remembered.read_bytes()
        engine.remove_volume(f"evolvarium-{digest.replace(':', '-')}")  # as a prune does
        assert opened() == (digest, ["derive", "import", "sql", "sql"])
