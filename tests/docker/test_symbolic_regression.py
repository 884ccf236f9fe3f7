"""An equation through the real boundary: symbols in one container, fitting in another, the training data in a third."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.public_data import with_public_data
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.sandbox.adapter import DockerSandbox
from tests.this_run import RUN

pytestmark = pytest.mark.docker

TASK = Path(__file__).parents[2] / "tasks" / "symbolic_regression" / "PO7"
LAW = """
import numpy as np

def equation(t, x, v, c):
    return c[0] * v**3 + c[1] * x**3 + c[2] * np.abs(v) ** c[3]
"""
NOT_FINITE = "def equation(t, x, v, c):\n    return c[0] / (x - x)\n"
LOOK = """
import os
import numpy as np

with open("data/train.csv") as file:
    print(os.listdir("data"), file.readline().strip(), np.loadtxt(file, delimiter=",").shape)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SplitStore:
    return SplitStore(home=tmp_path_factory.mktemp("home"), seeds=SeedSource.public())


@pytest.fixture(scope="module")
def task(sandbox: DockerSandbox, store: SplitStore) -> Task:
    return with_public_data(load_task(TASK), store, sandbox, run_id=RUN)


@pytest.fixture(scope="module")
def host(sandbox: DockerSandbox, task: Task, store: SplitStore) -> EvaluatorHost:
    return EvaluatorHost(sandbox, task, "train", store)


def test_the_true_law_is_fitted_to_round_off(host: EvaluatorHost) -> None:
    verdict = host.evaluate(FileTree({"program.py": LAW.encode()}), run_id=RUN, attempt_id="law")
    assert verdict.metrics is not None, verdict
    assert 0 < verdict.metrics["nmse"] < 1e-13
    assert verdict.metrics["fitness"] == -verdict.metrics["nmse"]
    assert (verdict.metrics["nodes"], verdict.metrics["constants"]) == (18 / 30, 4 / 10)


def test_what_gives_no_numbers_is_refused_with_the_tasks_words(host: EvaluatorHost) -> None:
    verdict = host.evaluate(FileTree({"program.py": NOT_FINITE.encode()}), run_id=RUN, attempt_id="not-finite")
    assert verdict.failure is not None, verdict
    assert verdict.failure.ending is Ending.INVALID_RESULT
    assert "no finite numbers" in (verdict.failure.message or "")


def test_an_analysis_sees_the_training_data_and_nothing_else(sandbox: DockerSandbox, task: Task) -> None:
    result = SandboxAnalyst(sandbox, task).analyse(FileTree({"analysis.py": LOOK.encode()}), run_id=RUN, attempt_id="a")
    assert result.output.decode().split("\n")[0] == "['train.csv'] t,x,v,dv_dt (4000, 4)", result
