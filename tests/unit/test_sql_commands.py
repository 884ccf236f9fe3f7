"""`evolvarium sql` without an engine: what is refused before anything starts, and what needs none."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.bootstrap.sql.choices import methods_of, settings_of
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.cli.main import execute
from orchestrator.cli.sql_documents import SqlCheckDocument
from orchestrator.domain.sql import Column, Schema, Table
from orchestrator.errors import InputError
from orchestrator.search.agreement import TieBreak
from orchestrator.sql.demo import Demo, write_demo
from orchestrator.sql.gate import check
from orchestrator.sql.reads import named_columns

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return write_demo(tmp_path / "shop")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line with a home of its own and no engine; gives exit code, stdout and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.parametrize("command", [["sql"], ["sql", "ask"], ["sql", "bench"], ["sql", "check"]])
def test_every_command_explains_itself(call: Call, command: list[str]) -> None:
    code, out, err = call(*command, "--help")
    assert (code, err) == (0, "")
    assert "Usage" in out


def test_the_gate_refuses_without_an_engine(call: Call, demo: Demo) -> None:
    code, out, _ = call("sql", "check", "DELETE FROM customers", "--db", str(demo.database))
    assert code == 1
    assert out.startswith("Refused by the gate: only SELECT is allowed, not 'DELETE'")
    code, out, _ = call("sql", "check", "SELECT 1; SELECT 2", "--db", str(demo.database), "--json")
    document = SqlCheckDocument.model_validate_json(out)
    assert (code, document.allowed, document.refused_by) == (1, False, "gate")


def test_a_query_is_read_from_stdin_and_never_shown_raw(
    call: Call, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\x1b[31mDROP TABLE x")))
    code, out, _ = call("sql", "check", "-", "--db", str(demo.database))
    assert code == 1
    assert "\x1b" not in out
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"SELECT '\xff'")))
    code, _, err = call("sql", "check", "-", "--db", str(demo.database))
    assert code == 2
    assert "not UTF-8 at byte 8" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "SELECT 1", "--db", "missing.sqlite"], "there is no file 'missing.sqlite'"),
        (["check", "SELECT 1", "--db", "."], "'.' is a folder; give the SQLite file itself with --db"),
        (["check", "SELECT 1", "--db", "/dev/null"], "'/dev/null' is not a regular file"),
        (["ask", "How many?", "--db", "."], "'.' is a folder; give the SQLite file itself with --db"),
        (["ask", "How many?"], "Missing option '--db'"),
        (["ask", " \n", "--db", "x"], "the question is empty; say in plain words what you want to know"),
        (
            ["ask", "x" * 20_001, "--db", "x"],
            "question and evidence have 20001 characters together; give at most 20000",
        ),
        (["ask", "How many?", "--db", "missing.sqlite"], "there is no file"),
        (["ask", "How many?", "--db", "x", "--model", "gpt"], "no model 'gpt'"),
        (["ask", "How many?", "--db", "x", "--policy", "lax"], "no policy 'lax'"),
        (["ask", "How many?", "--db", "x", "--set", "rounds"], "setting 'rounds' is not NAME=VALUE, for instance"),
        (["ask", "How many?", "--db", "x", "--set", "round=1"], "no setting 'round'; did you mean 'rounds'? there are"),
        (["ask", "How many?", "--db", "x", "--set", "gamma=1"], "no setting 'gamma'; did you mean 'time_discount'?"),
        (["ask", "How many?", "--db", "x", "--set", "xyz=1"], "no setting 'xyz'; there are seed, candidates, rounds,"),
        (["ask", "How many?", "--db", "x", "--set", "=1"], "no setting ''; there are seed"),
        (
            ["ask", "How many?", "--db", "x", "--set", "payload=two"],
            "setting `payload` is 'two': must be a whole number",
        ),
        (["ask", "How many?", "--db", "x", "--seed", "1", "--set", "seed=2"], "setting 'seed' is given twice"),
        (["ask", "How many?", "--db", "x", "--set", "stop_share=2"], "setting `stop_share` is 2: must be at most 1"),
        (["bench", "--dataset", "spider", "--root", "missing"], "is not a folder"),
        (["bench", "--dataset", "jsonl", "--root", "x", "--methods", "evo"], "no method 'evo'"),
        (["bench", "--dataset", "jsonl", "--root", "x", "--methods", "best_of_k"], "add evosql"),
        (["bench", "--dataset", "oracle", "--root", "x"], "'oracle' is not one of"),
    ],
)
def test_wrong_input_is_one_line_that_names_it(call: Call, arguments: list[str], message: str) -> None:
    code, out, err = call("sql", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_without_an_engine_asking_is_a_missing_prerequisite(call: Call, demo: Demo) -> None:
    for command in (["ask", "How many customers?"], ["check", "SELECT 1"]):
        code, out, err = call("sql", *command, "--db", str(demo.database), "--json")
        assert code == 3, err
        assert json.loads(out)["error"]["type"] == "EngineUnavailable"
    code, _, err = call("sql", "bench", "--dataset", "jsonl", "--root", str(demo.questions))
    assert code == 3, err


def test_settings_are_given_by_option_or_by_name() -> None:
    settings = settings_of({"rounds": 2, "seed": None}, ["bonus_cap=1.5", "payload=2"])
    assert (settings.rounds, settings.seed, settings.bonus_cap, settings.payload) == (2, 0, 1.5, 2)
    named = settings_of({}, ["critic_mode=grouped", "temperature=null", "empty_is_suspect=false"])
    assert (named.critic_mode, named.temperature, named.empty_is_suspect) == ("grouped", None, False)
    assert settings_of({}, []).tie_break is TieBreak.EARLIER
    with pytest.raises(InputError, match="temperature"):
        settings_of({}, ["temperature=NaN"])


def test_methods_stand_in_one_order_and_are_given_once() -> None:
    assert methods_of(["majority", "evosql"]) == (Method.EVOSQL, Method.MAJORITY)
    with pytest.raises(InputError, match="method 'evosql' is given twice; give it once"):
        methods_of(["evosql", "majority", "evosql"])
    with pytest.raises(InputError, match="no method is given"):
        methods_of([])


SCHEMA = Schema(
    tables=tuple(
        Table(name=name, kind="table", sql="", columns=tuple(Column(name=c, type="") for c in columns))
        for name, columns in {"People": ("id", "Name", "city"), "pets": ("id", "owner", "kind")}.items()
    )
)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT name FROM people", {"People": ("Name",)}),
        ("SELECT * FROM people", {"People": ("id", "Name", "city")}),
        ("SELECT count(*) FROM people", {"People": ()}),
        ("SELECT p.*, q.kind FROM people p JOIN pets q ON q.owner = p.id", {"People": ("id", "Name", "city"),
                                                                           "pets": ("owner", "kind")}),
        ("SELECT kind FROM pets WHERE owner IN (SELECT id FROM people)", {"pets": ("id", "owner", "kind"),
                                                                         "People": ("id",)}),
        ("WITH pets AS (SELECT 1 AS owner) SELECT owner FROM pets", {}),
        ("SELECT \"kind\", 'city' FROM pets", {"pets": ("kind",)}),
        ("SELECT 1", {}),
    ],
)  # fmt: skip
def test_what_a_query_reads_is_named_with_tables_and_columns(sql: str, reads: dict[str, tuple[str, ...]]) -> None:
    assert named_columns(check(sql), SCHEMA) == reads
