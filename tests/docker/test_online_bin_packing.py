"""The bin packing task in real containers: the exact figures of the literature, and honest programs' promises."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import InputError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.sandbox.adapter import DockerSandbox
from tests.this_run import RUN

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("EVOLVARIUM_DATA", ROOT.parent / "shared" / "data"))
Evaluate = Callable[..., Verdict]

FUNSEARCH_OR = """
import numpy as np

def priority(item, bins):
    left = bins - item
    ends = np.array([2, 3, 5, 7, 9, 12, 15, 21])
    return np.array([4, 3, 2, 1, 0.9, 0.95, 0.97, 0.98, 0.99])[np.searchsorted(ends, left)]
"""

COUNTING = """
import numpy as np

seen = []
draws = []

def priority(item, bins):
    seen.append(item)
    draws.append(np.random.random())
    if len(seen) > 120 or (len(seen) == 1) != (bins.sum() == 120 * 150):
        raise AssertionError
    if len(draws) == 1 and draws[0] != FIRST:
        raise ValueError
    return item - bins * 1.0

np.random.seed(7)
FIRST = np.random.RandomState(7).random_sample()
"""


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task(ROOT / "tasks" / "online_bin_packing")


@pytest.fixture(scope="module")
def evaluate(sandbox: DockerSandbox, task: Task, tmp_path_factory: pytest.TempPathFactory) -> Evaluate:
    home = tmp_path_factory.mktemp("home")
    public, secret = SeedSource.public(), SeedSource.installation(home)
    hosts: dict[tuple[str, bool], EvaluatorHost] = {}

    def run(program: str | None = None, *, split: str = "hidden", is_public: bool = True) -> Verdict:
        if (split, is_public) not in hosts:
            store = SplitStore(home=home, seeds=public if is_public else secret, data_roots=[DATA])
            hosts[split, is_public] = EvaluatorHost(sandbox, task, split, store)
        payload = task.initial if program is None else FileTree({"program.py": program.encode()})
        return hosts[split, is_public].evaluate(payload, run_id=RUN, attempt_id="test")

    return run


def metric(verdict: Verdict, name: str) -> float:
    assert verdict.metrics is not None, verdict
    return verdict.metrics[name]


@pytest.mark.skipif(not (DATA / "or_library" / "binpack1.txt").is_file(), reason="or_library/binpack1.txt is absent")
@pytest.mark.parametrize(("program", "bins"), [(None, 1038), (FUNSEARCH_OR, 1033)])
def test_or1_comes_out_exactly(evaluate: Evaluate, program: str | None, bins: int) -> None:
    verdict = evaluate(program, split="or1")
    assert metric(verdict, "excess_percent") == pytest.approx(100 * (bins / 981 - 1), abs=1e-9)
    assert metric(verdict, "fitness") == pytest.approx(981 / bins, abs=1e-12)
    assert not verdict.secret


@pytest.mark.parametrize("split", ["hidden", "fresh"])
def test_best_fit_has_the_known_excess_on_secret_sets(evaluate: Evaluate, split: str) -> None:
    verdict = evaluate(split=split, is_public=False)
    assert 5.9 < metric(verdict, "excess_percent") < 7.0
    assert metric(verdict, "deviation") == 0
    assert verdict.secret
    assert {"candidate_image", "evaluator_image", "data", "evaluator", "policy"} < set(verdict.fingerprint)


def test_the_public_seed_repeats_exactly_and_is_not_secret(evaluate: Evaluate) -> None:
    verdicts = [evaluate() for _ in range(2)]
    assert verdicts[0].metrics == verdicts[1].metrics
    assert metric(verdicts[0], "excess_percent") == pytest.approx(6.7422680412371, abs=1e-9)
    assert not verdicts[0].secret


def test_phases_differ(evaluate: Evaluate) -> None:
    data = {evaluate(split=split, is_public=is_public).fingerprint["data"] for split in ("hidden", "fresh")
            for is_public in (True, False)}  # fmt: skip
    assert len(data) == 4


def test_a_program_meets_each_sequence_in_the_state_right_after_loading(evaluate: Evaluate) -> None:
    assert evaluate(COUNTING).metrics is not None


def test_an_evaluation_stays_well_within_its_memory(evaluate: Evaluate, sandbox: DockerSandbox) -> None:
    del sandbox
    peak = evaluate().outcome.memory_peak_bytes
    assert peak is not None
    assert peak < 384 << 20  # of 512 MiB, with a hundred copies of the program


def test_a_short_or_library_file_is_an_error_and_no_score(sandbox: DockerSandbox, task: Task, tmp_path: Path) -> None:
    (tmp_path / "binpack1.txt").write_text("20\n u120_00\n 150 120 48\n42\n69\n")
    store = SplitStore(home=tmp_path, seeds=SeedSource.public(), data_roots=[tmp_path / "binpack1.txt"])
    host = EvaluatorHost(sandbox, task, "or1", store)
    complaint = r"binpack1.txt' cannot be used .*: the file ends after 2 of 120 items of instance 1 of 20"
    with pytest.raises(InputError, match=complaint):
        host.evaluate(task.initial, run_id=RUN, attempt_id="test")
