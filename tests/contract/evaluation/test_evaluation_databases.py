"""Databases over scripted containers: windows, replacements, endings, what is remembered, and frames that are wrong."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_sandbox import Answer, Play, Script, ScriptedSandbox, ScriptedSession, frame

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Grant, Limits, MountRole, Policy, Purpose
from orchestrator.domain.sql import QueryStatus
from orchestrator.errors import Cancelled, EngineTimeout, EvolvariumError, InputError, PolicyError, ProtocolError
from orchestrator.evaluation import query_containers
from orchestrator.evaluation.database_files import read_database
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.ports import SessionRequest
from orchestrator.sql.gate import Refusal

DERIVED = b"SQLite format 3\0 derived"
SHA256 = hashlib.sha256(DERIVED).hexdigest()
COLUMN = {
    "type": "TEXT", "not_null": False, "default": None, "primary_key": 0, "generated": False, "examples": [],
}  # fmt: skip


def tables(**columns: tuple[str, ...]) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "kind": "table",
            "sql": "",
            "rows": None,
            "columns": [{"name": column, **COLUMN} for column in names],
            "foreign_keys": [],
        }
        for name, names in columns.items()
    ]


SURVEYED = frame("surveyed", json.dumps({"tables": tables(person=("name", "email"), v=("x",))}).encode())
DESCRIBED = frame(
    "described",
    json.dumps({"tables": tables(person=("name",)), "values": [["person", "name", ["Ann"]]]}).encode(),
    sqlite="3.40.1",
    status="ok",
    message="",
)
DERIVED_HEAD = frame("derived", size=len(DERIVED), sha256=SHA256, dropped=[["view", "v", "needs person.email"]])
PIECE = frame("piece", DERIVED, offset=0)
OPENED = frame("opened", sqlite="3.40.1", sha256=SHA256)


def deriver(received: Frame) -> Iterable[Answer]:
    return {"survey": [SURVEYED], "derive": [DERIVED_HEAD, PIECE]}.get(received.type, [])


def answered(received: Frame, **changes: object) -> Frame:
    """Its own text as the only cell."""
    cell = b"T" + len(received.body).to_bytes(4, "little") + received.body
    head = {"id": received.head["id"], "status": "ok", "message": "", "columns": ["a"], "rows": 1, "truncated": False}
    return frame("result", cell, **{**head, "wall_seconds": 0.01, **changes})


def answering(received: Frame) -> Iterable[Answer]:
    match received.type:
        case "open":
            return [OPENED]
        case "describe":
            return [DESCRIBED]
        case "digest":
            return [frame("digest", sha256=SHA256)]
        case _:
            return [answered(received)]


def instead(answer: Callable[[Frame], Iterable[Answer]]) -> Script:
    """A container that answers queries otherwise."""
    return lambda received: answer(received) if received.type == "query" else answering(received)


class Sandbox(ScriptedSandbox):
    """With the purposes of SQL, and volumes that can be taken away."""

    def __init__(self, *rules: DataRule, **limits: float) -> None:
        super().__init__()
        narrow = Limits.model_validate({"wall_seconds": 3600, "cpu_seconds": 3600, **limits})
        self.policy = Policy(
            version=1,
            name="scripted",
            purposes={
                Purpose.SQL: Grant(image="sql", mounts=frozenset({MountRole.DATABASE}), limits=narrow),
                Purpose.DERIVE: Grant(image="sql"),
            },
            data=rules or (DataRule(databases=("*",), deny=("person.email",)),),
        )

        self.flying: list[int] = []
        """Bytes of the queries whose results nobody has taken yet."""
        self.most_flying: list[list[int]] = []

    def has_volume(self, digest: str) -> bool:
        return digest in self.volumes

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[ScriptedSession]:
        waiting = self.plays[request.purpose]
        waiting[0] = replace(waiting[0], received=[], caps=[], claims=[])  # each container has records of its own
        with super().session(request) as session:
            send, receive = session.send, session.receive

            def count(sent: Frame) -> None:
                if sent.type == "query":
                    self.flying.append(len(sent.body))
                    self.most_flying.append([*self.flying])
                send(sent)

            def take() -> Frame | None:
                found = receive()
                del self.flying[: int(found is not None and found.type == "result")]
                return found

            session.send, session.receive = count, take
            yield session


@pytest.fixture
def sandbox() -> Sandbox:
    made = Sandbox()
    made.play(Purpose.DERIVE, deriver)
    made.play(Purpose.SQL, answering)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE person(name, email)")
    return path


@pytest.fixture
def open_database(path: Path, tmp_path: Path) -> Iterator[Callable[..., SandboxDatabase]]:
    """Opens the database; it is closed by the test's end unless the test has broken it."""
    opened: list[SandboxDatabase] = []

    def run(sandbox: Sandbox, domain: Domain = Domain.PREDICTED) -> SandboxDatabase:
        store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=lambda role: f"sha256:{role}")
        opening = store.open(path, "shop", domain, run_id="run")
        opened.append(opening.__enter__())
        return opened[-1]

    yield run
    for database in opened:
        database.close()


