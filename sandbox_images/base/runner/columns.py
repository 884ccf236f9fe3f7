"""Typed columns: the arguments and replies of one call for many instances, as arrays over the body of a frame.

A scalar column is one little-endian array with one element per instance. A ragged column is a little-endian u32 length
per instance, followed by the elements of all instances, one after the other. Nothing here loops over elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from expressions import NODE
from frames import ProtocolError
from numpy.typing import NDArray

EXPRESSION, SYMBOLIC = "expression", "symbol"
"""What a reply may be, and what an argument may be, beside numbers; a symbol is no data and does not travel."""
NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
)  # fmt: skip
DTYPES: Mapping[str, np.dtype[Any]] = {**{name: np.dtype(name).newbyteorder("<") for name in NUMBERS}, EXPRESSION: NODE}
"""Elements of columns; those of expressions are nodes, as many to an instance as its tree has."""
LENGTH = np.dtype("<u4")
MAX_SYMBOLS = 1 << 10
"""Of a function, elements of sequences included; a node holds the number in 16 bits."""


class _Latest:
    """The lengths that were looked at last: the columns of a call mostly share theirs."""

    def __init__(self) -> None:
        self._known: tuple[bytes, np.dtype[Any], int] = (b"", LENGTH, 0)

    def total(self, lengths: NDArray[Any]) -> int:
        """Their sum; -1: one of them is negative."""
        content = lengths.tobytes()
        known, dtype, total = self._known
        if content != known or lengths.dtype != dtype:
            total = int(lengths.sum()) if not lengths.size or lengths.min() >= 0 else -1
            self._known = (content, lengths.dtype, total)
        return total


_LATEST = _Latest()


@dataclass(frozen=True, slots=True)
class Ragged:
    """One array per instance, concatenated.

    Raises:
        ValueError: The lengths do not add up to the values.
    """

    values: NDArray[Any]
    """(sum of lengths,) elements, instance after instance."""
    lengths: NDArray[Any]
    """(n,) how many elements each instance has, not negative."""

    def __post_init__(self) -> None:
        """Check that the lengths partition the values."""
        values, lengths = np.asarray(self.values), np.asarray(self.lengths)
        if values.ndim != 1 or lengths.ndim != 1 or (lengths.size and lengths.dtype.kind not in "iu"):
            msg = f"a ragged column needs 1-D values and 1-D integer lengths, got {values.ndim}-D and {lengths.ndim}-D"
            raise ValueError(msg)
        if _LATEST.total(lengths) != values.size:
            msg = f"lengths that add up to {int(lengths.sum())} do not partition {values.size} values"
            raise ValueError(msg)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "lengths", lengths)

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]]) -> Self:
        """Concatenate one 1-D array per instance; at least one."""
        return cls(np.concatenate(arrays), np.array([len(array) for array in arrays], dtype=LENGTH))

    def split(self) -> list[NDArray[Any]]:
        """One view per instance."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1])


