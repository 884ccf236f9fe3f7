"""What is said of an equation beside its metrics: how it reads, and whether its structure is the law's."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import sympy
from deadline import Unfinished, within
from equations import Tree, sympy_of, text_of
from numpy.typing import NDArray
from structure import APART, Data, structure_of

CPU_SECONDS, WALL_SECONDS = 30, 80
"""SymPy may take for the structure. A usual equation takes a second."""
_MOST_CHARACTERS = 2000


def assessed(
    tree: Tree, inputs: Sequence[str], constants: Sequence[float], rows: NDArray[np.float64], problem: str
) -> dict[str, str | int | None]:
    """The equation, and how its structure compares with the law of a problem.

    Args:
        tree: Checked; its symbols are the inputs, then the constants.
        inputs: Names.
        constants: Fitted.
        rows: (n, inputs + 1) training data, the target last.
        problem: The name of the member.
    """
    tier, reason = _structure(tree, inputs, constants, rows, problem)
    used = sorted(number - len(inputs) for number in tree.symbols if number >= len(inputs))
    return {
        "equation": _cut(text_of(tree, [*inputs, *(f"{float(constant):.6g}" for constant in constants)])),
        "form": _cut(text_of(tree, [*inputs, *(f"c[{number}]" for number in range(len(constants)))])),
        "fitted": ", ".join(f"c[{number}] = {float(constants[number])!r}" for number in used) or None,
        "nodes": tree.nodes,
        "structure": tier,
        "reason": _cut(reason),
    }


def _structure(
    tree: Tree, inputs: Sequence[str], constants: Sequence[float], rows: NDArray[np.float64], problem: str
) -> tuple[str, str]:
    """Tier and reason; `not-assessed` where SymPy does not end, or does not know what to do."""

    def work() -> str:
        *columns, target = np.asarray(rows, dtype=np.float64).T
        data = Data(inputs=dict(zip(inputs, columns, strict=True)), target=target)
        numbers = [sympy.Float(float(constant)) for constant in constants]
        found = structure_of(sympy_of(tree, [*data.symbols().values(), *numbers]), problem, data)
        return json.dumps([found.tier, found.reason])

    try:
        tier, reason = json.loads(within(CPU_SECONDS, WALL_SECONDS, work))
    except Unfinished as error:
        return "not-assessed", str(error)
    return (f"{tier} ({APART[problem]})" if problem in APART else tier), reason


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
