"""The evaluator runner in its mode `assess`, and the assessment of symbolic regression against the real candidate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.frames import PREFIX, Frame, decode_head, encode, unpack_blobs
from orchestrator.evaluation.hidden import task_files
from orchestrator.evaluation.tasks import Task, load_task

if TYPE_CHECKING:
    from conftest import Launch

ROOT = Path(__file__).parents[3]
FUNCTIONS = {"f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}}}
EQUATION = "import numpy as np\n\ndef equation(t, A, c):\n    return {}\n"


def lay_out(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def verdict_of(launch: Launch, folder: Path, body: str, mode: object) -> Frame:
    header = "def {}(program, data, split):\n    {}\n"
    source = header.format("assess", body) + header.format("evaluate", "return {'m': 1}")
    lay_out(folder, {"evaluator/evaluate.py": source.encode(), "data/points": b""})
    start = {"type": "start", "split": "hidden", "functions": FUNCTIONS, "program": {"nodes": 1, "lines": 1}}
    return launch("evaluator", "--task", str(folder)).ask({**start, "mode": mode})


def test_an_assessment_is_bounded_json(launch: Launch, tmp_path: Path) -> None:
    body = "import numpy as np; return {'a': 'text', 'b': np.float64(0.5), 'c': np.int64(3), 'd': True, 'e': None}"
    frame = verdict_of(launch, tmp_path, body, "assess")
    assert frame.head["status"] == "assessed"
    assert frame.head["assessment"] == {"a": "text", "b": 0.5, "c": 3, "d": True, "e": None}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("return {}", "not a non-empty dict"),
        ("return [1]", "assess\\(\\) returned list"),
        ("return {'a': float('nan')}", "'a' of the assessment is nan"),
        ("return {'a': [1]}", "'a' of the assessment is \\[1\\]"),
        ("return {1: 1}", "1 of the assessment is 1"),
        ("return {'a': 'x' * 70000}", "more than 65536"),
    ],
)
def test_what_is_no_assessment_is_the_tasks_mistake(launch: Launch, tmp_path: Path, body: str, complaint: str) -> None:
    frame = verdict_of(launch, tmp_path, body, "assess")
    assert frame.type == "failed"
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(frame.head["message"])


def test_without_a_mode_it_evaluates(launch: Launch, tmp_path: Path) -> None:
    assert verdict_of(launch, tmp_path, "return {'a': 1}", "evaluate").head["metrics"] == {"m": 1.0}


def test_an_unknown_mode_ends_the_runner(launch: Launch, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="there is no mode 'guess'"):
        verdict_of(launch, tmp_path, "return {'a': 1}", "guess")


@pytest.fixture(scope="module")
def crk35() -> Task:
    return load_task(ROOT / "tasks" / "symbolic_regression" / "CRK35")


@pytest.fixture(scope="module")
def data(launch_once: Launch, crk35: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluator code and training data, as they lie in the volume."""
    folder = lay_out(tmp_path_factory.mktemp("crk35"), task_files(crk35, {}))
    (folder / "data").mkdir(exist_ok=True)
    frame = launch_once("evaluator", "--task", str(folder)).ask({"type": "generate", "split": "train", "seed": "1"})
    files = unpack_blobs(frame.head["blobs"], frame.body)
    return lay_out(folder, {f"data/{name}": content for name, content in files.items()})


def assess(launch: Launch, task: Task, folder: Path, equation: str) -> dict[str, Any]:
    candidate = launch("python")
    program = {"program.py": EQUATION.format(equation)}
    candidate.start(program, entry="program.py", functions=task.functions())
    loaded = candidate.receive()
    assert loaded is not None
    runner = launch("evaluator", "--task", str(folder))
    start = {"type": "start", "mode": "assess", "split": "train", "functions": task.functions()}
    frame = runner.ask({**start, "program": {"nodes": 1, "lines": 1}})
    while frame.type == "to-candidate":
        head_bytes, _ = PREFIX.unpack_from(frame.body)
        end = PREFIX.size + head_bytes
        answer = candidate.ask(decode_head(frame.body[PREFIX.size : end]), frame.body[end:])
        frame = runner.ask({"type": "from-candidate"}, encode(answer))
    assert frame.head.get("status") == "assessed", json.dumps(dict(frame.head))
    return dict(frame.head["assessment"])


@pytest.mark.parametrize(
    ("equation", "nodes", "tier"),
    [
        ("A * (c[0] * np.log(t + c[1]) + c[2])", 10, "exact"),
        ("A * (0.06226 * np.log(t + 1.061) - 0.14) + 1e-9 * A**2", 16, "negligible-extra-terms"),
        ("c[0] + c[1] * t", 5, "not-recovered"),
    ],
)
def test_an_equation_is_assessed_with_its_fitted_constants(
    launch: Launch, crk35: Task, data: Path, equation: str, nodes: int, tier: str
) -> None:
    found = assess(launch, crk35, data, equation)
    assert set(found) == set(crk35.spec.assessment)
    assert (found["structure"], found["nodes"]) == (tier, nodes)
    if tier == "exact":
        assert found["equation"] == "A*(0.06226*log(t + 1.061) - 0.14)"
        assert found["form"] == "A*(c[0]*log(t + c[1]) + c[2])"
        assert found["fitted"].startswith("c[0] = 0.0622")


def test_an_equation_that_keeps_sympy_busy_for_ever_is_not_assessed(
    launch: Launch, crk35: Task, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hurried"
    shutil.copytree(data, folder)
    code = folder / "evaluator" / "assessment.py"
    code.write_text(code.read_text(encoding="utf-8").replace("= 30, 80", "= 3, 80"), encoding="utf-8")
    found = assess(launch, crk35, folder, "A * (0.06226*np.log(t + 1.061) - 0.14) + (0.001*(A + t + A*t))**300.0")
    assert (found["structure"], found["reason"]) == ("not-assessed", "timeout")
    assert found["nodes"] > 9