Open = Callable[..., SandboxDatabase]


def queries(play: Play) -> list[str]:
    return [received.body.decode() for received in play.received if received.type == "query"]


def sql_plays(sandbox: Sandbox) -> list[Play]:
    """Containers for queries, without the one that described."""
    return [play for play in sandbox.opened if play.received[:1] and play.received[0].type == "open"][1:]


# Opening


def test_what_is_hidden_and_what_was_lost_is_told_with_its_reason(sandbox: Sandbox, open_database: Open) -> None:
    database = open_database(sandbox)
    assert database.access.reason("person", "email") == "data rule 1, deny person.email"
    assert database.access.reason("v", "x") == "data rule 1, view v: needs person.email"
    assert database.access.reason("person", "name") is None
    assert database.description.dropped == ("view v: needs person.email",)
    assert database.description.values == {("person", "name"): ("Ann",)}
    assert sandbox.volumes[database.digest] == {"database.sqlite": DERIVED}


def test_the_deriving_container_is_told_what_to_keep_and_the_querying_one_what_may_be_read(
    sandbox: Sandbox, open_database: Open
) -> None:
    database = open_database(sandbox)
    database.query("SELECT name FROM person", attempt_id="a")
    deriving = sandbox.opened[0]
    assert deriving.received[-1].head == {"type": "derive", "keep": {"person": ["name"], "v": ["x"]}}
    assert deriving.claims == [Ending.OK]
    (play,) = sql_plays(sandbox)
    assert play.received[0].head["readable"] == {"person": ["name"]}
    assert play.request is not None
    assert play.request.mounts == {MountRole.DATABASE: database.digest}


def test_without_a_rule_for_it_nothing_is_read_or_started(open_database: Open) -> None:
    sandbox = Sandbox(DataRule(databases=("other",)))
    with pytest.raises(PolicyError, match="names database 'shop'"):
        open_database(sandbox)
    assert sandbox.opened == []


@pytest.mark.parametrize("purpose", [Purpose.SQL, Purpose.DERIVE])
def test_a_purpose_without_a_grant_is_a_policy_error(sandbox: Sandbox, open_database: Open, purpose: Purpose) -> None:
    granted = {key: grant for key, grant in sandbox.policy.purposes.items() if key is not purpose}
    sandbox.policy = sandbox.policy.model_copy(update={"purposes": granted})
    with pytest.raises(PolicyError, match=f"purpose '{purpose.value}'"):
        open_database(sandbox)


def test_an_import_is_remembered_until_its_volume_is_gone_or_the_record_is_damaged(
    sandbox: Sandbox, open_database: Open, tmp_path: Path
) -> None:
    first = open_database(sandbox)
    again = open_database(sandbox, Domain.GOLD)
    assert len(sandbox.opened) == 2
    assert (again.digest, again.description, again.access) == (first.digest, first.description, first.access)
    (record,) = (tmp_path / "home" / "databases").iterdir()
    for damage in (b"", b"{}", record.read_bytes().replace(b'"format":3', b'"format":2'), b"\xff"):
        record.write_bytes(damage)
        assert open_database(sandbox).digest == first.digest
    assert len(sandbox.opened) == 2 + 4 * 2
    sandbox.volumes.clear()
    open_database(sandbox)
    assert len(sandbox.opened) == 2 + 5 * 2


