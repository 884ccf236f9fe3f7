"""Evaluation of an equation: its constants are fitted to the training data, its error is measured on a split."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from evaluator_api import Expression, Program, Refused
from fitting import Equation
from numpy.typing import NDArray
from problems import PROBLEMS, splits

CONSTANTS = 10
MOST_NODES = 30
_MEMBER = json.loads((Path(__file__).parent / "member.json").read_text(encoding="utf-8"))
_PROBLEM = PROBLEMS[_MEMBER["name"]]
_RESTARTS = int(_MEMBER["parameters"]["fit"]["restarts"])


def generate(seed: int, split: str) -> dict[str, bytes]:
    """The training set, and the test set of a split that is another; the same for every seed, as in the benchmark."""
    del seed
    found = splits(_PROBLEM)
    files = {"train.csv": _written(found["train"])}
    return files if split == "train" else {**files, "test.csv": _written(found[split])}


def evaluate(program: Program, data: Path, split: str) -> dict[str, float]:
    """The metrics of a program."""
    train = _read(data / "train.csv")
    tree = _traced(program)
    equation = Equation(tree, train, CONSTANTS)
    fit = equation.fit(_RESTARTS)
    error = fit.nmse if split == "train" else equation.nmse(fit.constants, _read(data / "test.csv"))
    if not (np.isfinite(fit.nmse) and np.isfinite(error)):
        raise Refused("not-finite")
    return {
        "fitness": -error,
        "nmse": error,
        "nodes": tree.nodes / MOST_NODES,
        "constants": len(equation.used) / CONSTANTS,
    }


def assess(program: Program, data: Path, split: str) -> dict[str, str | int | None]:
    """What the equation is with its fitted constants, and whether it has the structure of the law."""
    from assessment import assessed  # noqa: PLC0415 - SymPy takes a second, which evaluations have no use for

    del split  # constants are fitted to the training data, which every split has
    train = _read(data / "train.csv")
    tree = _traced(program)
    fit = Equation(tree, train, CONSTANTS).fit(_RESTARTS)
    return assessed(tree, _PROBLEM.inputs, fit.constants.tolist(), train, _MEMBER["name"])


def _traced(program: Program) -> Expression:
    with program.open(1) as instances:
        (tree,) = instances.call("equation", [0])
    return cast("Expression", tree)


def _written(rows: NDArray[np.float32]) -> bytes:
    """Rows as text that gives back every bit, below the names of the columns."""
    lines = [",".join((*_PROBLEM.inputs, _PROBLEM.target))]
    lines += [",".join(map(str, row)) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _read(file: Path) -> NDArray[Any]:
    """(n, inputs + 1) float64, of values that float32 holds."""
    text = io.StringIO(file.read_text(encoding="ascii"))
    return np.loadtxt(text, delimiter=",", skiprows=1, ndmin=2).astype(np.float32).astype(np.float64)
