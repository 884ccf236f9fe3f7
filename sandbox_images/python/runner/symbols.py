"""Symbols as a program's arguments: what it computes with them becomes an expression, which is returned as data.

A symbol takes part in arithmetic and in the NumPy functions of `_UFUNCS` as a number would. It has no value, so
whatever asks for one (a comparison, `bool`, `float`, an index) is a `TypeError`, and the program's failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from columns import Signature
from expressions import CODES, CONSTANT, NEGATION, NODE, SYMBOL, most_rows
from numpy.typing import NDArray
from wire import InvalidReply, Wire

_UFUNCS: dict[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.power: "pow", np.float_power: "pow",
    np.minimum: "min", np.maximum: "max", np.exp: "exp", np.log: "log", np.sqrt: "sqrt", np.sin: "sin", np.cos: "cos",
    np.tan: "tan", np.tanh: "tanh", np.absolute: "abs", np.fabs: "abs", np.negative: NEGATION,
}  # fmt: skip
"""NumPy's function to the operator that it stands for."""
_NUMBERS = (int, float, np.integer, np.floating)


class Symbolic:
    """A symbol, or what was computed from symbols; it never changes."""

    __slots__ = ("nodes", "operands", "operator", "symbol", "value")
    __hash__ = None  # type: ignore[assignment] # what cannot be compared is no key

    def __init__(self, operator: str, *operands: Symbolic, symbol: int = 0, value: float = 0.0) -> None:
        """As `expressions.Expression`; operands may be shared, and then count every time."""
        self.operator = operator
        self.operands = operands
        self.symbol = symbol
        self.value = value
        self.nodes: int = sum(operand.nodes for operand in operands) + (operator != NEGATION)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: object) -> Symbolic:  # noqa: ANN401
        """NumPy's functions of numbers, applied to symbols."""
        name = ufunc.__name__
        if method != "__call__" or options:
            msg = f"numpy.{name} takes symbols only as plain arguments, without .{method} and options"
            raise TypeError(msg)
        if ufunc is np.positive:
            return self
        if ufunc is np.square:
            return _joined("pow", self, 2)
        if ufunc not in _UFUNCS:
            msg = f"numpy.{name} is no function of symbols; there are {', '.join(sorted(f.__name__ for f in _UFUNCS))}"
            raise TypeError(msg)
        return _joined(_UFUNCS[ufunc], *inputs)

    def __array_function__(self, function: Any, *_: object) -> NoReturn:  # noqa: ANN401
        """NumPy's functions of arrays, of which a symbol is none."""
        msg = f"numpy.{getattr(function, '__name__', 'function')} is no function of symbols, which are scalars"
        raise TypeError(msg)

    def __neg__(self) -> Symbolic:
        """A minus, which counts no node."""
        return _joined(NEGATION, self)

    def __pos__(self) -> Symbolic:
        """Itself."""
        return self

    def __abs__(self) -> Symbolic:
        """The absolute value."""
        return _joined("abs", self)

    def __bool__(self) -> bool:
        """No condition."""
        msg = "a symbolic value is neither true nor false; conditions on inputs are not possible"
        raise TypeError(msg)


def _joined(operator: str, *operands: object) -> Symbolic:
    """An operator over symbols and numbers; minus signs are kept at one."""
    parts = [operand if isinstance(operand, Symbolic) else _constant(operand) for operand in operands]
    if operator == NEGATION:
        (only,) = parts
        if only.operator == NEGATION:
            return only.operands[0]
        if only.operator == CONSTANT:
            return Symbolic(CONSTANT, value=-only.value)
    return Symbolic(operator, *parts)


def _constant(value: object) -> Symbolic:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool) or not isinstance(value, _NUMBERS):
        kind = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        msg = f"symbols go together with real numbers, and not with {kind}"
        raise TypeError(msg)
    return Symbolic(CONSTANT, value=float(value))


def _binary(operator: str, *, is_reflected: bool = False) -> Callable[[Symbolic, object], Symbolic]:
    def method(self: Symbolic, other: object) -> Symbolic:
        return _joined(operator, other, self) if is_reflected else _joined(operator, self, other)

    return method


def _compared(self: Symbolic, _: object) -> NoReturn:
    del self
    msg = "a symbolic value cannot be compared; np.minimum and np.maximum may do"
    raise TypeError(msg)


for _name, _operator in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}.items():
    setattr(Symbolic, f"__{_name}__", _binary(_operator))
    setattr(Symbolic, f"__r{_name}__", _binary(_operator, is_reflected=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Symbolic, f"__{_name}__", _compared)


def with_symbols(signature: Signature, function: Callable[..., object]) -> Callable[..., object]:
    """A function of the data arguments alone, which gives the program's one its symbols as well."""
    if not signature.symbols:
        return function
    symbols: list[tuple[int, object]] = []
    number = 0
    for column in signature.symbols:
        count = 1 if column.length is None else column.length
        row = tuple(Symbolic(SYMBOL, symbol=number + index) for index in range(count))
        symbols.append((column.position, row[0] if column.length is None else row))
        number += count

    def call(*arguments: object) -> object:
        complete = list(arguments)
        for position, symbol in symbols:  # in the order of positions, so that each is right when its turn comes
            complete.insert(position, symbol)
        return function(*complete)

    return call


class ExpressionWire(Wire):
    """The messages of a function that returns an expression."""

    def elements(self, value: object, expected: int | None) -> bytes:
        """The nodes of what the program returned; a plain number is a constant.

        Raises:
            InvalidReply: It is none, it holds a constant that is not finite, or it counts too many nodes.
        """
        del expected
        if not isinstance(value, Symbolic):
            value = _returned_number(value)
        most = self.signature.maximum_nodes
        if value.nodes > most:
            raise InvalidReply("reply-nodes")
        rows = _rows(value, most_rows(most))
        if not np.isfinite(rows["value"]).all():
            raise InvalidReply("reply-not-finite")
        return rows.tobytes()


def _returned_number(value: object) -> Symbolic:
    try:
        return _constant(value)
    except TypeError as error:
        is_sequence = isinstance(value, np.ndarray | list | tuple)
        raise InvalidReply("reply-shape" if is_sequence else "reply-type") from error
    except OverflowError as error:  # an integer that no float holds
        raise InvalidReply("reply-not-finite") from error


def _rows(root: Symbolic, most: int) -> NDArray[Any]:
    rows: list[tuple[int, int, float]] = []
    waiting: list[Symbolic] = [root]
    while waiting and len(rows) < most:
        part = waiting.pop()
        rows.append((CODES[part.operator], part.symbol, part.value))
        waiting += reversed(part.operands)
    return np.array(rows, dtype=NODE)


def wire_for(number: int, signature: Signature) -> Wire:
    """The messages of a function, as its signature needs them."""
    kind = ExpressionWire if signature.returns.dtype == "expression" else Wire
    return kind(number, signature)


def need_processes(signatures: Sequence[Signature]) -> bool:
    """Whether copies of a program with these functions live in a process each: symbols are made before the copies."""
    return any(signature.symbols or signature.returns.dtype == "expression" for signature in signatures)