def test_another_rule_is_another_import_but_other_limits_are_not(path: Path, tmp_path: Path) -> None:
    opened = []
    for rule in (
        DataRule(databases=("*",), deny=("person.email",)),
        DataRule(databases=("*",), deny=("person.email",), max_rows=5, query_seconds=0.001),
        DataRule(databases=("*",), redact=("person.email",)),
    ):
        sandbox = Sandbox(rule)
        sandbox.volumes = opened[0].volumes if opened else {}
        sandbox.play(Purpose.DERIVE, deriver)
        sandbox.play(Purpose.SQL, answering)
        store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=str)
        with store.open(path, "shop", Domain.PREDICTED, run_id="run") as database:
            assert database.access.max_rows == rule.max_rows
        opened.append(sandbox)
    assert [len(sandbox.opened) for sandbox in opened] == [2, 0, 2]


def test_the_time_of_a_query_is_not_the_time_of_the_description(path: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(DataRule(databases=("*",), query_seconds=0.001, max_rows=7))
    sandbox.play(Purpose.DERIVE, deriver)
    sandbox.play(Purpose.SQL, answering)
    store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=str)
    with store.open(path, "shop", Domain.PREDICTED, run_id="run") as database:
        database.query("SELECT 1", attempt_id="a")
    limits = [play.received[0].head["limits"] for play in sandbox.opened if play.received[0].type == "open"]
    assert [one["query_seconds"] for one in limits] == [query_containers.DESCRIBE_SECONDS, 0.001]
    assert [one["max_rows"] for one in limits] == [7, 7]


@pytest.mark.parametrize("ending", [Ending.TIMEOUT, Ending.MEMORY])
def test_a_description_that_its_container_does_not_survive_names_the_purpose(
    open_database: Open, ending: Ending
) -> None:
    sandbox = Sandbox()
    sandbox.play(Purpose.DERIVE, deriver)
    sandbox.play(Purpose.SQL, lambda r: [] if r.type == "describe" else answering(r), sees=ending)
    with pytest.raises(
        InputError, match=rf"cannot be described: .*{ending.value}.*limits of purpose 'sql'.*grant more"
    ):
        open_database(sandbox)


def told(sandbox: Sandbox) -> object:
    """What the deriving container was told to keep."""
    return sandbox.opened[0].received[-1].head["keep"]


ODD = ("name", "e\nmail", "e\u200bmail")


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (DataRule(databases=("*",)), None),
        (DataRule(databases=("*",), deny=("nothing",)), {"person": ["name"]}),
        (DataRule(databases=("*",), redact=("nothing",)), {"person": ["name"]}),
        (DataRule(databases=("*",), tables=("p*",)), {"person": ["name"]}),
        (DataRule(databases=("*",), deny=("person.e?mail",)), {"person": ["name"]}),
    ],
)
def test_where_a_rule_hides_anything_no_name_with_unseen_characters_is_shown(
    open_database: Open, rule: DataRule, kept: object
) -> None:
    body = json.dumps({"tables": tables(**{"person": ODD, "per\u00adson": ("name",)})}).encode()
    sandbox = Sandbox(rule)
    sandbox.play(Purpose.DERIVE, lambda r: [frame("surveyed", body)] if r.type == "survey" else deriver(r))
    sandbox.play(Purpose.SQL, answering)
    database = open_database(sandbox)
    assert told(sandbox) == kept
    if kept:
        assert database.query('SELECT "e\nmail" FROM person', attempt_id="a").status is QueryStatus.REFUSED
        unseen = r"data rule 1, (e\\u200bmail has characters that cannot be seen|deny .*)"
        assert re.fullmatch(unseen, str(database.access.reason("person", "e\u200bmail")))
        with pytest.raises(Refusal, match=r"column person\.e\\nmail may not be read: data rule 1, "):
            database.check('SELECT "e\nmail" FROM person')


def test_a_database_with_a_column_that_nobody_can_name_is_rebuilt(open_database: Open) -> None:
    sandbox = Sandbox(DataRule(databases=("*",)))
    body = json.dumps({"tables": tables(person=("name",))}).encode()
    surveyed = frame("surveyed", body, unnamed_columns=1)
    sandbox.play(Purpose.DERIVE, lambda r: [surveyed] if r.type == "survey" else deriver(r))
    sandbox.play(Purpose.SQL, answering)
    database = open_database(sandbox)
    assert told(sandbox) == {"person": ["name"]}
    assert database.access.hidden == ()


