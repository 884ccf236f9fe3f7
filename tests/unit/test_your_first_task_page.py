"""docs/your-first-task.md: its files make a task that is well formed, and its commands are those there are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from orchestrator.evaluation.tasks import check_task, load_task
from tests.first_task_page import PAGE, commands, files, write_files
from tests.in_process import without_engine


def test_the_files_of_the_page_replace_those_of_a_new_task_and_fit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    new, check, *_ = (shlex.split(command)[1:] for command in commands() if command.startswith("evolvarium task"))
    assert call(*new)[0] == 0
    package = tmp_path / "cooling"
    made = {file.relative_to(tmp_path).as_posix() for file in package.rglob("*") if file.is_file()}
    assert made == {*files(), "cooling/README.md"}
    write_files(tmp_path)
    assert check_task(package) == []
    code, out, _ = call(*check)
    assert code == 0
    assert out in PAGE
    assert set(load_task(package).initial) == {"program.py", "model.py"}


def test_commands_of_the_page_need_nothing_but_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    assert call("task", "new", "cooling", "--two-modules")[0] == 0
    write_files(tmp_path)
    searching = [shlex.split(command)[1:] for command in commands() if "--public-seed" in command]
    assert [arguments[0] for arguments in searching] == ["evaluate", "run", "evaluate"]
    for arguments in searching[:2]:
        code, _, err = call(*arguments)
        assert code == 3, err
        assert "no Docker engine" in err
