"""Paths that cannot be looked at, and pipes where files of ours belong: told by name, and never waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.bootstrap.places import find_places
from orchestrator.cli.main import execute
from orchestrator.errors import EvolvariumError, ImageMissing, InputError, PrerequisiteError, RunStateError
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import check_task
from orchestrator.sandbox.image_lock import LOCK_FILE, building, read_lock
from orchestrator.storage.audit import AuditChain
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.locks import FileLock, holder
from orchestrator.storage.runs import RunStore

LONG = "x" * 300
Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line with a home of its own and no engine; gives exit code and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> tuple[int, str]:
        code = execute(arguments)
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "loop"
    path.symlink_to(path)
    return path


PLACES = {
    "--home": ["runs", "list", "--home"],
    "--task-root": ["task", "list", "--task-root"],
    "--data": ["evaluate", "online_bin_packing", "P", "--data"],
    "'PROGRAM'": ["evaluate", "online_bin_packing"],
    "-o": ["show", "latest", "-o"],
    "--db": ["sql", "check", "SELECT 1", "--db"],
}


@pytest.mark.parametrize("name", PLACES)
def test_a_path_that_cannot_be_looked_at_is_wrong_input_and_its_option_named(call: Call, loop: Path, name: str) -> None:
    for path in (LONG, "a/" * 2100, str(loop), "a\0b"):
        code, err = call(*PLACES[name], path)
        assert code == 2, err
        assert name in err
        assert "unexpected" not in err


def test_a_task_or_policy_with_such_a_name_is_not_known(call: Call, loop: Path) -> None:
    for name in (LONG, "a\0b", f"{loop}/x"):
        for arguments in (["task", "check", name], ["run", name], ["policy", "explain", f"{name}.yaml"]):
            code, err = call(*arguments)
            assert code == 2, err
            assert "unexpected" not in err


@pytest.mark.parametrize("home", [LONG, "~nobody-has-this-name/home"])
def test_a_home_of_the_environment_that_cannot_be_used_names_its_variable(home: str) -> None:
    with pytest.raises(InputError, match=r"\$EVOLVARIUM_HOME"):
        find_places(None, None, {"EVOLVARIUM_HOME": home})


def test_a_pipe_in_the_place_of_a_lock_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    os.mkfifo(path)
    assert holder(path) is None
    with pytest.raises(OSError, match="not a regular file"):
        FileLock(path)


@pytest.mark.parametrize("part", ["", "-wal", "-shm", "-journal", ".lock"])
def test_a_pipe_beside_a_journal_spoils_no_other_run_and_is_not_waited_for(tmp_path: Path, part: str) -> None:
    store = RunStore(tmp_path)
    (sound, journal), (odd, other) = store.create(), store.create()
    journal.close()
    other.close()
    place = store.folder(odd) / f"journal.sqlite{part}"
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    problems = {info.id: info.problem for info in store.list()}
    assert problems[sound] is None
    assert (problems[odd] is None) == (part == ".lock")
    with pytest.raises((RunStateError, PrerequisiteError), match="not a regular file"):
        SqliteJournal(store.folder(odd) / "journal.sqlite", create=False)


def test_pipes_in_the_places_of_other_files_of_the_home_are_refused(tmp_path: Path) -> None:
    for name in (LOCK_FILE, ".images.building"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ImageMissing):
        read_lock(tmp_path)
    with pytest.raises(PrerequisiteError, match="not a regular file"), building(tmp_path, lambda _: None):
        pass
    for folder in ("audit", "secrets"):
        (tmp_path / folder).mkdir(mode=0o700)
    for name in ("key.pem", "key.pub.pem", "chain.jsonl", "lock"):
        os.mkfifo(tmp_path / "audit" / name)
    for act in (lambda chain: chain.export_head(), lambda chain: chain.verify(None)):
        with pytest.raises(EvolvariumError):
            act(AuditChain(tmp_path))
    SeedSource.installation(tmp_path).seed("t", "hidden")
    (key,) = (tmp_path / "secrets").iterdir()
    key.unlink()
    os.mkfifo(key)
    with pytest.raises(PrerequisiteError):
        SeedSource.installation(tmp_path).seed("t", "hidden")


@pytest.mark.parametrize("folder", ["initial", "evaluator"])
def test_a_pipe_or_socket_in_a_package_is_refused_by_name(tmp_path: Path, folder: str) -> None:
    package = new_task(tmp_path, "t")
    os.mkfifo(package / folder / "pipe")
    assert any(f"{folder}/pipe" in problem for problem in check_task(package))
    (package / folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(package / folder / "sock"))
        assert any(f"{folder}/sock" in problem for problem in check_task(package))


@pytest.mark.parametrize(
    "code", ["x" + ".a" * 20000, "1" + "+1" * 30000, "-" * 50000 + "1"], ids=["names", "sum", "sign"]
)
@pytest.mark.parametrize("file", ["initial/program.py", "evaluator/evaluate.py"])
def test_deeply_nested_code_is_a_problem_of_its_package_and_hides_no_other(
    call: Call, tmp_path: Path, code: str, file: str
) -> None:
    new_task(tmp_path, "sound")
    (new_task(tmp_path, "deep") / file).write_text(code)
    assert call("task", "list", "--task-root", str(tmp_path))[0] == 0
    assert call("task", "check", "deep", "--task-root", str(tmp_path))[0] == 2
    assert any("nested too deeply" in problem for problem in check_task(tmp_path / "deep"))
