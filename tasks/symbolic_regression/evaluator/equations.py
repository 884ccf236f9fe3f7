"""Expression trees as SymPy's equations, and as text for people."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import sympy

_WHOLE = 1 << 31
_TIGHTEST = 5
_BINARY: Mapping[str, tuple[str, int]] = {
    "add": (" + ", 1), "sub": (" - ", 1), "mul": ("*", 2), "div": ("/", 2), "pow": ("**", 4),
}  # fmt: skip
"""How an operator is written, and how tightly it binds."""
_OPPOSITE = {"add": " - ", "sub": " + "}
"""How it is written before a minus."""
_MINUS = 3


class Tree(Protocol):
    """A checked expression tree: the evaluator's `Expression`."""

    @property
    def operator(self) -> str:
        """Such as `add`; `symbol` and `constant` are leaves."""

    @property
    def operands(self) -> tuple[Any, ...]:
        """Trees, in the order of writing."""

    @property
    def symbol(self) -> int:
        """Number of a `symbol`."""

    @property
    def value(self) -> float:
        """Of a `constant`."""

    @property
    def nodes(self) -> int:
        """How many it counts."""

    @property
    def symbols(self) -> frozenset[int]:
        """Numbers of those that occur."""


def sympy_of(tree: Tree, symbols: Sequence[sympy.Expr]) -> sympy.Expr:
    """A tree as an equation.

    Args:
        tree: Checked, so it is no deeper than it may be large.
        symbols: What each of its symbols stands for, by number: an input, or the value of a constant.
    """
    if tree.operator == "constant":
        return sympy.Float(tree.value)
    if tree.operator == "symbol":
        return symbols[tree.symbol]
    return _OPERATORS[tree.operator](*(sympy_of(operand, symbols) for operand in tree.operands))


def text_of(tree: Tree, symbols: Sequence[str]) -> str:
    """A tree as a line of Python, with no parentheses that are not needed.

    Args:
        tree: Checked.
        symbols: How each of its symbols is written, by number: a name, or a number.
    """
    return _written(tree, symbols)[0]


def _written(tree: Tree, symbols: Sequence[str]) -> tuple[str, int]:
    """Text, and how tightly its outermost operator binds."""
    if tree.operator in ("constant", "symbol"):
        text = f"{tree.value:.6g}" if tree.operator == "constant" else symbols[tree.symbol]
        return text, _MINUS if text.startswith("-") else _TIGHTEST
    parts = [_written(operand, symbols) for operand in tree.operands]
    if tree.operator == "neg":
        return f"-{_enclosed(parts[0], _MINUS)}", _MINUS
    if tree.operator not in _BINARY:
        return f"{tree.operator}({', '.join(text for text, _ in parts)})", _TIGHTEST
    sign, binding = _BINARY[tree.operator]
    left, right = (binding + 1, binding) if tree.operator == "pow" else (binding, binding + 1)
    first, second = _enclosed(parts[0], left), _enclosed(parts[1], right)
    if tree.operator in _OPPOSITE and second.startswith("-"):
        sign, second = _OPPOSITE[tree.operator], second[1:]
    return f"{first}{sign}{second}", binding


def _enclosed(part: tuple[str, int], binding: int) -> str:
    """In parentheses, unless it binds at least so tightly."""
    text, own = part
    return text if own >= binding else f"({text})"


def _power(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    is_whole = isinstance(exponent, sympy.Float) and float(exponent).is_integer() and abs(exponent) < _WHOLE
    return sympy.Pow(base, sympy.Integer(int(exponent)) if is_whole else exponent)


def _maximum(first: sympy.Expr, second: sympy.Expr) -> sympy.Expr:
    is_magnitude = sympy.expand(first + second) == 0
    return sympy.Abs(first) if is_magnitude else sympy.Max(first, second)


def _minimum(first: sympy.Expr, second: sympy.Expr) -> sympy.Expr:
    is_magnitude = sympy.expand(first + second) == 0
    return -sympy.Abs(first) if is_magnitude else sympy.Min(first, second)


_OPERATORS: Mapping[str, Callable[..., sympy.Expr]] = {
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": _power, "min": _minimum, "max": _maximum, "abs": sympy.Abs, "exp": sympy.exp, "log": sympy.log,
    "sqrt": sympy.sqrt, "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan, "tanh": sympy.tanh,
}  # fmt: skip
