"""Equations as programs, and back.

Programs may come from other models: they are searched for one line of JSON, bounded in size, and never parsed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from orchestrator.llm.offline.equations_pieces import Piece, Writer
from orchestrator.llm.offline.equations_terms import Equation, EquationTask

_MAX_CHARACTERS = 20_000
_MAX_LINE = 100
_STRUCTURE = re.compile(r"^# structure: (?P<terms>\[.*\])$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An equation as an expression."""

    summands: tuple[Piece, ...]
    constants: int
    """Free constants used."""

    @property
    def nodes(self) -> int:
        """Size of the expression."""
        return sum(piece.nodes for piece in self.summands) + len(self.summands) - 1

    def fits(self, task: EquationTask) -> bool:
        """Whether the task allows it."""
        return self.nodes <= task.max_nodes and self.constants <= task.max_constants


def written(equation: Equation, task: EquationTask, *, frees_values: bool = False) -> Written:
    """The equation as an expression of the task's inputs.

    Args:
        equation: Of inputs that the task has.
        task: Names the inputs and constants.
        frees_values: Whether the adjustable values become free constants, too; else they stand as numbers.
    """
    writer = Writer(inputs=task.inputs, constants=task.constants, frees_values=frees_values)
    summands = writer.summands(equation.terms)
    return Written(summands=tuple(summands), constants=writer.used)


def render(equation: Equation, task: EquationTask, origin: str, *, frees_values: bool = False) -> str:
    """The equation as a program; `origin` says where it is from."""
    text = written(equation, task, frees_values=frees_values)
    expression = " + ".join(piece.text for piece in text.summands)
    if len(expression) > _MAX_LINE:
        lines = "\n        + ".join(piece.text for piece in text.summands)
        expression = f"(\n        {lines}\n    )"
    return Template(_template()).substitute(
        summary=summary(equation),
        structure=json.dumps(equation.as_json()),
        function=task.function,
        arguments=", ".join([*task.inputs, task.constants]),
        origin=origin,
        expression=expression,
    )


def read_equation(program: str, task: EquationTask) -> Equation | None:
    """The equation of a program that `render` wrote; None: it was written by somebody else."""
    if len(program) > _MAX_CHARACTERS:
        return None
    found = _STRUCTURE.search(program)
    if found is None:
        return None
    try:
        return Equation.from_json(json.loads(found["terms"]), task)
    except (ValueError, RecursionError):
        return None


def summary(equation: Equation) -> str:
    """What the terms are made of, in words."""
    forms = sorted({factor.form.removesuffix("_abs") for term in equation.terms for factor in term})
    made_of = ", ".join(form.replace("_", " of a ") for form in forms) or "a constant"
    count = len(equation.terms)
    return f"A sum of {count} terms made of {made_of}" if count > 1 else f"One term made of {made_of}"


@cache
def _template() -> str:
    return files(__package__).joinpath("templates", "equations_program.py.txt").read_text("utf-8")
