"""The job shop in real containers, with fewer jobs: figures, and how programs that fail end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.sandbox.adapter import DockerSandbox
from tests.this_run import RUN

pytestmark = pytest.mark.docker

TASK = Path(__file__).parents[2] / "tasks" / "dynamic_job_shop"
SMALLER = {"COUNTED = range(500, 2500)": "COUNTED = range(10, 40)", "MOST_JOBS = 20_000": "MOST_JOBS = 500"}
ARGUMENTS = (
    "processing_time, remaining_work, remaining_operations, due_date, job_arrival, queue_arrival, next_time, winq"
)
HEADER = f"import numpy as np\n\ndef score({ARGUMENTS}, now, queue_length):\n    "
Evaluate = Callable[..., Verdict]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """The task with fewer jobs, which needs a second instead of a minute."""
    folder = tmp_path_factory.mktemp("tasks") / "dynamic_job_shop"
    shutil.copytree(TASK, folder)
    source = (folder / "evaluator" / "arrivals.py").read_text()
    for old, new in SMALLER.items():
        assert old in source
        source = source.replace(old, new)
    (folder / "evaluator" / "arrivals.py").write_text(source)
    return load_task(folder)


@pytest.fixture(scope="module")
def evaluate(sandbox: DockerSandbox, task: Task, tmp_path_factory: pytest.TempPathFactory) -> Evaluate:
    store = SplitStore(home=tmp_path_factory.mktemp("home"), seeds=SeedSource.public())
    host = EvaluatorHost(sandbox, task, "hidden", store)

    def run(body: str | None = None) -> Verdict:
        payload = task.initial if body is None else FileTree({"program.py": f"{HEADER}{body}\n".encode()})
        return host.evaluate(payload, run_id=RUN, attempt_id="test")

    return run


def test_spt_does_not_deviate_and_its_fitness_is_one_over_its_ratio(evaluate: Evaluate) -> None:
    found = evaluate().metrics
    assert found is not None
    assert found["deviation"] == 0
    assert found["fitness"] == 1 / found["tardiness_ratio"]


def test_the_reference_rule_has_ratio_1_to_the_last_digit(evaluate: Evaluate) -> None:
    found = evaluate("return -(2 * processing_time + winq + next_time)").metrics
    assert found is not None
    assert (found["fitness"], found["tardiness_ratio"]) == (1, 1)
    assert 0 < found["deviation"] < 1


@pytest.mark.parametrize(
    ("body", "ending", "said"),
    [
        ("return processing_time / 0", Ending.INVALID_RESULT, "not finite"),
        ("return processing_time[1:]", Ending.INVALID_RESULT, "wrong length"),
        ("return due_date[queue_length]", Ending.ERROR, "IndexError"),
        (
            "return job_arrival - 1e9 * (remaining_operations > 1)",
            Ending.INVALID_RESULT,
            "a counted job was still in the shop",
        ),
    ],
    ids=["not-finite", "too-short", "raises", "starves"],
)
def test_a_program_that_fails_has_no_score(evaluate: Evaluate, body: str, ending: Ending, said: str) -> None:
    verdict = evaluate(body)
    assert verdict.metrics is None
    assert verdict.failure is not None
    assert said in repr(verdict.failure)
    assert verdict.failure.ending is ending
