"""Equations of the offline engine: figures from a description, data that round-trips, programs with few nodes."""

from __future__ import annotations

import ast
import json
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.equations_blind import new_structure, random_term
from orchestrator.llm.offline.equations_pieces import literal
from orchestrator.llm.offline.equations_programs import read_equation, render, summary, written
from orchestrator.llm.offline.equations_terms import FORMS, Equation, EquationTask, Factor

DESCRIPTION = """\
# Find an equation

The training set is in `data/train.csv`. `c` is a sequence of ten free constants, `c[0]` to `c[9]`.
The expression may have 30 nodes.
"""
PROGRAM = '''"""A line."""

import numpy as np


def equation(t, x, v, c):
    """The target."""
    return c[0] + c[1] * t
'''
TASK = EquationTask(
    function="equation",
    inputs=("t", "x", "v"),
    constants="c",
    max_constants=10,
    max_nodes=30,
    data="data/train.csv",
)
Chance = random.Random
seeds = st.integers(0, 2**32)


def equation(*terms: list[Any]) -> Equation:
    read = Equation.from_json([*terms], TASK)
    assert read is not None
    return read


def drawn(seed: int, count: int) -> Equation:
    chance = Chance(seed)
    return Equation.of([random_term(TASK, chance) for _ in range(count)])


def tree_nodes(program: str) -> int:
    """Nodes of the expression that a program's function returns, as the task counts them."""
    function = next(node for node in ast.parse(program).body if isinstance(node, ast.FunctionDef))
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    assert returned.value is not None
    return count_nodes(returned.value)


def count_nodes(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return 1 + count_nodes(node.left) + count_nodes(node.right)
    if isinstance(node, ast.UnaryOp):
        return count_nodes(node.operand)
    if isinstance(node, ast.Call):
        return 1 + sum(map(count_nodes, node.args))
    assert isinstance(node, ast.Name | ast.Constant | ast.Subscript)
    return 1


def values(program: str, constants: list[float]) -> Any:
    names: dict[str, Any] = {}
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102 - rendered by us
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        return names["equation"](*rng.uniform(0.2, 1.5, size=(3, 20)), constants) + np.zeros(20)


def test_the_figures_come_from_the_description_and_the_signature() -> None:
    assert EquationTask.read(DESCRIPTION, PROGRAM) == TASK
    annotated = PROGRAM.replace("t, x, v, c", "t: float, x: float, v: float, c: list[float]")
    assert EquationTask.read(DESCRIPTION, annotated) == TASK


@pytest.mark.parametrize(
    ("description", "program"),
    [
        ("Items arrive one by one, 120 of them, and bins have capacity 150.", PROGRAM),
        (DESCRIPTION, "def priority(item, bins):\n    return bins\n"),
        (DESCRIPTION.replace("30 nodes", "a few parts"), PROGRAM),
        (DESCRIPTION.replace("data/train.csv", "/etc/passwd"), PROGRAM),
        (DESCRIPTION, PROGRAM.replace("t, x, v, c", "c")),
        (DESCRIPTION, PROGRAM.replace("t, x, v, c", "t, t, v, c")),
        (DESCRIPTION, PROGRAM.replace("t, x, v, c", "t, np, v, c")),
        (DESCRIPTION, "def equation(" + "(" * 10_000),
        ("", ""),
    ],
    ids=["placement", "bins", "no limit", "other data", "no input", "twice", "np", "open", "empty"],
)
def test_another_task_is_not_mistaken_for_an_equation(description: str, program: str) -> None:
    assert EquationTask.read(description, program) is None


@given(seeds, st.integers(1, 8))
def test_an_equation_survives_being_written_as_a_program(seed: int, count: int) -> None:
    made = drawn(seed, count)
    assert read_equation(render(made, TASK, "drawn"), TASK) == made
    assert Equation.from_json(json.loads(json.dumps(made.as_json())), TASK) == made


@given(seeds, st.integers(1, 8), st.booleans())
def test_a_program_has_the_nodes_and_constants_it_says(seed: int, count: int, frees: bool) -> None:
    made = drawn(seed, count)
    text, program = written(made, TASK, frees_values=frees), render(made, TASK, "drawn", frees_values=frees)
    assert text.nodes == tree_nodes(program)
    assert len({f"c[{i}]" for i in range(100) if f"c[{i}]" in program}) == text.constants
    assert all(f"c[{i}]" in program for i in range(text.constants))


@given(seeds, st.integers(1, 8))
def test_factoring_out_changes_no_value_and_never_adds_a_node(seed: int, count: int) -> None:
    made = drawn(seed, count)
    alone = [render(Equation(terms=(term,)), TASK, "drawn") for term in made.terms]
    ones = [1.0] * 10
    together = values(render(made, TASK, "drawn"), ones)
    assert together == pytest.approx(sum(values(program, ones) for program in alone), rel=1e-9, abs=1e-9, nan_ok=True)
    assert written(made, TASK).nodes <= sum(map(tree_nodes, alone)) + len(alone) - 1


@given(seeds, st.integers(1, 8))
def test_a_program_passes_the_load_check_and_reads_well(seed: int, count: int) -> None:
    program = render(drawn(seed, count), TASK, "drawn")
    tree = ast.parse(program)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [alias.name for node in imports for alias in node.names] == ["numpy"]
    assert "__" not in program
    assert "$" not in program
    assert ast.get_docstring(tree)


@pytest.mark.parametrize(
    ("terms", "expression", "nodes"),
    [
        ([[["power", 1, [1]]], [["power", 1, [1]], ["power", 0, [1]]]], "x * (c[0] + c[1] * t)", 7),
        ([[["power", 1, [2]]], [["power", 1, [1]]]], "x * (c[0] + c[1] * x)", 7),
        ([[["power", 1, [1]], ["ratio", 1, [2.5]]]], "c[0] * x / (x + 2.5)", 7),
        ([[["power", 0, [-1]]], []], "c[0] + c[1] / t", 5),
        ([[["exp_abs", 2, [-1]]]], "c[0] * np.exp(-np.abs(v))", 5),
        ([[["exp_square", 2, [-1]]]], "c[0] * np.exp(-(v**2))", 6),
        ([[["log_abs", 2, [1]]], [["log", 0, [-0.5]]]], "c[0] * np.log(t - 0.5) + c[1] * np.log(np.abs(v) + 1)", 14),
        ([[["abs_power", 2, [0.5]]], [["power", 2, [0.3]]]], "c[0] * np.sqrt(np.abs(v)) + c[1] * v**0.3", 11),
        ([[["wave", 0, [0.7761, -0.5]]]], "c[0] * np.sin(0.7761 * t - 0.5)", 8),
    ],
    ids=["factor", "power", "ratio", "divisor", "exp", "square", "log", "root", "wave"],
)
def test_expressions_are_as_short_as_they_can_be(terms: list[Any], expression: str, nodes: int) -> None:
    made = equation(*terms)
    assert f"return {expression}\n" in render(made, TASK, "written by hand")
    assert written(made, TASK).nodes == nodes


def test_adjustable_values_can_be_left_to_the_fit() -> None:
    made = equation([["exp", 0, [-0.089]], ["power", 1, [1]]], [["log", 0, [2.3]]], [["sin", 2, [1]]])
    program = render(made, TASK, "drawn", frees_values=True)
    assert "return c[0] * np.log(t + c[1]) + c[2] * np.sin(v) + c[3] * np.exp(c[4] * t) * x\n" in program
    assert read_equation(program, TASK) == made


@pytest.mark.parametrize(
    "terms",
    [
        None,
        {},
        [],
        [[]] * 11,
        [[["sin", 0, [1]]] * 5],
        [[["eval", 0, [1]]]],
        [[["sin", 3, [1]]]],
        [[["sin", -1, [1]]]],
        [[["sin", True, [1]]]],
        [[["sin", 0, [1, 2]]]],
        [[["sin", 0, []]]],
        [[["sin", 0, ["1"]]]],
        [[["sin", 0, [True]]]],
        [[["sin", 0, [0]]]],
        [[["sin", 0, [math.nan]]]],
        [[["sin", 0, [math.inf]]]],
        [[["sin", 0, [10**400]]]],
        [[["sin", 0, 1]]],
        [["sin", 0, [1]]],
        [[[["sin"], 0, [1]]]],
        "x" * 100,
    ],
    ids=range(21),
)
def test_what_is_no_equation_is_refused(terms: object) -> None:
    assert Equation.from_json(terms, TASK) is None


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM,
        "",
        "# structure: [[[",
        "# structure: " + "[" * 9000 + "]" * 9000,
        '# structure: [[["sin", 0, [NaN]]]]',
        "# structure: [" + "9" * 6000 + "]",
        "# structure: [[]]\n" * 20_000,
    ],
    ids=["other", "empty", "open", "deep", "nan", "digits", "long"],
)
def test_a_program_of_somebody_else_holds_no_equation(program: str) -> None:
    assert read_equation(program, TASK) is None


