"""Values of an expression tree for many rows at once, and their derivatives with respect to its free constants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from evaluator_api import Expression
from numpy.typing import NDArray

Values = NDArray[np.float64]
Slopes = dict[int, Values]
"""Number of a symbol to the derivative with respect to it; what is not there is zero."""
_Parts = Sequence[Values]

_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "tanh": np.tanh, "abs": np.abs, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "pow": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_SLOPES: Mapping[str, Sequence[Callable[[_Parts, Values], Any]]] = {
    "neg": [lambda _, __: -1.0],
    "exp": [lambda _, y: y],
    "log": [lambda p, _: 1 / p[0]],
    "sqrt": [lambda _, y: 0.5 / y],
    "sin": [lambda p, _: np.cos(p[0])],
    "cos": [lambda p, _: -np.sin(p[0])],
    "tan": [lambda _, y: 1 + y * y],
    "tanh": [lambda _, y: 1 - y * y],
    "abs": [lambda p, _: np.sign(p[0])],
    "add": [lambda _, __: 1.0, lambda _, __: 1.0],
    "sub": [lambda _, __: 1.0, lambda _, __: -1.0],
    "mul": [lambda p, _: p[1], lambda p, _: p[0]],
    "div": [lambda p, _: 1 / p[1], lambda p, y: -y / p[1]],
    "pow": [lambda p, _: p[1] * np.power(p[0], p[1] - 1), lambda p, y: y * np.log(p[0])],
    "min": [lambda p, _: 1.0 * (p[0] <= p[1]), lambda p, _: 1.0 * (p[0] > p[1])],
    "max": [lambda p, _: 1.0 * (p[0] >= p[1]), lambda p, _: 1.0 * (p[0] < p[1])],
}
"""Operator to the derivative with respect to each operand, from the operands and the value."""


def values(tree: Expression, symbols: Sequence[Any]) -> Values:
    """What a tree gives.

    Args:
        tree: Checked.
        symbols: By number: (n,) rows of an input, or a constant.

    Returns:
        (n,) or () values; NaN and infinities where they arise.
    """
    with np.errstate(all="ignore"):
        return _values(tree, symbols)


def _values(tree: Expression, symbols: Sequence[Any]) -> Values:
    if tree.operator == "symbol":
        return np.asarray(symbols[tree.symbol], dtype=np.float64)
    if tree.operator == "constant":
        return np.float64(tree.value)  # type: ignore[return-value] # a scalar stands for an array of no dimension
    return _FUNCTIONS[tree.operator](*(_values(operand, symbols) for operand in tree.operands))


def values_and_slopes(tree: Expression, symbols: Sequence[Any], free: Collection[int]) -> tuple[Values, Slopes]:
    """The same, and the derivatives with respect to the symbols that are free."""
    with np.errstate(all="ignore"):
        return _values_and_slopes(tree, symbols, frozenset(free))


def _values_and_slopes(tree: Expression, symbols: Sequence[Any], free: frozenset[int]) -> tuple[Values, Slopes]:
    if not tree.operands:
        is_free = tree.operator == "symbol" and tree.symbol in free
        return _values(tree, symbols), ({tree.symbol: np.float64(1.0)} if is_free else {})  # type: ignore[dict-item]
    parts, inner = zip(*(_values_and_slopes(operand, symbols, free) for operand in tree.operands), strict=True)
    value = _FUNCTIONS[tree.operator](*parts)
    slopes: Slopes = {}
    for slope_of, below in zip(_SLOPES[tree.operator], inner, strict=True):
        if below:
            slope = slope_of(parts, value)
            for number, one in below.items():
                term = slope * one
                slopes[number] = slopes[number] + term if number in slopes else term
    return value, slopes


def linear_symbols(tree: Expression, free: Sequence[int]) -> list[int]:
    """Free symbols in which the tree is linear, with all others fixed; as many as are found one after the other."""
    found: list[int] = []
    for number in free:
        if _degree(tree, frozenset({*found, number})) <= 1:
            found.append(number)
    return found


def _degree(tree: Expression, symbols: frozenset[int]) -> float:
    """Of a tree as a polynomial in these symbols; infinite: it is none."""
    degrees = [_degree(operand, symbols) for operand in tree.operands]
    match tree.operator:
        case "symbol":
            return float(tree.symbol in symbols)
        case "add" | "sub" | "neg":
            return max(degrees)
        case "mul":
            return sum(degrees)
        case "div":
            return degrees[0] if degrees[1] == 0 else np.inf
    return np.inf if any(degrees) else 0.0
