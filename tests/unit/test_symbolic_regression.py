"""The twelve equations: their data against independent checks, node counts, derivatives, and fits of the true laws."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "sandbox_images"
PLACES = [
    ROOT / "tasks" / "symbolic_regression" / "evaluator",
    *(IMAGES / role / "runner" for role in ("evaluator", "python", "base")),
]


@contextmanager
def importable() -> Iterator[None]:
    sys.path[:0] = map(str, PLACES)
    try:
        yield
    finally:
        for place in PLACES:
            sys.path.remove(str(place))


with importable():
    columns: Any = importlib.import_module("columns")
    expressions: Any = importlib.import_module("expressions")
    fitting: Any = importlib.import_module("fitting")
    problems: Any = importlib.import_module("problems")
    symbols: Any = importlib.import_module("symbols")
    trees: Any = importlib.import_module("trees")

FORMS = {
    "CRK21": "A * (c[0] * np.log(t + c[1]) + c[2] + c[3] * np.exp(c[4] * t))",
    "CRK35": "A * (c[0] * np.log(t + c[1]) + c[2])",
    "BPG18": "P * (c[0] * P + c[1] * np.sin(c[2] * t) + c[3])",
    "PO0": "c[0] * x**3 + c[1] * x * np.exp(-abs(x)) + c[2] * np.sin(t) + c[3] * np.sin(v)",
    "PO1": "c[0] * x * (1 + np.exp(-abs(x))) + c[1] * np.sin(c[2] * t)",
    "PO7": "c[0] * v**3 + c[1] * x**3 + c[2] * abs(v) ** c[3]",
    "PO10": "x * (c[0] * t + c[1] * x**2 + c[2]) + c[3] * np.sin(t)",
    "PO16": "c[0] * v * np.sin(x) + c[1] * x**3 + c[2] * np.sin(c[4] * t) + c[3] * np.sin(v)",
    "PO26": "c[0] * v + c[1] * x**3 + c[2] * np.log(abs(v) + 1) + c[3] * np.sin(t)",
    "MatSci9": "c[0] * epsilon**4 + c[1] * epsilon**3 + c[2] * epsilon + c[3]",
    "MatSci6": "c[0] * epsilon**3 + c[1] * epsilon**2 + c[2] * epsilon",
    "MatSci11": "c[0] * epsilon**0.4776 + c[1] * epsilon**1.451 + c[2] * epsilon**2.987 + c[3] * epsilon**4.001",
}
CONSTANTS = {
    "CRK35": [0.06226, 1.061, -0.1400], "PO0": [-1.027, -1.027, 0.9480, -0.7123],
    "PO7": [-0.04589, -1.283, -0.7296, 1 / 3], "BPG18": [-0.008724, 0.4771, 0.7761, 0.8909],
}  # fmt: skip


def tree(inputs: tuple[str, ...], form: str) -> Any:
    """What the evaluator gets of a program that returns this."""
    arguments = [
        *({"name": name, "dtype": "symbol"} for name in inputs),
        {"name": "c", "dtype": "symbol", "length": 10},
    ]
    declared = {"arguments": arguments, "returns": {"dtype": "expression", "maximum_nodes": 30}}
    signature = columns.Signature.parse("equation", declared)
    program: dict[str, Any] = {}
    source = f"import numpy as np\ndef equation({', '.join((*inputs, 'c'))}):\n    return {form}"
    exec(source, program)  # noqa: S102 - of this test's own
    called = symbols.with_symbols(signature, program["equation"])()
    rows = np.frombuffer(symbols.ExpressionWire(0, signature).elements(called, None), expressions.NODE)
    return expressions.expression_of(rows, symbols=signature.symbol_count, maximum_nodes=30)


def equation(name: str, form: str | None = None) -> Any:
    problem = problems.PROBLEMS[name]
    rows = problems.splits(problem)["train"].astype(np.float64)
    return fitting.Equation(tree(problem.inputs, form or FORMS[name]), rows, 10)


# The data


@pytest.mark.parametrize("name", FORMS)
def test_the_data_are_float32_and_split_as_the_benchmark_splits_them(name: str) -> None:
    problem = problems.PROBLEMS[name]
    points, splits = problem.points(), problems.splits(problem)
    assert (points.shape, points.dtype) == ((5000, len(problem.inputs) + 1), np.float32)
    assert np.isfinite(points).all()
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 4000, "in_domain": 500, "out_of_domain": 500
    }  # fmt: skip
    assert np.array_equal(splits["out_of_domain"], points[4500:])
    together = np.concatenate([splits["train"], splits["in_domain"]])
    assert np.array_equal(together[np.argsort(together[:, 0])], points[:4500])
    assert not np.array_equal(splits["train"][:, 0], np.sort(splits["train"][:, 0]))
    assert np.array_equal(splits["train"], problems.splits(problem)["train"])


GRIDS = {"CRK": (0, 60), "BPG": (1, 60), "PO": (0, 40), "Mat": (0, 0.6)}
STARTS = {"CRK": [1], "BPG": [1], "PO": [1, 0], "Mat": [273]}


@pytest.mark.parametrize("name", FORMS)
def test_the_grid_and_the_first_state_are_the_specifications(name: str) -> None:
    points = problems.PROBLEMS[name].points()
    group = next(group for group in GRIDS if name.startswith(group))
    assert np.array_equal(points[:, 0], np.linspace(*GRIDS[group], 5000).astype(np.float32))
    assert points[0, 1:-1].tolist() == STARTS[group]


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("Mat")])
def test_the_states_change_as_the_targets_say(name: str) -> None:
    points = problems.PROBLEMS[name].points().astype(np.float64)
    changes, target = np.gradient(points[:, -2], points[:, 0]), points[:, -1]
    assert np.mean((changes - target) ** 2) < 1e-3 * np.var(target)  # RK45 at a relative tolerance of 1e-3


def test_known_values_come_out() -> None:
    po7 = problems.PROBLEMS["PO7"].law(0.0, np.float64(1), np.float64(-8))
    assert po7 == pytest.approx(0.04589 * 512 - 1.283 - 0.7296 * 2)
    assert problems.PROBLEMS["CRK35"].law(0.0, 1.0) == pytest.approx(0.06226 * np.log(1.061) - 0.14)
    assert problems.PROBLEMS["MatSci9"].points()[0].tolist() == [0, 273, 14]
    last = problems.PROBLEMS["MatSci9"].points()[-1]
    assert last.tolist() == pytest.approx([0.6, 573, 4319 * 0.1296 - 305.5 * 0.216 - 195.1 * 0.6 + 14], rel=1e-6)


# Trees


def test_nodes_are_counted_as_in_the_two_examples_of_the_paper() -> None:
    assert tree(("v", "x"), "-0.04589 * v**3 - 1.283 * x**3 - 0.7296 * abs(v)**0.3333").nodes == 18
    law = "A * (0.0882 * np.log(t + 2.283) - 0.07279 - 0.9112 * np.exp(-0.08901 * t))"
    assert tree(("t", "A"), law).nodes == 17
    assert tree(("t", "A"), "-t * -A").nodes == 3


EVERY_OPERATOR = (
    "np.exp(-c[0] * x) + np.log(abs(x) + c[1]) * np.sqrt(c[2] + 2) - np.sin(c[0] * v) / np.cos(c[1])",
    "np.tan(c[0]) * np.tanh(c[1] * x) + abs(c[0] - x) ** c[2]",
    "np.minimum(c[0] * x, v) + np.maximum(c[1], x * c[2]) - 2 ** c[0]",
)


@pytest.mark.parametrize("form", EVERY_OPERATOR)
def test_derivatives_agree_with_differences(form: str) -> None:
    expression = tree(("x", "v"), form)
    inputs = np.random.default_rng(3).uniform(-1, 1, (2, 50))
    constants = np.array([0.7, 1.3, 1.9])
    free = [2, 3, 4]
    value, slopes = trees.values_and_slopes(expression, [*inputs, *constants], free)
    assert np.array_equal(value, trees.values(expression, [*inputs, *constants]))
    for number in free:
        step = np.zeros(3)
        step[number - 2] = 1e-6
        above, below = (trees.values(expression, [*inputs, *(constants + sign * step)]) for sign in (1, -1))
        assert np.broadcast_to(slopes[number], 50) == pytest.approx((above - below) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("form", "linear"),
    [
        ("c[0] * x + c[1]", [2, 3]),
        ("c[0] * (c[1] * x + c[2])", [2]),
        ("(c[0] + x) / c[1] - c[2]", [2, 4]),
        ("np.sin(c[0] * x) + c[1] * c[0]", [3]),
        ("c[0] * np.minimum(c[1], x) + abs(c[2])", [2]),
    ],
)
def test_constants_that_enter_linearly_are_found(form: str, linear: list[int]) -> None:
    expression = tree(("x", "v"), form)
    assert trees.linear_symbols(expression, sorted(n for n in expression.symbols if n >= 2))[: len(linear)] == linear


# Fits


@pytest.mark.parametrize("name", FORMS)
def test_the_true_law_fits_to_round_off(name: str) -> None:
    fit = equation(name).fit(24)
    assert fit.nmse < 1e-11
    if name in CONSTANTS:
        known = CONSTANTS[name]
        found = fit.constants[: len(known)]
        assert np.abs(found) == pytest.approx(np.abs(known), rel=1e-3)  # a sine's two signs may change together


def test_a_fitted_law_holds_out_of_the_domain() -> None:
    law = equation("PO0")
    constants = law.fit(0).constants
    assert law.nmse(constants, problems.splits(problems.PROBLEMS["PO0"])["out_of_domain"]) < 1e-11


def test_a_frequency_needs_other_starts_than_the_papers() -> None:
    law = equation("BPG18")
    assert law.fit(0).nmse > 0.1
    assert law.fit(24).nmse < 1e-11
    assert law.fit(24).constants.tolist() == law.fit(24).constants.tolist()


def test_an_equation_without_constants_is_measured_as_it_stands() -> None:
    mean = float(problems.splits(problems.PROBLEMS["CRK35"])["train"][:, -1].astype(np.float64).mean())
    assert equation("CRK35", repr(mean)).fit(24).nmse == pytest.approx(1)


NOT_FINITE = [
    "np.log(x - 100)", "1 / (x - x)", "np.sqrt(-1 - x**2) * c[0]", "c[0] * np.exp(np.exp(np.exp(t + 9)))",
    "(x - 9) ** 0.5 + c[1]", "0 * np.exp(1e9 * t) + c[0]", "np.tan(c[0]) / (c[1] - c[1])",
]  # fmt: skip


@pytest.mark.parametrize("form", NOT_FINITE)
def test_what_gives_no_number_with_every_start_has_no_finite_error(form: str) -> None:
    assert equation("PO0", form).fit(2).nmse == np.inf


HARD = [
    "c[0] ** (c[1] * x) + c[2]", "np.exp(c[0] * t)", "(x + c[0]) ** c[1]", "np.log(c[0] * x + c[1])",
    "1e300 * c[0] * x", "np.tan(c[0] * t) * c[1]", "c[0] / (c[1] - 1)",
]  # fmt: skip


@pytest.mark.parametrize("form", HARD)
def test_a_fit_that_meets_overflow_on_its_way_ends_without_an_error(form: str) -> None:
    found: NDArray[np.float64] = equation("PO0", form).fit(2).constants
    assert np.isfinite(found).all()
