"""Whether an equation has the structure of the law that made the data (Peng et al., supplement S3-A).

`exact`: it equals the law up to its constants. `negligible-extra-terms`: it contains the law, and removing each term
that it has more changes the output by less than a thousandth of the target's standard deviation on the training data.
`not-recovered`: anything else, also where an error anywhere on the training data is larger than that.

Constants of an equation can make SymPy work without end, so this runs in the evaluator's container alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from numpy.typing import NDArray
from shapes import Shape, grouped, matches, shape_of, without_logarithm

EXACT, NEGLIGIBLE, NOT_RECOVERED = "exact", "negligible-extra-terms", "not-recovered"
TOLERANCE = 1e-3
"""Of the target's standard deviation: a change of the output below is negligible."""
ROUND_OFF = 1e-12
"""Likewise: what is below is left over where terms cancel, and is no term."""
_NEAR = 0.05
"""An exponent is rounded to an integer or a simple fraction no farther away."""
_DENOMINATORS = (1, 2, 3, 4)

_NO_NUMBERS = (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I)

_MATERIAL = {"T": "273 + 500*epsilon"}
LAWS: Mapping[str, Sequence[str]] = {
    "CRK21": ("A*log(t + 2.283)", "A*exp(-0.08901*t)"),
    "CRK35": ("A*log(t + 1.061)",),
    "BPG18": ("P**2", "P*sin(0.7761*t)", "P"),
    "PO0": ("x**3", "x*exp(-0.9*Abs(x))", "sin(t)", "sin(v)"),
    "PO1": ("x", "x*exp(-0.9*Abs(x))", "sin(t)"),
    "PO7": ("v**3", "x**3", "Abs(v)**0.3333"),
    "PO10": ("t*x", "x**3", "x", "sin(t)"),
    "PO16": ("v*sin(x)", "x**3", "sin(t)", "sin(v)"),
    "PO26": ("v", "x**3", "log(Abs(v) + 1.1)", "sin(t)"),
    "MatSci9": ("epsilon**4", "epsilon**3", "epsilon", "1"),
    "MatSci6": ("epsilon**3", "epsilon**2", "epsilon"),
    "MatSci11": ("epsilon**0.4776", "epsilon**1.451", "epsilon**2.987", "epsilon**4.001"),
}
"""Terms of each law without their coefficients; numbers that are no integers are free constants. The first `A` of both
CRK laws comes with their logarithm. Strain and temperature of the materials lie on one line, on which their laws are
judged; that of MatSci11 cannot be told apart from four powers, which are therefore what it is judged by."""

APART: Mapping[str, str] = {"MatSci11": "four powers"}
"""Problems that are judged by another form than their law: what they are judged by. They are to be counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What an equation's structure is."""

    tier: str
    """`exact`, `negligible-extra-terms` or `not-recovered`."""
    reason: str
    """In words; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The training data."""

    inputs: Mapping[str, NDArray[np.float64]]
    """(n,) values by the input's name."""
    target: NDArray[np.float64]
    """(n,) values that vary."""

    @property
    def threshold(self) -> float:
        """The largest change of the output that is negligible."""
        return TOLERANCE * float(self.target.std())

    def symbols(self) -> dict[str, sympy.Symbol]:
        """The inputs; what SymPy may assume of them holds on the training data."""
        return {name: _symbol(name, values) for name, values in self.inputs.items()}

    def largest(self, equation: sympy.Expr) -> float:
        """The largest magnitude of an equation on the training data; infinite where it has no value."""
        return _largest(self.values(equation))

    def error(self, equation: sympy.Expr) -> float:
        """The largest error of an equation; infinite where it has no value."""
        return _largest(self.values(equation) - self.target)

    def values(self, equation: sympy.Expr) -> NDArray[np.float64]:
        """(n,) values of an equation; NaN where it has none."""
        if equation.has(*_NO_NUMBERS):
            return np.full(self.target.shape, np.nan)
        calculate = sympy.lambdify(list(self.symbols().values()), equation, "numpy")
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(calculate(*self.inputs.values())), self.target.shape)
        return values.astype(np.float64) if values.dtype.kind in "iuf" else np.full(self.target.shape, np.nan)


