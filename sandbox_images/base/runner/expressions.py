"""Expression trees as data: what a program builds from symbols, and what an evaluator gets to see of it.

On the wire an expression is a row of nodes in prefix order: an operator, then its operands one after the other. A node
is a code, the number of a symbol and a constant, and whatever does not apply is zero, so that a tree has one form only.
Nothing here recurses, since a hostile tree is as deep as it is large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NODE = np.dtype([("code", "<u2"), ("symbol", "<u2"), ("value", "<f8")])
"""A node on the wire, 12 bytes."""
CONSTANT, SYMBOL, NEGATION = "constant", "symbol", "neg"
"""Operators that are none: the two kinds of leaves; and the only one that counts no node."""
ARITY: Mapping[str, int] = {
    CONSTANT: 0, SYMBOL: 0, NEGATION: 1,
    "exp": 1, "log": 1, "sqrt": 1, "sin": 1, "cos": 1, "tan": 1, "tanh": 1, "abs": 1,
    "add": 2, "sub": 2, "mul": 2, "div": 2, "pow": 2, "min": 2, "max": 2,
}  # fmt: skip
"""Operator to number of operands; the order gives the codes on the wire, from 0 on."""
CODES: Mapping[str, int] = {operator: code for code, operator in enumerate(ARITY)}
_OPERATORS = tuple(ARITY)


class ExpressionError(Exception):
    """An expression that is refused; the message is a fixed reason id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A checked expression tree, of real numbers."""

    operator: str
    """A key of `ARITY`."""
    operands: tuple[Expression, ...] = ()
    """In the order of writing."""
    symbol: int = 0
    """Of a `symbol`: its number, counted over the symbol arguments of the function, elements of sequences included."""
    value: float = 0.0
    """Of a `constant`: the finite number."""

    @property
    def nodes(self) -> int:
        """Operators, symbols and constants; a unary minus counts none."""
        return sum(part.operator != NEGATION for part in self.walk())

    @property
    def symbols(self) -> frozenset[int]:
        """Numbers of the symbols that occur."""
        return frozenset(part.symbol for part in self.walk() if part.operator == SYMBOL)

    def walk(self) -> Iterator[Expression]:
        """Every part of the tree in prefix order, itself first."""
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting += reversed(part.operands)


def rows_of(expression: Expression) -> NDArray[Any]:
    """(n,) nodes as they travel."""
    rows = [(CODES[part.operator], part.symbol, part.value) for part in expression.walk()]
    return np.array(rows, dtype=NODE)


def most_rows(maximum_nodes: int) -> int:
    """Nodes on the wire of an expression that counts so many: each may have a minus of its own."""
    return 2 * maximum_nodes


def expression_of(rows: NDArray[Any], *, symbols: int, maximum_nodes: int) -> Expression:
    """Check untrusted rows, and build the tree that they say.

    Args:
        rows: (n,) of dtype `NODE`.
        symbols: How many there are; their numbers are below.
        maximum_nodes: That the expression may count.

    Raises:
        ExpressionError: `reply-nodes`: it counts more; `reply-not-finite`: a constant is no finite number;
            `reply-expression`: it is not one whole tree in its only form.
    """
    if len(rows) > most_rows(maximum_nodes):
        raise ExpressionError("reply-nodes")
    if not np.isfinite(rows["value"]).all():
        raise ExpressionError("reply-not-finite")
    built: list[Expression] = []
    for code, symbol, value in reversed(rows.tolist()):
        if code >= len(_OPERATORS):
            raise ExpressionError("reply-expression")
        built.append(_joined(_OPERATORS[code], symbol, value, built, symbols))
    if len(built) != 1:
        raise ExpressionError("reply-expression")
    if built[0].nodes > maximum_nodes:
        raise ExpressionError("reply-nodes")
    return built[0]


def _joined(operator: str, symbol: int, value: float, built: list[Expression], symbols: int) -> Expression:
    """One node above the operands that were built before it, which are taken away."""
    arity = ARITY[operator]
    is_plain = (operator == SYMBOL or symbol == 0) and (operator == CONSTANT or _is_zero(value))
    if not is_plain or len(built) < arity or (operator == SYMBOL and symbol >= symbols):
        raise ExpressionError("reply-expression")
    operands = tuple(built.pop() for _ in range(arity))
    if operator == NEGATION and operands[0].operator in (NEGATION, CONSTANT):
        raise ExpressionError("reply-expression")  # a second form of what has one already
    return Expression(operator=operator, operands=operands, symbol=symbol, value=value)


def _is_zero(value: float) -> bool:
    return value == 0 and math.copysign(1.0, value) > 0


def expressions_of(
    rows: NDArray[Any], lengths: Sequence[int], *, symbols: int, maximum_nodes: int
) -> tuple[Expression, ...]:
    """One tree per instance, from the nodes of all of them one after the other; as `expression_of`."""
    if any(length > most_rows(maximum_nodes) for length in lengths):
        raise ExpressionError("reply-nodes")
    found, end = [], 0
    for length in lengths:
        found.append(expression_of(rows[end : end + length], symbols=symbols, maximum_nodes=maximum_nodes))
        end += length
    return tuple(found)