def test_a_view_that_was_left_out_before_the_survey_is_refused_with_its_reason(open_database: Open) -> None:
    sandbox = Sandbox(DataRule(databases=("*",)))
    body = json.dumps({"tables": tables(person=("name",))}).encode()
    sandbox.play(Purpose.DERIVE, lambda r: [frame("surveyed", body)] if r.type == "survey" else deriver(r))
    sandbox.play(Purpose.SQL, answering)
    database = open_database(sandbox)
    assert database.description.dropped == ("view v: needs person.email",)
    with pytest.raises(Refusal, match=r"view v was left out: needs person\.email"):
        database.check("SELECT x FROM person JOIN V ON 1")
    assert database.check("WITH v AS (SELECT 1 AS x) SELECT x FROM v")


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ({"survey": [frame("surveyed", b'{"tables": []}', unnamed_columns=-1)]}, ProtocolError, "without a name"),
        ({"survey": []}, InputError, "could not be rebuilt within the limits"),
        ({"survey": [frame("failed", message="file is not\n a database")]}, InputError, "file is not a database"),
        ({"survey": [frame("opened")]}, ProtocolError, "'surveyed' was due"),
        ({"survey": [frame("surveyed", b"{")]}, ProtocolError, "surveyed"),
        ({"survey": [frame("surveyed", b'{"tables": []}')]}, InputError, "holds no table"),
        ({"survey": [frame("surveyed", b'{"tables": [{"name": 1}]}')]}, ProtocolError, "tables.0"),
        ({"survey": [EngineTimeout("engine")]}, EngineTimeout, "engine"),
        ({"survey": [Cancelled("stop")]}, Cancelled, "stop"),
        ({"derive": [frame("derived", size=-1, sha256=SHA256, dropped=[])]}, ProtocolError, "-1 bytes"),
        ({"derive": [frame("derived", size=True, sha256=SHA256, dropped=[])]}, ProtocolError, "True bytes"),
        ({"derive": [frame("derived", size=1 << 50, sha256=SHA256, dropped=[])]}, ProtocolError, "was announced"),
        ({"derive": [DERIVED_HEAD]}, InputError, "within the limits"),
        ({"derive": [DERIVED_HEAD, frame("piece", DERIVED, offset=1)]}, ProtocolError, "not the next one"),
        ({"derive": [DERIVED_HEAD, frame("piece", DERIVED + b"x", offset=0)]}, ProtocolError, "not the next one"),
        ({"derive": [DERIVED_HEAD, frame("piece", b"", offset=0)]}, ProtocolError, "not the next one"),
        ({"derive": [DERIVED_HEAD, frame("piece", DERIVED[::-1], offset=0)]}, ProtocolError, "not the one"),
        (
            {"derive": [frame("derived", size=len(DERIVED), sha256=SHA256, dropped=["v"]), PIECE]},
            ProtocolError,
            "left out",
        ),
    ],
)
def test_a_deriving_container_that_does_not_deliver_is_an_error_with_its_reason(
    open_database: Open, answers: Mapping[str, list[Answer]], error: type[EvolvariumError], message: str
) -> None:
    sandbox = Sandbox()
    sandbox.play(Purpose.DERIVE, lambda received: answers.get(received.type, deriver(received)))
    sandbox.play(Purpose.SQL, answering)
    with pytest.raises(error, match=message):
        open_database(sandbox)


def test_a_volume_that_holds_something_else_is_a_failure_of_the_sandbox(sandbox: Sandbox, open_database: Open) -> None:
    database = open_database(sandbox)
    sandbox.plays[Purpose.SQL] = []
    sandbox.play(Purpose.SQL, lambda _: [frame("opened", sqlite="3", sha256="0" * 64)])
    with pytest.raises(EvolvariumError, match="does not hold the database"):
        database.query("SELECT name FROM person", attempt_id="a")


# Queries


def test_results_come_in_the_order_of_the_queries_and_what_is_refused_is_never_sent(
    sandbox: Sandbox, open_database: Open
) -> None:
    database = open_database(sandbox)
    found = database.query_all(
        ["SELECT 1", "DROP TABLE person", "SELECT email FROM person", "SELECT 2 -- end"], attempt_id="a"
    )
    assert [result.status.value for result in found] == ["ok", "refused", "refused", "ok"]
    assert [result.rows for result in found if result.is_ok] == [(("SELECT 1",),), (("SELECT 2",),)]
    assert "data rule 1, deny person.email" in found[2].message
    assert queries(sql_plays(sandbox)[0]) == ["SELECT 1", "SELECT 2"]


