"""`evolvarium sql` in processes of its own, on the demo shop, with real containers."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.sql_documents import SqlAnswerDocument, SqlBenchDocument, SqlCheckDocument
from orchestrator.cli.sql_question_documents import SqlQuestionDocument
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.sql.demo import Demo, write_demo
from tests.command_line import SECONDS, CommandLine, wait_until

pytestmark = pytest.mark.docker

SMALL = ("--candidates", "3", "--rounds", "2", "--seed", "1")
TIMED = frozenset({"wall_seconds"})
"""Fields that say how long something took."""


@pytest.fixture(scope="module")
def command(home: Path, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    images.verify()
    return CommandLine.beside(home, tmp_path_factory.mktemp("installation"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return write_demo(tmp_path_factory.mktemp("demo") / "shop")


@pytest.fixture(scope="module")
def bench(demo: Demo) -> tuple[str, ...]:
    return ("sql", "bench", "--dataset", "jsonl", "--root", str(demo.questions), "--limit", "6", *SMALL)


@pytest.fixture(scope="module")
def undisturbed(command: CommandLine, demo: Demo, bench: tuple[str, ...]) -> dict[str, Any]:
    """The final object of a bench that nothing disturbed."""
    before = hashlib.sha256(demo.database.read_bytes()).digest()
    ended = command.call(*bench, "--json")
    assert ended.code == 0, ended.err
    assert hashlib.sha256(demo.database.read_bytes()).digest() == before
    return ended.document


@pytest.fixture
def left(engine: Engine) -> Callable[[str], int]:
    """Counts containers of a run, in any state."""
    return lambda run_id: len(engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))


def test_a_question_gets_a_query_a_result_and_an_explanation(command: CommandLine, demo: Demo) -> None:
    ask = ("sql", "ask", "How many customers are there?", "--db", str(demo.database), *SMALL)
    ended = command.call(*ask, "--explain", "--json")
    assert ended.code == 0, ended.err
    document = SqlAnswerDocument.model_validate_json(ended.out)
    assert (document.answered, document.rows, document.row_count) == (True, [[60]], 1)
    assert document.explanation is not None
    assert len(document.explanation["rounds"]) == document.rounds
    assert command.runs() == []  # nothing is kept of it


def test_no_answer_is_exit_code_1_and_a_budget_that_covers_nothing_is_4(command: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "wide.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (" + ", ".join(f"{'long_name_' * 9}{n}" for n in range(9)) + ")")
    ask = ("sql", "ask", "List every column of every t.", "--db", str(path), "--candidates", "1", "--rounds", "1")
    cut_off = command.call(*ask, "--set", "max_output_tokens=64", "--json")
    assert cut_off.code == 1, cut_off.err
    assert cut_off.document["answered"] is False
    poor = command.call(*ask, "--budget-tokens", "10", "--json")
    assert (poor.code, poor.document["error"]["type"]) == (4, "BudgetExhausted")
    assert "this question has used" in poor.err
    assert "ask again with a higher limit on tokens" in poor.err


def test_a_check_says_what_the_policy_says_and_runs_nothing(command: CommandLine, demo: Demo) -> None:
    check = ("--db", str(demo.database), "--policy", "web_shop", "--json")
    text = command.call("sql", "check", "SELECT first_name, city FROM customers ORDER BY 1", *check[:-1]).out
    assert "4 MiB" in text
    assert "Kept back of web_shop: 17 columns" in text
    assert "staff_id, name, role, password_hash" in text
    allowed = command.call("sql", "check", "SELECT first_name, city FROM customers ORDER BY 1", *check)
    assert allowed.code == 0, allowed.err
    document = SqlCheckDocument.model_validate_json(allowed.out)
    assert document.allowed
    assert document.ordered
    assert document.reads == {"customers": ["first_name", "city"]}
    assert ("customers", "email") in {(one.table, one.column) for one in document.hidden}
    refused = command.call("sql", "check", "SELECT email FROM customers", *check)
    document = SqlCheckDocument.model_validate_json(refused.out)
    assert (refused.code, document.allowed, document.refused_by) == (1, False, "policy")
    assert "customers.email" in document.reason
    assert "redact *.email" in document.reason
    unknown = command.call("sql", "check", "SELECT nope FROM customers -- none", *check)
    document = SqlCheckDocument.model_validate_json(unknown.out)
    assert (unknown.code, document.refused_by, document.reason) == (1, "sqlite", "no such column: nope")


def test_a_bench_judges_gold_as_100_percent_and_changes_no_database(
    command: CommandLine, undisturbed: dict[str, Any], left: Callable[[str], int]
) -> None:
    document = SqlBenchDocument.model_validate(undisturbed)
    assert (document.state, document.evaluable, document.answered) == ("done", 6, 6)
    assert {share.share for share in document.gold_as_prediction.values()} == {1.0}
    assert [database.unchanged for database in document.databases] == [True]
    assert document.pass_at_k["bird"].right >= document.methods["majority"]["bird"].right
    assert document.containers_left == left(document.run) == 0
    assert command.call("audit", "verify").code == 0
    shown = command.call("show", document.run, "--json").document
    assert {**shown, "containers_left": 0} == undisturbed


def test_a_question_of_a_bench_is_shown_with_its_query_and_without_gold(
    command: CommandLine, demo: Demo, undisturbed: dict[str, Any]
) -> None:
    run_id = undisturbed["run"]
    listed = command.call("show", run_id, "--questions", "all", "--json").document["questions"]
    assert len(listed) == 6
    ended = command.call("show", run_id, listed[0]["id"], "--json")
    document = SqlQuestionDocument.model_validate(ended.document)
    assert document.text
    assert document.gold is None
    answer = next(one for one in document.answers if one.method == "evosql")
    assert (answer.query.status, answer.right) == ("ok", listed[0]["right"]["evosql"])
    assert answer.query.sql in {one.sql for one in document.queries}
    shown = SqlQuestionDocument.model_validate(
        command.call("show", run_id, listed[0]["id"], "--gold", "--json").document
    )
    assert shown.gold is not None
    assert json.dumps(shown.gold.sql) in demo.questions.read_text()
    assert json.dumps(shown.gold.sql) not in ended.out


def test_a_bench_that_has_ended_still_counts_its_containers(command: CommandLine, undisturbed: dict[str, Any]) -> None:
    again = command.call("resume", undisturbed["run"], "--json")
    assert again.code == 0, again.err
    assert again.document == undisturbed
    assert again.document["containers_left"] == 0


def test_a_bench_whose_budget_covers_no_first_round_is_refused_and_not_kept(
    command: CommandLine, bench: tuple[str, ...], undisturbed: dict[str, Any]
) -> None:
    before = command.runs()
    assert undisturbed["run"] in before
    poor = command.call(*bench, "--budget-tokens", "600", "--json")
    assert poor.code == 4, poor.err
    message = poor.document["error"]["message"]
    found = re.search(
        r"tokens per question, the share of each of 6 is 100; .* or more \((\d+) is surely enough", message
    )
    assert found is not None, message
    assert command.runs() == before
    enough = command.call(*bench, "--budget-tokens", found[1], "--methods", "majority", "--json")
    assert enough.code == 0, enough.err
    assert enough.document["not_reached"] == {"majority": 0}


def test_a_bench_without_anything_to_evaluate_is_wrong_input(command: CommandLine, demo: Demo, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "policies" / "web_shop.yaml").read_text()
    policy = tmp_path / "own.yaml"
    policy.write_text(text.replace('      - "*.email"', '      - "nobody.phone"\n      - "*.email"'))
    questions = demo.database.parent / "hidden.jsonl"
    line = {
        "id": "h1",
        "database": "web_shop",
        "question": "Which emails are there?",
        "gold": "SELECT email FROM customers",
    }
    questions.write_text(json.dumps(line) + "\n")
    ended = command.call(
        *("sql", "bench", "--dataset", "jsonl", "--root", str(questions), "--policy", str(policy), *SMALL, "--json")
    )
    assert ended.code == 2, ended.err
    message = ended.document["error"]["message"]
    assert "none of the 1 questions of jsonl can be evaluated (1 denied; question h1: " in message
    assert "data rule 1" in message
    assert "evolvarium resume" not in message
    assert "`redact nobody.phone` names nothing in database 'web_shop'" in ended.err
    assert "predicted queries of web_shop get 5 s of computing, not the 30 s of --query-seconds" in ended.err
    (run_id,) = re.findall(r"`evolvarium show ([0-9a-f]{12})`", message)
    shown = command.call("show", run_id, "--questions", "left-out", "--json").document
    assert [one["id"] for one in shown["questions"]] == ["h1"]


def test_gold_and_predictions_never_share_a_container(command: CommandLine, undisturbed: dict[str, Any]) -> None:
    chain = (command.home / "audit" / "chain.jsonl").read_text()
    mine = [line for line in chain.splitlines() if undisturbed["run"] in line]
    attempts = {domain: [line for line in mine if f'"{domain}/web_shop/' in line] for domain in ("gold", "predicted")}
    assert all(attempts.values())
    assert len(attempts["gold"]) + len(attempts["predicted"]) == len(mine)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_resumed_bench_comes_to_the_same_end(
    command: CommandLine,
    bench: tuple[str, ...],
    undisturbed: dict[str, Any],
    left: Callable[[str], int],
    kills: int,
) -> None:
    expected = command.records(undisturbed["run"])
    moments = sorted(secrets.SystemRandom().sample(range(2, len(expected) - 2), kills))
    run_id = command.killed_at(moments[0], *bench)
    for moment in moments[1:]:
        command.killed_at(moment, "resume", run_id)
    ended = command.call("resume", run_id, "--json")
    assert ended.code == 0, (moments, ended.err)
    assert {**ended.document, "run": ""} == {**undisturbed, "run": ""}, moments
    assert _timeless(command.records(run_id)) == _timeless(expected), moments
    assert left(run_id) == 0


def test_a_policy_that_hides_columns_takes_gold_that_needs_them_out_of_the_denominator(
    command: CommandLine, demo: Demo
) -> None:
    ended = command.call(
        *("sql", "bench", "--dataset", "jsonl", "--root", str(demo.questions), "--policy", "web_shop"),
        *("--candidates", "1", "--rounds", "1", "--methods", "majority", "--json"),
    )
    assert ended.code == 0, ended.err
    document = SqlBenchDocument.model_validate(ended.document)
    denied = [one for one in document.left_out if one.standing == "denied"]
    assert denied
    assert all("data rule 1" in one.reason for one in denied)
    assert document.evaluable == document.questions - len(document.left_out)
    assert document.methods["majority"]["bird"].of == document.evaluable
    assert {share.share for share in document.gold_as_prediction.values()} == {1.0}
    assert document.databases[0].hidden > 0


def test_a_bench_does_not_go_on_with_other_questions(
    command: CommandLine, tmp_path: Path, left: Callable[[str], int]
) -> None:
    demo = write_demo(tmp_path / "shop")
    bench = ("sql", "bench", "--dataset", "jsonl", "--root", str(demo.questions), "--limit", "3", *SMALL)
    process = command.start(*bench)
    run_id = command.new_run(process)
    wait_until(process, lambda: left(run_id) > 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, err
    assert f"evolvarium resume {run_id}" in err
    assert "Traceback" not in err
    assert left(run_id) == 0
    demo.questions.write_text(demo.questions.read_text().replace("customers", "clients"))
    refused = command.call("resume", run_id)
    assert refused.code == 2
    assert "the data set has changed since the run began" in refused.err


def _timeless(records: dict[str, Any]) -> dict[str, Any]:
    """Records without what depends on how fast the machine was."""
    return {
        key: {name: value for name, value in record.items() if name not in TIMED} for key, record in records.items()
    }
