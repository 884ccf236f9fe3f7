"""The command line without an engine: texts, errors, exit codes, and everything that only reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.cli.json_reference import reference
from orchestrator.cli.main import execute, notes_of
from orchestrator.domain.audit import AuditRecord
from orchestrator.errors import EvaluatorError
from orchestrator.storage.audit import AuditChain

ROOT = Path(__file__).parents[2]
Call = Callable[..., tuple[int, str, str]]
RECORD = AuditRecord(
    run_id="r",
    attempt_id="i0-c01",
    purpose="candidate",
    container_id="c",
    image_digest="sha256:0",
    runtime="runc",
    policy_digest="sha256:0",
    uid=1,
    limits={},
    mounts={},
    input_digest="sha256:0",
    output_digest="sha256:0",
    ending="ok",
    detail="",
    exit_code=0,
    wall_seconds=1.0,
    cpu_seconds=None,
    memory_peak_bytes=None,
    started_at="2026-01-01T00:00:00Z",
)
PROGRAM = ROOT / "tasks/online_bin_packing/initial/program.py"
NO_ENGINE = "unix:///nonexistent/engine.sock"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line with a home of its own and no engine; gives exit code, stdout and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_the_page_on_json_documents_says_what_the_code_says() -> None:
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    assert page == reference(), "run `python -m orchestrator.cli.json_reference > docs/json.md`"


def test_the_version_is_printed(call: Call) -> None:
    code, out, _ = call("--version")
    assert code == 0
    assert out.startswith("evolvarium ")


@pytest.mark.parametrize(
    "command",
    [
        [], ["run"], ["resume"], ["show"], ["report"], ["evaluate"], ["doctor"], ["runs", "list"], ["runs", "remove"],
        ["task", "list"], ["task", "check"], ["task", "new"], ["policy", "explain"], ["images", "build"],
        ["images", "list"], ["images", "verify"], ["images", "prune"], ["sandbox", "prune"], ["audit", "verify"],
        ["audit", "head"],
    ],
)  # fmt: skip
def test_every_command_explains_itself(call: Call, command: list[str]) -> None:
    code, out, err = call(*command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: {' '.join(['evolvarium', *command])}")
    assert not command or "--json" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run"],
        ["run", "online_bin_packing", "--commits", "0"],
        ["run", "online_bin_packing", "--migration-interval", "0"],
        ["run", "online_bin_packing", "--model", "replay/latest", "--migration-interval", "3"],
        ["run", "online_bin_packing", "--commits", "many"],
        ["run", "online_bin_packing", "--seed", "-1"],
        ["run", "online_bin_packing", "--islands", "65"],
        ["run", "online_bin_packing", "--budget-usd", "-1"],
        ["run", "online_bin_packing", "--runtime", "none"],
        ["run", "online_bin_packing", "--analyses", "2", "--no-analysis"],
        ["run", "online_bin_packing", "--model", "gpt"],
        ["run", "online_bin_packing", "--model", "replay/000000000000"],
        ["run", "online_bin_packing", "--model", "replay/latest", "--seed", "3"],
        ["run", "online_bin_packing", "--policy", "nonsense"],
        ["run", "online_bin_packing", "--policy", "/nonexistent.yaml"],
        ["run", "online_bin_packing", "--or-library", "/nonexistent.txt"],
        ["run", "online_bin_packing", "--data", "/nonexistent.txt"],
        ["run", "online_bin_packing", "--data", ".", "--or-library", "."],
        ["evaluate", "online_bin_packing", str(PROGRAM), "--data", "/nonexistent.txt"],
        ["run", "nonsense"],
        ["run", "online_bin_packing", "--task-root", "/nonexistent"],
        ["resume", "latest"],
        ["resume", "abc"],
        ["show", "latest"],
        ["report", "abc"],
        ["runs", "remove", "../audit"],
        ["evaluate", "online_bin_packing", "/nonexistent.py"],
        ["evaluate", "nonsense", "/nonexistent.py"],
        ["policy", "explain", "nonsense"],
        ["task", "check", "nonsense"],
        ["task", "new", "Bad-Name"],
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(call: Call, arguments: list[str]) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("evolvarium: ")
    code, out, again = call(*arguments, "--json")
    assert (code, again) == (2, err)
    error = json.loads(out)["error"]
    assert error["exit_code"] == 2
    assert error["type"].endswith("Error")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "online_bin_packing"],
        ["evaluate", "online_bin_packing", str(ROOT / "tasks/online_bin_packing/initial/program.py")],
        ["images", "build"],
        ["images", "list"],
        ["images", "verify"],
        ["images", "prune"],
        ["sandbox", "prune"],
    ],
)
def test_without_an_engine_what_needs_one_says_so_in_one_line(call: Call, arguments: list[str]) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (3, "")
    assert err == f"evolvarium: no Docker engine answers at {NO_ENGINE}; " + err.partition("; ")[2]
    assert err.count("\n") == 1


def test_without_an_engine_no_run_is_left_behind(call: Call) -> None:
    assert call("run", "online_bin_packing")[0] == 3
    assert _json(call, "runs", "list")["runs"] == []


def test_the_doctor_names_a_missing_engine_and_its_remedy(call: Call) -> None:
    code, out, _ = call("doctor", "--json")
    assert code == 3
    document = json.loads(out)
    engine = next(finding for finding in document["findings"] if finding["topic"] == "engine")
    assert document["ready"] is False
    assert engine["status"] == "error"
    assert engine["remedy"]


@pytest.mark.parametrize(
    "command", [[], ["runs"], ["task"], ["policy"], ["images"], ["sandbox"], ["audit"]], ids=" ".join
)
def test_a_bare_group_prints_its_help_line_by_line(call: Call, command: list[str]) -> None:
    code, out, err = call(*command)
    assert (code, out) == (2, "")
    assert err.rstrip("\n") == call(*command, "--help")[1].rstrip("\n")


def test_a_home_in_a_git_work_tree_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    (tmp_path / "tree" / "home").mkdir()
    code, _, err = call("runs", "list", "--home", str(tmp_path / "tree" / "home"))
    assert code == 2
    assert "git work tree" in err


def test_a_home_that_is_a_file_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert call("runs", "list", "--home", str(tmp_path / "file"))[0] == 2


def test_a_home_that_cannot_be_made_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = call("run", "online_bin_packing", "--home", str(tmp_path / "file" / "home"))
    assert code == 2
    assert "cannot write to the home" in err


def test_tasks_are_listed_checked_and_made(call: Call, tmp_path: Path) -> None:
    assert "online_bin_packing" in {task["name"] for task in _json(call, "task", "list")["tasks"]}
    assert _json(call, "task", "check", "online_bin_packing")["valid"] is True
    made = _json(call, "task", "new", "my_task", "--into", str(tmp_path))
    assert "task.yaml" in made["files"]
    assert _json(call, "task", "check", "my_task", "--task-root", str(tmp_path))["valid"] is True
    (tmp_path / "my_task" / "task.yaml").write_text("version: 2\n")
    code, out, _ = call("task", "check", "my_task", "--task-root", str(tmp_path))
    assert code == 2
    assert out.startswith(f"{tmp_path / 'my_task'} is not well formed:\n- task.yaml: ")
    assert "version" in out


@pytest.mark.parametrize("option", ["--data", "--or-library"])
def test_an_error_names_the_option_that_was_typed(call: Call, option: str) -> None:
    for command in (["run", "online_bin_packing"], ["evaluate", "online_bin_packing", str(PROGRAM)]):
        err = call(*command, option, "/nonexistent.txt")[2]
        assert f"there is no '/nonexistent.txt'; {option} takes a file" in err


def test_data_that_no_split_takes_are_told_before_anything_begins(call: Call, tmp_path: Path) -> None:
    assert call("task", "new", "my_task", "--into", str(tmp_path))[0] == 0
    package = tmp_path / "my_task"
    for command in (["run", str(package)], ["evaluate", str(package), str(package / "initial/program.py")]):
        first, second = call(*command, "--data", str(tmp_path))[2].splitlines()
        assert first == f"{str(tmp_path)!r} is not used: no split of task 'my_task' comes from files"
        assert "no Docker engine" in second


def test_a_new_task_does_not_take_the_name_of_a_task_that_comes_with_the_project(call: Call, tmp_path: Path) -> None:
    code, _, err = call("task", "new", "online_bin_packing", "--into", str(tmp_path))
    assert code == 2
    assert "task name 'online_bin_packing' is taken by" in err
    assert list(tmp_path.glob("online*")) == []


def test_a_public_folder_that_nobody_sees_is_a_note_of_the_check(call: Call, tmp_path: Path) -> None:
    assert call("task", "new", "my_task", "--into", str(tmp_path))[0] == 0
    (tmp_path / "my_task" / "public").mkdir()
    document = _json(call, "task", "check", str(tmp_path / "my_task"))
    assert document["valid"] is True
    assert "no key `public`" in document["notes"][0]


def test_a_task_with_one_problem_is_refused_without_a_stray_dash(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "task.yaml").write_text("- 1\n")
    err = call("run", str(tmp_path / "empty"))[2]
    assert "is not well formed: task.yaml: must be a mapping of keys to values" in err


def test_the_commands_in_a_new_task_work_from_where_it_was_made(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("task", "new", "my_task", "--into", "some/folder")[0] == 0
    text = (tmp_path / "some/folder/my_task/README.md").read_text(encoding="utf-8")
    check, evaluate, _ = (line.split()[1:] for line in text.splitlines() if line.startswith("evolvarium "))
    assert call(*check)[0] == 0
    code, _, err = call(*evaluate)
    assert code == 3, "all that is missing is an engine"
    assert NO_ENGINE in err


def test_wrong_limits_of_a_task_are_named_by_key_without_words_of_the_checker(call: Call, tmp_path: Path) -> None:
    assert call("task", "new", "my_task", "--into", str(tmp_path))[0] == 0
    file = tmp_path / "my_task" / "task.yaml"
    text = file.read_text()
    file.write_text(text.replace("load_cpu_seconds: 5", "load_cpu_secs: 5"))
    code, out, _ = call("task", "check", str(tmp_path / "my_task"))
    assert code == 2
    assert "`limits.candidate.load_cpu_secs` is not a key that is known here" in out
    assert "Value error" not in out
    assert "validation error" not in out
    file.write_text(text.replace("load_cpu_seconds: 5", "load_cpu_seconds: 3000"))
    document = _json(call, "task", "check", str(tmp_path / "my_task"))
    assert document["valid"] is True
    (note,) = document["notes"]
    assert "`limits.candidate.load_cpu_seconds` is 3000, above the 10 that policy 'default' grants" in note


def test_an_evaluation_that_cannot_be_made_is_an_error_in_its_junit_report(call: Call, tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    program = str(ROOT / "tasks/online_bin_packing/initial/program.py")
    assert call("evaluate", "online_bin_packing", program, "--junit", str(report))[0] == 3
    suite = ET.parse(report).getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("type") == "EngineUnavailable"


def test_the_notes_of_an_error_and_of_its_causes_are_told_once() -> None:
    cause, error = EvaluatorError("inner"), EvaluatorError("outer")
    cause.add_note("Traceback: evaluate.py, line 3\n")
    error.__cause__ = cause
    error.add_note("Traceback: evaluate.py, line 3\n")
    assert notes_of(error) == ["Traceback: evaluate.py, line 3"]
    assert notes_of(EvaluatorError("plain")) == []


def test_a_policy_is_explained_in_words_and_settings(call: Call) -> None:
    document = _json(call, "policy", "explain", "default")
    candidate = next(purpose for purpose in document["purposes"] if purpose["purpose"] == "candidate")
    assert candidate["settings"]["HostConfig"]["NetworkMode"] == "none"
    assert any("no network" in sentence for sentence in candidate["words"])
    assert "NetworkMode" in call("policy", "explain", str(ROOT / "policies/default.yaml"), "--settings")[1]


def test_a_policy_says_which_databases_can_be_read(call: Call, tmp_path: Path) -> None:
    assert _json(call, "policy", "explain", "default")["data"][0]["databases"] == ["*"]
    assert "1. Of every database, all tables and views may be read." in call("policy", "explain", "default")[1]
    (tmp_path / "none.yaml").write_text("version: 1\nname: none\npurposes: {}\n")
    assert _json(call, "policy", "explain", str(tmp_path / "none.yaml"))["data"] == []
    assert "No database can be read: no data rule." in call("policy", "explain", str(tmp_path / "none.yaml"))[1]


def test_a_file_beside_us_that_is_no_policy_is_said_to_be_none(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README").write_text("# A project\n\nIt has: no policy: here\n")
    monkeypatch.chdir(tmp_path)
    code, _, err = call("policy", "explain", "README")
    assert code == 2
    assert "'README' is no policy, which is a YAML file (docs/policies.md has an example)" in err


def test_a_runtime_override_may_only_tighten(call: Call, tmp_path: Path) -> None:
    gvisor = (ROOT / "policies/default.yaml").read_text().replace("image: python", "image: python\n    runtime: runsc")
    (tmp_path / "gvisor.yaml").write_text(gvisor)
    code, _, err = call("policy", "explain", str(tmp_path / "gvisor.yaml"), "--runtime", "runc")
    assert code == 2
    assert "may only tighten" in err
    tightened = _json(call, "policy", "explain", "default", "--runtime", "runsc")
    assert {purpose["settings"]["HostConfig"]["Runtime"] for purpose in tightened["purposes"]} == {"runsc"}


def test_without_an_audit_chain_there_is_nothing_to_examine_and_no_head(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("audit", "verify", "--json")
    assert (code, json.loads(out)["intact"]) == (3, False)
    assert "no chain to examine" in call("audit", "verify")[1]
    code, _, err = call("audit", "head")
    assert code == 3
    assert err.count("\n") == 1
    assert not (tmp_path / "home").exists()


def test_an_audit_chain_that_was_removed_is_broken(call: Call, tmp_path: Path) -> None:
    AuditChain(tmp_path / "home").append(RECORD)
    assert call("audit", "verify")[0] == 0
    (tmp_path / "home" / "audit" / "chain.jsonl").unlink()
    code, out, _ = call("audit", "verify")
    assert code == 1
    assert "it was removed" in out


def test_an_outside_head_is_taken_with_and_without_its_prefix_and_nothing_else_is(call: Call, tmp_path: Path) -> None:
    chain = AuditChain(tmp_path / "home")
    chain.append(RECORD)
    head = chain.export_head()["head"]
    for text in (head, head.removeprefix("sha256:")):
        assert call("audit", "verify", "--head", text)[0] == 0
    assert call("audit", "verify", "--head", "0" * 64)[0] == 1
    code, out, err = call("audit", "verify", "--head", "abc")
    assert (code, out) == (2, "")
    assert "64 hex digits" in err


@pytest.mark.parametrize(
    "command",
    [
        ["runs", "list"], ["runs", "remove", "latest", "--yes"], ["show", "latest"], ["report", "latest"],
        ["audit", "verify"], ["audit", "head"], ["images", "list"], ["images", "verify"], ["images", "prune"],
    ],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
def test_a_home_that_was_named_and_is_not_there_is_wrong_input_where_nothing_makes_it(
    call: Call, tmp_path: Path, command: list[str]
) -> None:
    code, out, err = call(*command, "--home", str(tmp_path / "typo"))
    assert (code, out) == (2, "")
    assert f"there is no home '{tmp_path / 'typo'}'" in err
    assert not (tmp_path / "typo").exists()


def test_the_head_of_the_audit_chain_is_printed_whole(call: Call, tmp_path: Path) -> None:
    chain = AuditChain(tmp_path / "home")
    chain.append(RECORD)
    code, out, _ = call("audit", "head")
    assert code == 0
    exported = chain.export_head()
    for name in ("head", "signature"):
        assert f"{name}: {exported[name]}" in out.splitlines()


def test_a_damaged_home_gives_one_line_and_no_traceback(call: Call, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "audit").write_text("not a folder")
    code, _, err = call("audit", "head")
    assert code == 3
    assert err.count("\n") == 1


def _json(call: Call, *arguments: str) -> dict[str, Any]:
    code, out, err = call(*arguments, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document
