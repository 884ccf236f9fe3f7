"""Splits from the user's files: a file that the task cannot read is the user's mistake, everything else the task's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from scripted_sandbox import (
    Answer,
    Script,
    ScriptedSandbox,
    evaluate,
    evaluator,
    frame,
    generator,
    honest_candidate,
    scored,
)

from orchestrator.bootstrap.finals import final_splits
from orchestrator.bootstrap.splits import unused_data
from orchestrator.domain.frames import Frame
from orchestrator.domain.policies import Purpose
from orchestrator.errors import EvaluatorError, InputError, PrerequisiteError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task

TRACEBACK = """Traceback (most recent call last):
  File "/runner/evaluation.py", line 50, in handle
    channel.send({"type": "verdict"})
  File "/task/evaluator/evaluate.py", line 9, in load
    raise ValueError(msg)
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Its split `measured` comes from the file points.csv."""
    package = new_task(tmp_path, "small_task")
    document = yaml.safe_load((package / "task.yaml").read_text())
    document["splits"]["measured"] = {"source": "files", "title": "t", "files": {"points.csv": "deep/points.csv"}}
    (package / "task.yaml").write_text(yaml.safe_dump(document))
    return load_task(package)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "data" / "points.csv"
    place.parent.mkdir()
    place.write_text("other text\n")
    return place


def store_at(*roots: Path) -> SplitStore:
    return SplitStore(home=Path("/nonexistent"), seeds=SeedSource.public(), data_roots=roots)


def failing(text: str) -> Answer:
    return frame("failed", message=text)


def failing_at_once(text: str) -> Script:
    def script(received: Frame) -> Iterable[Answer]:
        del received
        yield failing(text)

    return script


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("ValueError: the file ends after 2 of 120 items\n", "the file ends after 2 of 120 items"),
        ("ValueError: first\nsecond: line\n", "first second: line"),
        ("ValueError\n", "wrong content"),
        ("UnicodeDecodeError: 'ascii' codec can't decode byte\n", "'ascii' codec can't decode byte"),
        ("json.decoder.JSONDecodeError: Expecting value: line 1\n", "Expecting value: line 1"),
        ("ZeroDivisionError: division by zero\n", None),
        ("KeyError: 'ValueError: x'\n", None),
        ("evaluation.TaskMistake: metric 'a' is nan\n", None),
    ],
)
def test_a_value_error_while_a_file_is_read_is_wrong_input(
    box: ScriptedSandbox, task: Task, file: Path, last: str, reason: str | None
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, failing_at_once(TRACEBACK + last))
    host = EvaluatorHost(box, task, "measured", store_at(file.parent))
    if reason is None:
        with pytest.raises(EvaluatorError):
            evaluate(host)
        return
    with pytest.raises(InputError) as caught:
        evaluate(host)
    message = " ".join(str(caught.value).split())
    assert message == f"{str(file)!r} cannot be used for task 'small_task': {reason}"
    assert getattr(caught.value, "__notes__", []) == []


def test_a_value_error_after_the_program_was_called_is_the_tasks_mistake(
    box: ScriptedSandbox, task: Task, file: Path
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(failing(TRACEBACK + "ValueError: ids are to be different numbers\n")))
    with pytest.raises(EvaluatorError, match="ids are to be different numbers"):
        evaluate(EvaluatorHost(box, task, "measured", store_at(file)))


def test_a_value_error_on_generated_data_is_the_tasks_mistake(box: ScriptedSandbox, task: Task, tmp_path: Path) -> None:
    box.play(Purpose.EVALUATOR, generator())
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, failing_at_once(TRACEBACK + "ValueError: x\n"))
    store = SplitStore(home=tmp_path / "home", seeds=SeedSource.public(), data_roots=[tmp_path])
    with pytest.raises(EvaluatorError, match="ValueError: x"):
        evaluate(EvaluatorHost(box, task, "hidden", store))


def test_a_good_file_is_measured(box: ScriptedSandbox, task: Task, file: Path) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(EvaluatorHost(box, task, "measured", store_at(file))).metrics is not None


@pytest.mark.parametrize("given", ["the file", "its folder", "the root"])
def test_a_file_is_found_by_itself_in_its_folder_and_below_a_root(
    box: ScriptedSandbox, task: Task, tmp_path: Path, given: str
) -> None:
    file = tmp_path / "root" / "deep" / "points.csv"
    file.parent.mkdir(parents=True)
    file.write_text("x\n")
    root = {"the file": file, "its folder": file.parent, "the root": tmp_path / "root"}[given]
    data = store_at(root).load(box, task, "measured", run_id="run")
    assert (data.files, data.places) == ({"points.csv": b"x\n"}, (str(file),))


def test_a_split_that_is_left_out_is_told_when_a_place_was_named(
    box: ScriptedSandbox, task: Task, tmp_path: Path
) -> None:
    told: list[str] = []
    assert final_splits(task, store_at(tmp_path), box, None, told.append) == ["fresh"]
    (note,) = told
    assert note.startswith("split 'measured' will not be measured: ")
    assert "'deep/points.csv'" in note
    assert str(tmp_path) in note
    assert final_splits(task, store_at(), box, None, told.append) == ["fresh"]
    assert told == [note]
    with pytest.raises(PrerequisiteError, match="is not to be found in"):
        final_splits(task, store_at(tmp_path), box, ["measured"], told.append)


def test_data_that_nothing_reads_are_told(task: Task) -> None:
    assert unused_data(task, ["hidden", "measured"], "/data") is None
    assert unused_data(task, ["hidden"], None) is None
    assert unused_data(task, ["hidden", "fresh"], "/data") == (
        "'/data' is not used: it is for measured, and measured is hidden, fresh"
    )
    plain = load_task(new_task(task.folder.parent / "more", "plain_task"))
    assert unused_data(plain, ["hidden"], "/data") == (
        "'/data' is not used: no split of task 'plain_task' comes from files"
    )
