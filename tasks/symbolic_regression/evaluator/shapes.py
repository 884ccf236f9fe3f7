"""What terms of an equation depend on, whatever their constants are.

The shape of a term is a nested tuple in which coefficients are left out and numbers inside of functions are free, but
for integer exponents, which belong to the structure: `x` and `x**3` differ, `0.4*log(t + 2)` and `7*log(3*t + 1)` do
not. A sine and a cosine differ by their phase alone, and so have one shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

FREE = "*"
"""Stands for an exponent that is no integer; in the shape of a law for any exponent."""
CONSTANT = "1"
"""The shape of what depends on nothing."""
_DIGITS = 9
Shape = Any
"""A nested tuple of texts and integers."""


def grouped(equation: sympy.Expr) -> list[sympy.Expr]:
    """Terms of an expanded equation, in one sum each where they differ in nothing but coefficient and phase."""
    groups: dict[Shape, list[sympy.Expr]] = {}
    for term in sympy.Add.make_args(sympy.expand(equation)):
        if term != 0:
            groups.setdefault(shape_of(term, with_numbers=True), []).append(term)
    return [sympy.Add(*terms) for terms in groups.values()]


def shape_of(term: sympy.Expr, *, with_numbers: bool = False) -> Shape:
    """The shape of a product, or of the first of several terms that `grouped` put together.

    Args:
        term: Expanded.
        with_numbers: Tell apart terms whose numbers inside of functions differ in nine digits, phases excepted.
    """
    if isinstance(term, sympy.Add):
        term = term.args[0]
    factors = [_factor(factor, with_numbers) for factor in sympy.Mul.make_args(term) if not factor.is_number]
    if len(factors) < 2:
        return factors[0] if factors else CONSTANT
    return ("mul", *_sorted(factors))


def matches(law: Shape, shape: Shape) -> bool:
    """Whether a term has the shape of a law's term, whose free exponents stand for any."""
    if isinstance(law, tuple) and law[0] == "pow" and law[2] == FREE:
        base = shape[1] if isinstance(shape, tuple) and shape[0] == "pow" else shape
        return matches(law[1], base)
    if isinstance(law, tuple) and isinstance(shape, tuple):
        return len(law) == len(shape) and all(map(matches, law, shape))
    return bool(law == shape)


def without_logarithm(law: Shape) -> Shape | None:
    """What a law's term with a logarithm leaves when its argument is scaled; None: it has no logarithm.

    `A*log(k*t + 1)` is `A*log(t + 1/k) + log(k)*A`: the term `A` is part of the law, without being one of its own.
    """
    factors = law[1:] if isinstance(law, tuple) and law[0] == "mul" else (law,)
    logarithms = [factor for factor in factors if isinstance(factor, tuple) and factor[0] == "log"]
    if len(logarithms) != 1:
        return None
    others = [factor for factor in factors if factor != logarithms[0]]
    if len(others) < 2:
        return others[0] if others else CONSTANT
    return ("mul", *others)


def _factor(factor: sympy.Expr, with_numbers: bool) -> Shape:
    if isinstance(factor, sympy.Symbol):
        return factor.name
    if isinstance(factor, sympy.exp):
        return ("exp", _inside(factor.args[0], with_numbers, with_constant=False))
    if isinstance(factor, sympy.Pow):
        return _power(factor.base, factor.exp, with_numbers)
    name = "sin" if isinstance(factor, sympy.cos) else factor.func.__name__.lower()
    inside = [_inside(argument, with_numbers, with_constant=name != "sin") for argument in factor.args]
    return (name, *_sorted(inside))


def _power(base: sympy.Expr, exponent: sympy.Expr, with_numbers: bool) -> Shape:
    if base.is_number:
        return ("exp", _inside(exponent * sympy.log(base), with_numbers, with_constant=False))
    below = base.name if isinstance(base, sympy.Symbol) else _base(base, with_numbers)
    if isinstance(exponent, sympy.Integer):
        return ("pow", below, int(exponent))
    if exponent.is_number:
        return ("pow", below, _digits(exponent) if with_numbers else FREE)
    return ("power", below, _inside(exponent, with_numbers, with_constant=True))


def _base(base: sympy.Expr, with_numbers: bool) -> Shape:
    if isinstance(base, sympy.Add):
        return _inside(base, with_numbers, with_constant=True)
    return shape_of(base, with_numbers=with_numbers)


def _inside(argument: sympy.Expr, with_numbers: bool, *, with_constant: bool) -> Shape:
    """The terms of a function's argument."""
    found = []
    for term in sympy.Add.make_args(sympy.expand(argument)):
        coefficient, rest = term.as_independent(*term.free_symbols, as_Add=False) if term.free_symbols else (term, None)
        if rest is None:
            if with_constant and term != 0:
                found.append((CONSTANT, _digits(term)) if with_numbers else CONSTANT)
            continue
        shape = shape_of(rest, with_numbers=with_numbers)
        found.append((shape, _digits(coefficient)) if with_numbers else shape)
    return ("sum", *_sorted(found))


def _digits(number: sympy.Expr) -> str:
    return str(sympy.N(number, _DIGITS))


def _sorted(shapes: Iterable[Shape]) -> list[Shape]:
    return sorted(shapes, key=repr)