@given(seeds, st.integers(0, 30))
def test_structures_without_measuring_stay_within_the_limits(seed: int, steps: int) -> None:
    chance = Chance(seed)
    made, _ = new_structure(None, TASK, chance, set())
    for _ in range(steps):
        made, change = new_structure(made, TASK, chance, {made.structure})
        assert change
    assert written(made, TASK, frees_values=True).fits(TASK)
    assert tree_nodes(render(made, TASK, "drawn", frees_values=True)) <= 30


def test_structures_without_measuring_reach_every_form() -> None:
    forms = {factor.form for seed in range(400) for term in drawn(seed, 3).terms for factor in term}
    assert forms == set(FORMS) - {"log", "ratio"}  # those could meet negative inputs


def test_a_simple_value_is_not_adjustable() -> None:
    factors = [Factor(form="power", input=0, values=(v,)) for v in (1.0, 0.5, -1.0, 0.7)]
    factors += [Factor(form="log", input=0, values=(v,)) for v in (0.0, 1.0, -1.0)]
    factors += [Factor(form="sin", input=0, values=(v,)) for v in (1.0, 2.0)]
    assert [f.is_adjustable for f in factors] == [False, False, False, True, False, False, True, False, True]


def test_numbers_are_written_as_short_as_exact() -> None:
    assert [literal(v) for v in (2.0, -1.0, 0.1, 1e-07, 1 / 3)] == ["2", "-1", "0.1", "1e-07", "0.3333333333333333"]


def test_the_summary_names_the_forms() -> None:
    assert summary(equation([["exp_abs", 0, [-1]]], [])) == "A sum of 2 terms made of exp"
    assert summary(equation([])) == "One term made of a constant"
