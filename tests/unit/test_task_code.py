"""What is found wrong with a task's own code without running it, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import check_task

EVALUATE = "evaluator/evaluate.py"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return new_task(tmp_path, "small_task")


def changed(package: Path, old: str, new: str) -> list[str]:
    """Problems after a change to evaluate.py."""
    file = package / EVALUATE
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return [problem.removeprefix(f"{EVALUATE}, ") for problem in check_task(package)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("import numpy as np", "import pandas as np", "line 9: imports 'pandas', which its container does not have"),
        ("import numpy as np", "from numppy import x", "line 9: imports 'numppy', which its container does not have"),
        ('"estimate", np', '"estimat", np', "'estimat' is not among the `functions` of task.yaml; did you mean 'estim"),
        ('call("estimate", np', 'call(function="zz", ids=np', "'zz' is not among the `functions` of task.yaml; it dec"),
        ("x=points[part]", "y=points[part]", "calls 'estimate' with y; it takes x"),
        (", x=points[part]", "", "calls 'estimate' with no arguments; it takes x"),
        (
            'Refused("constant")',
            'Refused("constan")',
            "'constan' is not among the `messages` of task.yaml; did you mea",
        ),
        ('"bias": float', '"bios": float', "'bias' is missing, 'bios' is not declared"),
        (
            "def evaluate(program: Program, data: Path, split: str)",
            "def evaluate(program, data)",
            "is called by position, as evaluate(program, data, split)",
        ),
        ("def generate(seed: int, split: str)", "def generate(seed, *, split)", "as generate(seed, split)"),
        ("def generate", "async def generate", "defines no function 'generate' at its top level"),
    ],
)
def test_a_certain_mistake_is_found_with_its_line(package: Path, old: str, new: str, problem: str) -> None:
    (found,) = changed(package, old, new)
    assert problem in found
    assert found.startswith("line ") or "no function" in found


def test_every_module_of_the_evaluator_is_parsed(package: Path) -> None:
    (package / "evaluator" / "more.py").write_text("x = 1\n\ndef f(:\n")
    (package / "evaluator" / "null.py").write_bytes(b"x = '\0'\n")
    found = check_task(package)
    assert found[0] == "evaluator/more.py, line 3: is not Python: invalid syntax"
    assert "evaluator/null.py: is not Python: source code string cannot contain null bytes" in found[1]


def test_mistakes_are_found_in_the_modules_that_are_imported_and_only_there(package: Path) -> None:
    inner = package / "evaluator" / "parts"
    inner.mkdir()
    (inner / "__init__.py").write_text("from . import deep\n")
    (inner / "deep.py").write_text("import pandas.core\n")
    (package / "evaluator" / "test_parts.py").write_text("import pytest\n")
    assert check_task(package) == []
    (found,) = changed(package, "import numpy as np", "import numpy as np\nimport parts")
    assert "evaluator/parts/deep.py, line 1: imports 'pandas'" in found


@pytest.mark.parametrize(
    "more",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n",
        "try:\n    import numba\nexcept ImportError:\n    numba = None\n",
        "import numpy.random, json.decoder\nfrom evaluator_api import Ragged\n",
        "import subprocess\ndef f():\n    subprocess.call('ls')\n",
        "def f(instances, name, more):\n    instances.call(name, [0])\n    instances.call('estimate', [0], **more)\n",
        "def f(name):\n    raise Refused(name)\n",
        "def f():\n    return {'other': 1.0}\n",
    ],
)
def test_what_may_be_right_is_left_alone(package: Path, more: str) -> None:
    assert changed(package, "POINTS = 200\n", f"POINTS = 200\n{more}") == []


def test_a_function_may_also_be_imported_or_assigned(package: Path) -> None:
    (package / "evaluator" / "making.py").write_text("def generate(seed, split): ...\n")
    assert changed(package, "def generate", "from making import generate\n\n\ndef other") == []
    (package / "initial" / "program.py").write_text("estimate = abs\n")
    assert check_task(package) == []


def test_the_program_must_take_the_declared_arguments(package: Path) -> None:
    (package / "initial" / "program.py").write_text("def estimate(x, y):\n    return x\n")
    assert check_task(package) == [
        "initial/program.py, line 1: 'estimate' is called by position, as estimate(x); let it take that"
    ]
    (package / "initial" / "more.py").write_text("def (\n")
    assert "initial/more.py, line 1: is not Python" in check_task(package)[0]


def test_deeply_nested_code_is_a_problem_and_no_crash(package: Path) -> None:
    (package / "evaluator" / "deep.py").write_text(f"x = {'(' * 500}1{')' * 500}\ny = {'-' * 5000}1\n")
    assert any("evaluator/deep.py" in problem for problem in check_task(package))
