"""The job shop's `evaluate.py` on small simulations, in one plain process: figures, data and refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TASK = ROOT / "tasks" / "dynamic_job_shop"
PLAIN = ROOT / "tests" / "bench" / "plain"
SMALLER = {"COUNTED = range(500, 2500)": "COUNTED = range(10, 60)", "MOST_JOBS = 20_000": "MOST_JOBS = 2000"}
GENERATE = """
import sys
sys.path[:0] = sys.argv[1:3]
from evaluate import generate
for name, content in generate(7, "hidden").items():
    open(f"{sys.argv[3]}/{name}", "wb").write(content)
"""
ARGUMENTS = (
    "processing_time, remaining_work, remaining_operations, due_date, job_arrival, queue_arrival, next_time, winq"
)
HEADER = f"def score({ARGUMENTS}, now, queue_length):\n    return "


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The task's evaluator with fewer jobs, and the data that it generates."""
    folder = tmp_path_factory.mktemp("job_shop")
    evaluator, data = folder / "evaluator", folder / "data"
    shutil.copytree(TASK / "evaluator", evaluator)
    data.mkdir()
    source = (evaluator / "arrivals.py").read_text()
    for old, new in SMALLER.items():
        assert old in source
        source = source.replace(old, new)
    (evaluator / "arrivals.py").write_text(source)
    subprocess.run([sys.executable, "-I", "-B", "-c", GENERATE, str(PLAIN), str(evaluator), str(data)], check=True)
    return evaluator, data


def run(places: tuple[Path, Path], program: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-B", str(PLAIN), *map(str, places), "hidden", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def metrics(places: tuple[Path, Path], program: Path) -> Any:
    finished = run(places, program)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_spt_does_not_deviate_and_its_fitness_is_one_over_its_ratio(places: tuple[Path, Path]) -> None:
    found = metrics(places, TASK / "initial" / "program.py")
    assert set(found) == {"fitness", "tardiness_ratio", "ast_nodes", "deviation"}
    assert found["deviation"] == 0
    assert found["fitness"] == 1 / found["tardiness_ratio"]
    assert 0 < found["ast_nodes"] < 1


def test_the_reference_rule_has_ratio_1_by_what_was_generated(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{HEADER}-(2 * processing_time + winq + next_time)\n")
    found = metrics(places, tmp_path / "program.py")
    assert (found["fitness"], found["tardiness_ratio"]) == (1, 1)
    assert 0 < found["deviation"] < 1


def test_a_rule_that_keeps_a_counted_job_waiting_is_refused(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{HEADER}job_arrival - 1e9 * (remaining_operations > 1)\n")
    finished = run(places, tmp_path / "program.py")
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1].endswith("Refused: starved")


def test_damaged_data_are_an_error_before_the_program_is_opened(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "simulations.json").write_text("{}")
    (tmp_path / "program.py").write_text(f"{HEADER}1 / 0\n")
    finished = run((places[0], tmp_path), tmp_path / "program.py")
    assert finished.returncode == 1
    assert "ValueError: simulations.json does not hold 10 different seeds" in finished.stderr