def structure_of(equation: sympy.Expr, problem: str, data: Data) -> Structure:
    """Compare an equation with the law of a problem.

    Args:
        equation: In the symbols of `data`, with fitted constants.
        problem: A key of `LAWS`.
        data: Of the problem.
    """
    symbols = data.symbols()
    known = {symbols[name]: sympy.sympify(text, locals=symbols) for name, text in _MATERIAL.items() if name in symbols}
    law = [shape_of(sympy.sympify(text, locals=symbols)) for text in LAWS[problem]]
    reduced = equation.xreplace(known)
    if not data.error(reduced) < data.threshold:
        return Structure(tier=NOT_RECOVERED, reason="an error on the training data is above the tolerance")
    removed: list[str] = []
    current = with_round_exponents(reduced, data)
    while True:
        groups = [group for group in grouped(current) if data.largest(group) > ROUND_OFF * float(data.target.std())]
        current = sympy.Add(*groups)
        extra, missing = compared(groups, law, data)
        if not extra and not missing:
            break
        smaller = _without_one(current, extra, data)
        if smaller is None:
            return Structure(tier=NOT_RECOVERED, reason=_difference(extra, missing))
        current = smaller[0]
        removed.append(smaller[1])
    if not data.error(current) < data.threshold:
        return Structure(tier=NOT_RECOVERED, reason="without its extra terms, an error is above the tolerance")
    if removed:
        return Structure(tier=NEGLIGIBLE, reason=f"negligible: {', '.join(removed)}")
    return Structure(tier=EXACT, reason="every term is one of the law")


def compared(groups: Sequence[sympy.Expr], law: Sequence[Shape], data: Data) -> tuple[list[sympy.Expr], list[Shape]]:
    """Groups that are no term of a law, and terms of the law that no group is."""
    extra, missing = [], list(law)
    for group in groups:
        term = next((term for term in missing if matches(term, shape_of(group))), None)
        if term is None:
            extra.append(group)
        else:
            missing.remove(term)
    scaled = [shape for term in law if term not in missing and (shape := without_logarithm(term)) is not None]
    return [
        group for group in extra if shape_of(group) not in scaled or data.largest(group) < data.threshold
    ], missing  # fmt: skip


def with_round_exponents(equation: sympy.Expr, data: Data) -> sympy.Expr:
    """An equation with integers or simple fractions for exponents, where that changes the output by next to nothing."""
    for power in sorted(equation.atoms(sympy.Pow), key=sympy.default_sort_key):
        exponent = power.exp
        if power.base.is_number or not isinstance(exponent, sympy.Float):
            continue
        for round_exponent in _round_numbers(float(exponent)):
            rounded = equation.xreplace({power: sympy.Pow(power.base, round_exponent)})
            if data.largest(rounded - equation) < data.threshold:
                equation = rounded
                break
    return equation


def _symbol(name: str, values: NDArray[np.float64]) -> sympy.Symbol:
    if values.min() > 0:
        return sympy.Symbol(name, positive=True)
    return sympy.Symbol(name, nonnegative=True) if values.min() >= 0 else sympy.Symbol(name, real=True)


def _largest(values: NDArray[np.float64]) -> float:
    largest = float(np.abs(values).max())
    return largest if math.isfinite(largest) else math.inf


def _round_numbers(number: float) -> Iterator[sympy.Rational]:
    """Integers first."""
    for denominator in _DENOMINATORS:
        numerator = round(number * denominator)
        if numerator and abs(numerator / denominator - number) <= _NEAR:
            yield sympy.Rational(numerator, denominator)


def _without_one(equation: sympy.Expr, extra: Sequence[sympy.Expr], data: Data) -> tuple[sympy.Expr, str] | None:
    """The equation without the least that can be removed from what is no term of the law; None: nothing can be."""
    found = [(equation - group, group) for group in extra]
    for group in extra:
        for inner in sympy.preorder_traversal(group):
            if isinstance(inner, sympy.Add) and inner is not group:
                found += [(equation - group + group.xreplace({inner: inner - part}), part) for part in inner.args]
    changes = [data.largest(smaller - equation) for smaller, _ in found]
    least = min(range(len(found)), key=changes.__getitem__, default=None)
    if least is None or not changes[least] < data.threshold:
        return None
    return found[least][0], sympy.sstr(sympy.N(found[least][1], 4))


def _difference(extra: Sequence[sympy.Expr], missing: Sequence[Shape]) -> str:
    parts = []
    if missing:
        parts.append(f"{len(missing)} of the law's terms are missing")
    if extra:
        parts.append(f"no terms of the law: {', '.join(sympy.sstr(sympy.N(group, 4)) for group in extra)}")
    return "; ".join(parts)
