"""Equations as data: a sum of terms, each a free coefficient times a product of factors.

A factor is a form of one input: a power, an exponential, a logarithm, a wave, ... with the values inside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

FORMS: Mapping[str, int] = {
    "power": 1,
    "abs_power": 1,
    "exp": 1,
    "exp_abs": 1,
    "exp_square": 1,
    "log": 1,
    "log_abs": 1,
    "ratio": 1,
    "ratio_abs": 1,
    "sin": 1,
    "cos": 1,
    "wave": 2,
    "tanh": 1,
}
"""Number of values of each form; what a form computes is in `equations_pieces`."""
MAX_FACTORS = 4
_MAX_TERMS = 20
_MAX_VALUE = 1e9
_EXPONENTS = (*range(-2, 7), 0.5, 1 / 3, 2 / 3, 1.5, 2.5)
_SIGNATURE = re.compile(r"^def (?P<function>\w{1,40})\((?P<arguments>[\w:.\[\], ]{1,400})\)", re.MULTILINE)
_NODES = re.compile(r"\b(?P<nodes>\d{1,3}) nodes\b")
_DATA = re.compile(r"`(?P<file>data/\w{1,40}\.csv)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationTask:
    """What a task says about the equation that it looks for."""

    function: str
    inputs: tuple[str, ...]
    constants: str
    """Name of the sequence of free constants."""
    max_constants: int
    max_nodes: int
    data: str
    """File with the training data, a column per input and the target."""

    @classmethod
    def read(cls, description: str, program: str) -> Self | None:
        """Find the figures in a task's description and its initial program; None: it is another kind of task."""
        signature, nodes, data = _SIGNATURE.search(program), _NODES.search(description), _DATA.search(description)
        if signature is None or nodes is None or data is None:
            return None
        names = [argument.split(":")[0].strip() for argument in signature["arguments"].split(",")]
        constants = re.search(rf"`{re.escape(names[-1])}\[0\]` to `{re.escape(names[-1])}\[(\d{{1,2}})\]`", description)
        are_names = all(name.isidentifier() and name != "np" for name in names)
        if constants is None or not are_names or not 2 <= len(set(names)) == len(names) <= 12:
            return None
        return cls(
            function=signature["function"],
            inputs=tuple(names[:-1]),
            constants=names[-1],
            max_constants=int(constants[1]) + 1,
            max_nodes=int(nodes["nodes"]),
            data=data["file"],
        )


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Factor:
    """A form of one input."""

    form: str
    input: int
    values: tuple[float, ...]

    @property
    def is_adjustable(self) -> bool:
        """Whether its values are to be fitted; simple ones stand for themselves."""
        if self.form in {"power", "abs_power"}:
            return self.values[0] not in _EXPONENTS
        return len(self.values) > 1 or self.values[0] not in ((0, 1) if self.form.startswith("log") else (1, -1))

    @classmethod
    def from_json(cls, document: object, inputs: int) -> Self | None:
        """The inverse of `as_json`; None: it is no factor of so many inputs."""
        if not isinstance(document, list) or len(document) != 3:
            return None
        form, number, values = document
        if not isinstance(form, str) or type(number) is not int or not 0 <= number < inputs:
            return None
        if not isinstance(values, list) or len(values) != FORMS.get(form):
            return None
        if not all(type(value) in {int, float} and abs(value) < _MAX_VALUE for value in values):
            return None
        factor = cls(form=form, input=number, values=tuple(float(value) for value in values))
        return factor if factor.values[0] or form.startswith("log") else None

    def as_json(self) -> list[object]:
        """For analysis scripts, programs and the handoff."""
        return [self.form, self.input, list(self.values)]


Term = tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """A sum of terms with free coefficients."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: list[Term]) -> Self:
        """In an order that does not depend on how it was found."""
        return cls(terms=tuple(sorted({tuple(sorted(term)) for term in terms}, key=lambda term: (len(term), term))))

    @classmethod
    def from_json(cls, document: object, task: EquationTask) -> Self | None:
        """The inverse of `as_json`; None: it is no equation of the task's inputs."""
        if not isinstance(document, list) or not 1 <= len(document) <= min(_MAX_TERMS, task.max_constants):
            return None
        terms = []
        for row in document:
            if not isinstance(row, list) or len(row) > MAX_FACTORS:
                return None
            factors = [Factor.from_json(factor, len(task.inputs)) for factor in row]
            terms.append(tuple(factor for factor in factors if factor is not None))
            if len(terms[-1]) != len(row):
                return None
        return cls.of(terms)

    def as_json(self) -> list[list[list[object]]]:
        """For analysis scripts, programs and the handoff."""
        return [[factor.as_json() for factor in term] for term in self.terms]

    @property
    def structure(self) -> frozenset[tuple[tuple[str, int, tuple[float, ...]], ...]]:
        """The equation without its adjustable values."""
        return frozenset(
            tuple((f.form, f.input, () if f.is_adjustable else f.values) for f in term) for term in self.terms
        )