Values = NDArray[Any] | Ragged


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What an argument or a reply looks like."""

    name: str
    dtype: str
    ragged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolArgument:
    """An argument of the dtype `symbol`: a symbol, or a sequence of them."""

    position: int
    """Among all arguments."""
    length: int | None
    """Of the sequence; None: a symbol by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A function of the program, as `task.yaml` declares it."""

    name: str
    arguments: tuple[Column, ...]
    """Those that are data, in order."""
    returns: Column
    like: int | None
    """Index of the ragged argument whose lengths the reply has; None: one scalar per instance."""
    finite: bool = True
    """Whether a reply with an infinity or NaN is invalid."""
    minimum: float = -math.inf
    maximum: float = math.inf
    symbols: tuple[SymbolArgument, ...] = ()
    """The other arguments, in order."""
    maximum_nodes: int = 0
    """That an expression may count."""

    @property
    def symbol_count(self) -> int:
        """How many symbols there are; they are numbered in order, each element of a sequence by itself."""
        return sum(1 if symbol.length is None else symbol.length for symbol in self.symbols)

    @classmethod
    def parse(cls, name: str, declared: object) -> Self:
        """Read `{arguments: [{name, dtype, ragged}], returns: {dtype, like, finite, minimum, maximum}}`.

        An argument of dtype `symbol` may have a `length`; a reply of dtype `expression` has `maximum_nodes`.

        Raises:
            ProtocolError: It is not of this form.
        """
        try:
            return cls._parse(name, declared)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"signature of {name!r} is not understood: {type(error).__name__}: {error}"
            raise ProtocolError(msg) from error

    @classmethod
    def _parse(cls, name: str, declared: Any) -> Self:  # noqa: ANN401 - JSON of any form
        arguments = tuple(
            Column(name=str(one["name"]), dtype=_known(one["dtype"]), ragged=bool(one.get("ragged", False)))
            for one in declared["arguments"]
            if one["dtype"] != SYMBOLIC
        )
        symbols = tuple(_symbols(declared["arguments"]))
        returns = declared["returns"]
        is_expression = returns["dtype"] == EXPRESSION
        like = returns.get("like")
        if like is not None:
            like = [column.name for column in arguments if column.ragged].index(like)
            like = [index for index, column in enumerate(arguments) if column.ragged][like]
        return cls(
            name=name,
            arguments=arguments,
            returns=Column(
                name="returns",
                dtype=EXPRESSION if is_expression else _known(returns["dtype"]),
                ragged=is_expression or like is not None,
            ),
            like=like,
            finite=bool(returns.get("finite", True)),
            minimum=_bound(returns.get("minimum"), -math.inf),
            maximum=_bound(returns.get("maximum"), math.inf),
            symbols=symbols,
            maximum_nodes=_natural(returns["maximum_nodes"]) if is_expression else 0,
        )


def parse_signatures(functions: object) -> dict[str, Signature]:
    """All signatures of a `start` frame.

    Raises:
        ProtocolError: `functions` is not a non-empty table of signatures.
    """
    if not isinstance(functions, dict) or not functions:
        msg = "'functions' declares no function"
        raise ProtocolError(msg)
    return {name: Signature.parse(name, declared) for name, declared in functions.items()}


def pack(columns: Sequence[Column], count: int, values: Sequence[Values]) -> tuple[list[dict[str, Any]], bytes]:
    """(table for the head, body).

    Args:
        columns: What is declared, in order.
        count: Number of instances.
        values: One per column, of its dtype or of one that casts to it without changing kind.

    Raises:
        TypeError: A value is not of its column's form or dtype.
        ValueError: A value is not 1-D, or is not for `count` instances.
    """
    parts: list[Any] = []
    for column, value in zip(columns, values, strict=True):
        if column.ragged != isinstance(value, Ragged):
            wanted = "a Ragged" if column.ragged else "an array with one element per instance"
            msg = f"column {column.name!r} is to be {wanted}, not {type(value).__name__}"
            raise TypeError(msg)
        elements = value.values if isinstance(value, Ragged) else np.asarray(value)
        per_instance = value.lengths if isinstance(value, Ragged) else elements
        if elements.ndim != 1 or len(per_instance) != count:
            msg = f"column {column.name!r} of shape {per_instance.shape} is not for {count} instances"
            raise ValueError(msg)
        if column.ragged:
            parts.append(per_instance.astype(LENGTH))
        casting: Literal["same_kind", "unsafe"] = "same_kind" if elements.size else "unsafe"  # [] has no dtype yet
        parts.append(elements.astype(DTYPES[column.dtype], casting=casting, copy=False))
    return table_of(columns), b"".join([np.ascontiguousarray(part).data for part in parts])


def table_of(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """What the head of a frame says of these columns."""
    return [{"name": column.name, "dtype": column.dtype, "ragged": column.ragged} for column in columns]


def unpack(columns: Sequence[Column], count: int, table: object, body: bytes) -> list[Values]:
    """The inverse of `pack` for untrusted input; the arrays are read-only views of the body.

    Args:
        columns: What is expected, in order.
        count: Number of instances.
        table: From the head.
        body: Of the frame.

    Raises:
        ProtocolError: The table declares anything else, or does not cover the body exactly.
    """
    if not isinstance(table, list) or table != table_of(columns):
        msg = "the column table is not the declared one"
        raise ProtocolError(msg)
    offset = 0
    values: list[Values] = []
    for column in columns:
        size = count
        lengths = None
        if column.ragged:
            lengths, offset = _take(body, LENGTH, count, offset)
            size = int(lengths.sum(dtype=np.int64))
        elements, offset = _take(body, DTYPES[column.dtype], size, offset)
        values.append(elements if lengths is None else Ragged(elements, lengths))
    if offset != len(body):
        msg = f"the columns cover {offset} of {len(body)} bytes"
        raise ProtocolError(msg)
    return values


def _take(body: bytes, dtype: np.dtype[Any], count: int, offset: int) -> tuple[NDArray[Any], int]:
    end = offset + count * dtype.itemsize
    if end > len(body):
        msg = f"a column of {count} {dtype} needs {end} bytes, the body has {len(body)}"
        raise ProtocolError(msg)
    elements = np.frombuffer(body, dtype, count, offset)
    if dtype.kind == "b" and (elements.view(np.uint8) > 1).any():
        msg = "a column of bool holds bytes other than 0 and 1"
        raise ProtocolError(msg)
    return elements, end


def _symbols(declared: Sequence[Mapping[str, Any]]) -> Iterator[SymbolArgument]:
    count = 0
    for position, one in enumerate(declared):
        if one["dtype"] == SYMBOLIC:
            length = one.get("length")
            count += 1 if length is None else _natural(length)
            if count > MAX_SYMBOLS:
                msg = f"more than {MAX_SYMBOLS} symbols"
                raise ValueError(msg)
            yield SymbolArgument(position=position, length=length)


def _natural(value: object) -> int:
    if type(value) is not int or value < 1:
        msg = f"{value!r} is not a number from 1 on"
        raise TypeError(msg)
    return value


def _known(dtype: object) -> str:
    if not isinstance(dtype, str) or dtype not in NUMBERS:
        msg = f"dtype {dtype!r} is not one of {', '.join(NUMBERS)}"
        raise ValueError(msg)
    return dtype


def _bound(value: object, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"bound {value!r} is not a number"
        raise TypeError(msg)
    return float(value)