def test_a_container_starts_with_the_first_query_that_passes_and_names_its_domain(
    sandbox: Sandbox, open_database: Open
) -> None:
    database = open_database(sandbox, Domain.GOLD)
    assert database.query("DROP TABLE person", attempt_id="i1").status is QueryStatus.REFUSED
    assert sql_plays(sandbox) == []
    database.query_all(["SELECT 1", "SELECT 2"], attempt_id="i2")
    database.query("SELECT 3", attempt_id="i3")
    (play,) = sql_plays(sandbox)
    assert play.request is not None
    assert play.request.attempt_id == "gold/shop/i2"


def test_reversing_is_asked_for(sandbox: Sandbox, open_database: Open) -> None:
    open_database(sandbox).query("SELECT 1", attempt_id="a", reverse=True)
    assert [r.head["reverse"] for r in sql_plays(sandbox)[0].received if r.type == "query"] == [True]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending.MEMORY, QueryStatus.MEMORY),
        (Ending.TIMEOUT, QueryStatus.TIMEOUT),
        (Ending.KILLED, QueryStatus.KILLED),
        (Ending.PROCESSES, QueryStatus.KILLED),
        (Ending.INVALID_RESULT, QueryStatus.KILLED),
        (Ending.NO_RESULT, QueryStatus.KILLED),
    ],
)
def test_a_container_that_ends_gives_the_query_it_was_at_its_ending_and_the_rest_a_new_container(
    sandbox: Sandbox, open_database: Open, ending: Ending, status: QueryStatus
) -> None:
    database = open_database(sandbox)
    sandbox.plays[Purpose.SQL] = []
    sandbox.play(Purpose.SQL, instead(lambda r: [answered(r)] if r.body == b"SELECT 0" else []), sees=ending)
    sandbox.play(Purpose.SQL, answering)
    found = database.query_all([f"SELECT {number}" for number in range(5)], attempt_id="a")
    assert [result.status for result in found] == [QueryStatus.OK, status, *[QueryStatus.OK] * 3]
    first, second = sql_plays(sandbox)
    assert queries(second) == ["SELECT 2", "SELECT 3", "SELECT 4"]
    assert first.claims[0] is Ending.NO_RESULT


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _: [frame("described")],
        lambda r: [answered(r, id=99)],
        lambda r: [answered(r, rows=2)],
        lambda r: [answered(r, status="fine")],
        lambda r: [answered(r, columns=[])],
    ],
)
def test_a_container_that_breaks_the_protocol_is_given_up(
    sandbox: Sandbox, open_database: Open, wrong: Callable[[Frame], list[Frame]]
) -> None:
    database = open_database(sandbox)
    sandbox.plays[Purpose.SQL] = []
    sandbox.play(Purpose.SQL, instead(wrong))
    sandbox.play(Purpose.SQL, answering)
    with pytest.raises(ProtocolError):
        database.query("SELECT 1", attempt_id="a")
    assert database.query("SELECT 1", attempt_id="b").is_ok
    assert len(sql_plays(sandbox)) == 2


@pytest.mark.parametrize("failure", [EngineTimeout("engine"), Cancelled("stop")])
def test_failures_of_the_sandbox_and_a_stop_pass_through_and_leave_no_container_in_use(
    sandbox: Sandbox, open_database: Open, failure: EvolvariumError
) -> None:
    database = open_database(sandbox)
    sandbox.plays[Purpose.SQL] = []
    sandbox.play(Purpose.SQL, instead(lambda r: [failure] if r.body == b"SELECT 1" else [answered(r)]))
    sandbox.play(Purpose.SQL, answering)
    with pytest.raises(type(failure), match=str(failure)):
        database.query_all(["SELECT 0", "SELECT 1", "SELECT 2"], attempt_id="a")
    assert database.query("SELECT 1", attempt_id="b").is_ok
    assert len(sql_plays(sandbox)) == 2


