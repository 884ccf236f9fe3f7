"""What an operator learns of a program that fails: more than a model does."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.evaluating import _document, _sentence
from orchestrator.cli.files import read_program
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.messages import LOAD_CHECK
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import Task, load_task
from tests.in_process import without_engine

OUTCOME = Outcome(
    ending=Ending.ERROR,
    exit_code=0,
    wall_seconds=0.5,
    cpu_seconds=0.25,
    memory_peak_bytes=None,
    output=b"",
    output_truncated=False,
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(new_task(tmp_path, "small_task"))


def said(task: Task, program: Path, failure: Failure) -> str:
    verdict = Verdict(split="hidden", metrics=None, failure=failure, secret=True, outcome=OUTCOME)
    tree = read_program(program, task.spec.program.entry)
    return _sentence(_document(task, str(program), tree, verdict, None), "error")


def test_a_file_is_called_by_the_name_it_was_given_and_the_missing_function_by_its_own(
    task: Task, tmp_path: Path
) -> None:
    file = tmp_path / "empty.py"
    file.write_text("")
    failure = Failure(ending=Ending.ERROR, file="program.py", message=LOAD_CHECK["function-missing"])
    assert said(task, file, failure) == (
        f"{file} has no score on 'hidden': error, {file}, a function that the task calls is not defined: estimate"
    )
    raised = Failure(ending=Ending.ERROR, exception="ValueError", file="program.py", line=3)
    assert said(task, file, raised).endswith(f"error, ValueError, {file}:3")


def test_the_main_file_that_is_missing_in_a_folder_is_named(task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "other.py").write_text("")
    missing = Failure(ending=Ending.ERROR, message=LOAD_CHECK["entry-missing"])
    assert said(task, folder, missing).endswith("error, the program's main file is missing: program.py")
    inside = Failure(ending=Ending.ERROR, file="other.py", line=1, message=LOAD_CHECK["syntax-error"])
    assert "error, other.py:1, the file is not valid Python" in said(task, folder, inside)


def test_a_single_file_of_a_program_of_several_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(tmp_path / "home", monkeypatch, capsys)
    package = new_task(tmp_path, "two", two_modules=True)
    code, _, err = call("evaluate", str(package), str(package / "initial" / "program.py"))
    assert code == 3, "all that is missing is an engine"
    assert "have the files model.py, program.py, and" in err
    assert "is without model.py; if it imports them, give the folder that holds them all" in err
    assert "is without" not in call("evaluate", str(package), str(package / "initial"))[2]
