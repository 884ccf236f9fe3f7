"""The engine's search for an equation: its analysis finds small laws, and its steps follow from what it found."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.llm.offline.engine import FAMILIES
from orchestrator.llm.offline.equations import EquationFamily
from orchestrator.llm.offline.equations_programs import read_equation
from orchestrator.llm.offline.equations_terms import Equation, EquationTask
from orchestrator.llm.offline.families import Step
from orchestrator.llm.offline.notebook import Analysis, Commit, Notebook

DESCRIPTION = """\
The training set is in `data/train.csv`. `c` is a sequence of ten free constants, `c[0]` to `c[9]`.
The expression may have 30 nodes.
"""
PROGRAM = "import numpy as np\n\n\ndef equation(t, x, c):\n    return c[0] + c[1] * t + c[2] * x\n"
TASK = EquationTask.read(DESCRIPTION, PROGRAM)
EXACT = {"terms": [[["power", 1, [1]]], [["sin", 0, [0.6]]]], "nmse": 2e-14, "exact": True, "nodes": 10}
SMALLER = {"terms": [[["power", 1, [1]]]], "nmse": 0.1, "exact": False, "nodes": 3}
LARGER = {"terms": [[], [["power", 1, [1]]], [["sin", 0, [0.6]]]], "nmse": 1e-14, "exact": True, "nodes": 12}
Chance = random.Random
ANALYST = frozenset({"write", "edit", "commit", "run_analysis", "read_commit"})


def notebook(*, tools: frozenset[str] = ANALYST, effort: float = 1.0, island: int = 0) -> Notebook:
    made = Notebook(task=DESCRIPTION, fitness="fitness", tools=tools, effort=effort, island=island, islands=3)
    made.files["program.py"] = made.initial_program = made.programs["initial"] = PROGRAM
    made.scores["initial"] = -0.8
    made.analyses_left = 10
    return made


def analysed(made: Notebook, *models: object) -> Notebook:
    output = "printed\nresult: " + json.dumps({"models": models}) + "\n"
    made.analyses.append(Analysis(script="", program=PROGRAM, output=output, ending="ok"))
    return made


def step(made: Notebook, seed: int = 1) -> Step:
    return EquationFamily().next_step(made, Chance(seed))


def committed(made: Notebook, step: Step, fitness: float) -> None:
    program = dict(step.calls)["write"]["content"]
    made.files["program.py"] = program
    id_ = f"i0-c{len(made.commits):02d}"
    made.programs[id_], made.scores[id_] = program, fitness
    made.commits.append(Commit(id=id_, program=program, fitness=fitness))
    made.earlier_analyses.extend(made.analyses)
    made.analyses = []


def script(made: Notebook, seed: int = 1) -> str:
    return dict(step(made, seed).calls)["write"]["content"]


def run_script(text: str, folder: Path, rows: np.ndarray, header: str) -> dict[str, Any]:
    (folder / "data").mkdir()
    lines = [header, *(",".join(str(value) for value in row) for row in rows.astype(np.float32))]
    (folder / "data" / "train.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "analysis.py").write_text(text, "utf-8")
    command = [sys.executable, "-W", "error", "-I", "analysis.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = Analysis(script=text, program="", output=done.stdout, ending="ok").result()
    assert result is not None, done.stdout
    return result


def test_the_engine_has_the_family_before_the_one_that_takes_everything() -> None:
    made = notebook()
    assert isinstance(next(family for family in FAMILIES if family.recognises(made)), EquationFamily)


def test_a_best_program_of_somebody_else_is_left_to_variation() -> None:
    made = notebook()
    made.programs["i1-c01"], made.scores["i1-c01"] = PROGRAM.replace("c[2]", "c[3]"), -0.1
    assert not EquationFamily().recognises(made)


def test_an_exact_law_is_found_in_plain_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    t, x = np.sort(rng.uniform(0, 20, 300)), rng.uniform(-1.5, 1.5, 300)
    target = -1.7 * x * np.abs(x) + 0.4 * np.sin(0.85 * t) - 0.3 * t
    made = notebook(effort=0.1)
    made.earlier_analyses += [Analysis(script="", program="", output="", ending="ok")] * 2  # the third looks for waves
    result = run_script(script(made), tmp_path, np.stack([t, x, target], axis=1), "t,x,y")
    best = min((model for model in result["models"] if model["exact"]), key=lambda model: model["nodes"])
    assert TASK is not None
    found = Equation.from_json(best["terms"], TASK)
    wanted = [[["power", 0, [1]]], [["abs_power", 1, [1]], ["power", 1, [1]]], [["sin", 0, [0.85]]]]
    assert found == Equation.from_json(wanted, TASK)
    assert best["nmse"] < 1e-12
    assert EquationFamily().next_step(analysed(made, *result["models"]), Chance(1)).calls[0][0] == "write"


def test_data_that_follow_no_law_give_a_front_and_nothing_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1, 1, (100, 3))
    rows[:, 2] += 2 * rows[:, 0]
    result = run_script(script(notebook(effort=0.05)), tmp_path, rows, "t,x,y")
    models = result["models"]
    assert models
    assert not any(model["exact"] for model in models)
    sizes = [model["nodes"] for model in models]
    assert sizes == sorted(sizes, reverse=True)  # the least error first


def test_an_improvement_starts_from_what_was_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    t, x = rng.uniform(0, 2, 100), rng.uniform(0.1, 1, 100)
    made = analysed(notebook(effort=0.05), SMALLER)
    made.earlier_analyses += [Analysis(script="", program="", output="", ending="ok")] * 11
    text = script(made)
    assert f"STARTS = {json.dumps([[[['power', 1, [1.0]]]]])}" in text
    result = run_script(text, tmp_path, np.stack([t, x, 2 * x + np.exp(-t)], axis=1), "t,x,y")
    assert any(model["exact"] for model in result["models"])


def test_the_smallest_exact_equation_is_committed_then_smaller_ones_then_the_turn_ends() -> None:
    made = analysed(notebook(), SMALLER, LARGER, EXACT)
    first = step(made)
    assert [name for name, _ in first.calls] == ["write", "commit"]
    assert "c[0] * x + c[1] * np.sin(0.6 * t)" in first.calls[0][1]["content"]
    committed(made, first, -2e-14)
    second = step(made)
    assert "return c[0] * x\n" in second.calls[0][1]["content"]
    committed(made, second, -0.1)
    assert step(made).calls == ()


def test_without_an_exact_equation_the_search_goes_on_and_commits_now_and_then() -> None:
    made, calls = notebook(), []
    for seed in range(40):
        now = step(made, seed)
        calls.append(now.calls[-1][0] if now.calls else "end")
        if calls[-1] == "commit":
            committed(made, now, -0.1)
        elif calls[-1] == "run_analysis":
            analysed(made, {**SMALLER, "terms": [[["sin", 0, [1 + seed]]]], "nmse": 0.5**seed})
    assert calls[:5] == ["run_analysis"] * 3 + ["commit", "run_analysis"]
    assert 4 <= calls.count("commit") <= 10
    assert calls.count("run_analysis") == 14
    assert calls[-1] == "end"


def test_islands_take_the_families_in_another_order() -> None:
    families = [re.findall(r'"families": (\[.*?\])', script(notebook(island=island)))[0] for island in range(3)]
    assert len(set(families)) == 3


def test_an_analysis_that_did_not_end_makes_the_next_one_smaller() -> None:
    made = notebook()
    made.analyses.append(Analysis(script="", program=PROGRAM, output="", ending="cpu-limit"))
    assert '"width": 100' in script(made)
    assert '"width": 200' in script(notebook())


def test_steps_are_a_function_of_the_notebook_and_the_seed() -> None:
    assert step(notebook(), 5) == step(notebook(), 5)
    assert step(notebook(), 5) != step(notebook(), 6)


def test_a_successor_knows_what_was_found_and_committed() -> None:
    made = analysed(notebook(), SMALLER, EXACT)
    committed(made, step(made), -2e-14)
    figures = EquationFamily().figures(made)
    successor = notebook()
    successor.handoff = json.loads(json.dumps(figures))
    assert "return c[0] * x\n" in step(successor).calls[0][1]["content"]
    assert figures["analyses"] == figures["commits"] == 1
    assert EquationFamily().figures(successor)["models"] == figures["models"]


HOSTILE: list[object] = [
    None,
    7,
    {},
    {"terms": [[["sin", 0, [1]]]]},
    {"terms": [[["sin", 0, [1]]]], "nmse": "0"},
    {"terms": [[["sin", 0, [1]]]], "nmse": -1},
    {"terms": [[["sin", 0, [1]]]], "nmse": 10**400},
    {"terms": [[["__import__('os')", 0, [1]]]], "nmse": 0.1},
    {"terms": [[["sin", 9, [1]]]], "nmse": 0.1},
    {"terms": [[["wave", 0, [1.5, 2.5]]] * 8], "nmse": 0.1},
    {"terms": [[["wave", i % 2, [1.5 + i, 2.5]]] for i in range(9)], "nmse": 0.1},
]


@pytest.mark.parametrize("entry", HOSTILE, ids=range(len(HOSTILE)))
def test_results_that_are_no_models_are_passed_over(entry: object) -> None:
    made = analysed(notebook(), entry)
    made.handoff = {"models": [entry], "written": [entry], "effort": entry, "analyses": entry, "commits": entry}
    assert step(made).calls[-1][0] == "run_analysis"
    json.dumps(EquationFamily().figures(made))


def test_an_equation_over_the_limit_of_nodes_is_not_committed() -> None:
    terms = [[["wave", i % 2, [1.5 + i, 2.5]]] for i in range(6)]
    made = analysed(notebook(), {"terms": terms, "nmse": 1e-3, "exact": False}, SMALLER)
    made.analyses_left = 0
    assert "return c[0] * x\n" in step(made).calls[0][1]["content"]


def test_without_analyses_every_commit_is_another_valid_equation() -> None:
    made = notebook(tools=ANALYST - {"run_analysis"})
    programs: list[str] = []
    for seed in range(40):
        now = step(made, seed)
        if not now.calls:
            break
        assert [name for name, _ in now.calls] == ["write", "commit"]
        programs.append(now.calls[0][1]["content"])
        compile(programs[-1], "program.py", "exec")
        committed(made, now, -Chance(seed).random())
    assert TASK is not None
    structures = {equation.structure for p in programs if (equation := read_equation(p, TASK)) is not None}
    assert len(structures) == len(programs) == 30
    assert not any(re.search(r"np\.(sin|exp|cos)\(-?\d", program) for program in programs)  # the fit finds such values