@pytest.mark.parametrize(
    ("limits", "rule", "wall_seconds"),
    [
        ({"cpu_seconds": 40}, {"query_seconds": 30}, 9),  # 9 of 40 s are used, and a query may need 30
        ({"wall_seconds": 60}, {"query_seconds": 30}, 0),  # a query may take 90
        ({"channel_bytes": 200_000}, {"max_bytes": 90_000}, 0),
    ],
)
def test_a_container_is_replaced_before_its_own_limits_come_near(
    path: Path, tmp_path: Path, limits: dict[str, float], rule: dict[str, float], wall_seconds: float
) -> None:
    sandbox = Sandbox(DataRule.model_validate({"databases": ["*"], **rule}), **limits)
    sandbox.play(Purpose.DERIVE, deriver)
    sandbox.play(Purpose.SQL, instead(lambda r: [answered(r, wall_seconds=wall_seconds)]))
    store = DatabaseStore(sandbox, home=tmp_path / "home", image_digest=str)
    with store.open(path, "shop", Domain.TOOL, run_id="run") as database:
        found = database.query_all([f"SELECT {number}" for number in range(4)], attempt_id="a")
    assert [result.rows[0][0] for result in found] == [f"SELECT {number}" for number in range(4)]
    plays = sql_plays(sandbox)
    assert [len(queries(play)) for play in plays] in ([1, 1, 1, 1], [2, 2])
    assert [play.claims[-1] for play in plays] == [Ending.OK] * len(plays)


def test_a_container_answers_only_so_many_queries(sandbox: Sandbox, open_database: Open) -> None:
    most = query_containers.MAX_QUERIES
    sandbox.play(Purpose.SQL, answering)
    database = open_database(sandbox)
    database.query_all(["SELECT 1"] * (most + 3), attempt_id="a")
    assert [len(queries(play)) for play in sql_plays(sandbox)] == [most, 3]


def test_few_and_short_queries_are_sent_ahead(sandbox: Sandbox, open_database: Open) -> None:
    database = open_database(sandbox)
    long = f"SELECT '{'x' * 15_000}'"
    mixed = ["SELECT 1"] * 20 + [long] * 5 + ["SELECT 1"] * 20
    assert all(result.is_ok for result in database.query_all(mixed, attempt_id="a"))
    assert max(len(flying) for flying in sandbox.most_flying) == query_containers.IN_FLIGHT
    assert all(len(flying) == 1 or sum(flying) <= query_containers.IN_FLIGHT_BYTES for flying in sandbox.most_flying)
    assert max(sum(flying) for flying in sandbox.most_flying) > 15_000


def test_many_threads_may_ask_one_database(sandbox: Sandbox, open_database: Open) -> None:
    database = open_database(sandbox)
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        found[number] = database.query(f"SELECT {number}", attempt_id=f"t{number}").rows[0][0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {number: f"SELECT {number}" for number in range(16)}
    assert len(sql_plays(sandbox)) == 1


def test_the_digest_of_the_mounted_file_is_compared(sandbox: Sandbox, open_database: Open) -> None:
    database = open_database(sandbox)
    assert database.digest_check()
    database.close()
    sandbox.plays[Purpose.SQL] = []
    sandbox.play(Purpose.SQL, lambda r: [frame("digest", sha256="0" * 64)] if r.type == "digest" else answering(r))
    assert not database.digest_check()


# Files


def test_a_database_is_read_with_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t(x)")
        link = tmp_path / "other" / "link.sqlite"
        link.parent.mkdir()
        link.symlink_to(path)
        found = read_database(path, 1 << 20)
        assert set(found.files) == {"database.sqlite", "database.sqlite-wal"}
        assert read_database(link, 1 << 20).digest == found.digest
        connection.execute("INSERT INTO t VALUES (1)")
        assert read_database(path, 1 << 20).digest != found.digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"SQLite format 2\0", "is no SQLite database"),
        (b"SQLite format 3\0" * 100, "over 1000 bytes"),
    ],
)
def test_a_file_that_is_none_is_an_input_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.sqlite"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"file\.sqlite.*{message}"):
        read_database(path, 1000)


def test_what_is_no_file_is_an_input_error(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "missing", tmp_path, loop):
        with pytest.raises(InputError, match="cannot read database"):
            read_database(path, 1000)


def test_a_write_ahead_log_that_is_a_folder_or_a_loop_is_an_input_error(path: Path) -> None:
    beside = path.with_name(f"{path.name}-wal")
    beside.mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        read_database(path, 1 << 20)
    beside.rmdir()
    beside.symlink_to(beside)
    with pytest.raises(InputError, match="cannot read database"):
        read_database(path, 1 << 20)


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_the_last_changes_of_another_database_are_not_linked_in(path: Path, tmp_path: Path, suffix: str) -> None:
    other = tmp_path / f"other.sqlite{suffix}"
    other.write_bytes(b"of another database")
    path.with_name(path.name + suffix).symlink_to(other)
    with pytest.raises(InputError, match="cannot read database"):
        read_database(path, 1 << 20)
