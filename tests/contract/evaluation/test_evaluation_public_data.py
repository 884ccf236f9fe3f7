"""Public data that come from a generated split: only the named files reach analyses, and the same again later."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scripted_sandbox import Answer, ScriptedSandbox, frame

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.errors import EvaluatorError
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.public_data import with_public_data
from orchestrator.evaluation.tasks import Task, check_task, load_task

FILES = {"train.csv": b"x,y\n1,2\n", "answers.csv": b"3\n"}


def generating(received: Frame) -> list[Answer]:
    assert received.type == "generate"
    table, body = pack_blobs(FILES)
    return [frame("generated", body, blobs=table, last=True)]


def with_public(task: Task, split: str, *files: str) -> Path:
    file = task.folder / "task.yaml"
    document = yaml.safe_load(file.read_text())
    document["public"] = {"split": split, "files": list(files)}
    file.write_text(yaml.safe_dump(document))
    return task.folder


@pytest.fixture
def published(task: Task) -> Task:
    return load_task(with_public(task, "hidden", "train.csv"))


def test_only_the_named_files_are_public(box: ScriptedSandbox, published: Task, store: SplitStore) -> None:
    box.play(Purpose.EVALUATOR, generating)
    assert (published.public, published.view.has_public_data) == ({}, True)
    task = with_public_data(published, store, box, run_id="r")
    assert task.public == {"train.csv": FILES["train.csv"]}


def test_an_analysis_mounts_them_and_nothing_else(box: ScriptedSandbox, published: Task, store: SplitStore) -> None:
    box.play(Purpose.EVALUATOR, generating)
    analysis = box.play(Purpose.ANALYSIS, lambda _: [frame("done", exit_code=0, signal=None, disk_full=False)])
    task = with_public_data(published, store, box, run_id="r")
    SandboxAnalyst(box, task).analyse(FileTree({"analysis.py": b""}), run_id="r", attempt_id="a")
    assert analysis.request is not None
    assert set(analysis.request.mounts) == {MountRole.PUBLIC}
    assert box.volumes[analysis.request.mounts[MountRole.PUBLIC]] == {"train.csv": FILES["train.csv"]}


def test_a_file_that_is_not_generated_is_the_tasks_failure(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    box.play(Purpose.EVALUATOR, generating)
    wrong = load_task(with_public(task, "hidden", "test.csv"))
    with pytest.raises(EvaluatorError, match=r"no file 'test.csv' for split 'hidden'.* it generates answers.csv, trai"):
        with_public_data(wrong, store, box, run_id="r")


def test_a_task_without_such_data_stays_as_it_is(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    assert with_public_data(task, store, box, run_id="r") is task


def test_public_data_come_from_a_generated_split(task: Task) -> None:
    (problem,) = check_task(with_public(task, "holdout", "train.csv"))
    assert problem.startswith("task.yaml: `public.split` is 'holdout'; it must be one of the generated splits [")
