"""What travels between the parent and one copy of the program: one message per call, one per reply, over pipes.

A call is a packed header (u32 bytes in all, u32 number of the function, and for every argument the scalar itself or the
u32 length of the array) and the elements of the ragged arguments. A reply is a status byte, a u32 size and that many
bytes. Both are built so that neither side does work per element, and little per instance: a step of a hundred instances
is two hundred messages.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from columns import DTYPES, LENGTH, Ragged, Signature, Values
from numpy.typing import NDArray

CALL = struct.Struct("<II")
REPLY = struct.Struct("<BI")
OK, INVALID, RAISED = 0, 1, 2
"""Status bytes; the payload is the elements, a reason id, and a JSON object."""

_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip

_CASTS = {"f": "fiub", "i": "iub", "u": "iub", "b": "b"}
"""Kind of the declared dtype to the kinds that become it without losing their meaning."""
_SCALARS = frozenset({bool, int, float, np.float16, np.longdouble, *(np.dtype(name).type for name in _FORMATS)})


class InvalidReply(Exception):
    """What the program returned is not of the declared form; the message is a fixed reason id."""


class Wire:
    """The messages of one function."""

    def __init__(self, number: int, signature: Signature) -> None:
        """Lay out the header.

        Args:
            number: Of the function, in the order of the `start` frame.
            signature: Its declaration.
        """
        self.signature = signature
        self.number = number
        codes = ["I" if column.ragged else _FORMATS[column.dtype] for column in signature.arguments]
        self._header = struct.Struct(f"<II{''.join(codes)}")
        fields = [LENGTH if column.ragged else DTYPES[column.dtype] for column in signature.arguments]
        names = [f"argument{index}" for index in range(len(fields))]
        self._row = np.dtype([("total", LENGTH), ("function", LENGTH), *zip(names, fields, strict=True)])
        self._names = names
        self._ragged = [
            (index, DTYPES[column.dtype]) for index, column in enumerate(signature.arguments) if column.ragged
        ]
        self._returns = DTYPES[signature.returns.dtype]

    def messages(self, values: Sequence[Values], count: int) -> list[bytes]:
        """The call of every instance.

        Args:
            values: One per argument, for `count` instances each.
            count: Number of instances.
        """
        rows = np.empty(count, self._row)
        total = np.full(count, self._row.itemsize, dtype=np.int64)
        rows["function"] = self.number
        cuts: list[tuple[memoryview, list[int]]] = []
        for name, value in zip(self._names, values, strict=True):
            if not isinstance(value, Ragged):
                rows[name] = value
                continue
            rows[name] = value.lengths
            sizes = value.lengths.astype(np.int64) * value.values.itemsize
            total += sizes
            cuts.append((value.values.view(np.uint8).data, [0, *np.cumsum(sizes).tolist()]))
        rows["total"] = total
        headers, size = rows.tobytes(), self._row.itemsize
        if len(cuts) == 1:
            data, ends = cuts[0]
            return [headers[i * size : (i + 1) * size] + data[ends[i] : ends[i + 1]] for i in range(count)]
        return [
            b"".join([headers[i * size : (i + 1) * size], *(data[ends[i] : ends[i + 1]] for data, ends in cuts)])
            for i in range(count)
        ]

    def arguments(self, message: bytes) -> tuple[list[Any], int | None]:
        """(arguments in order, length that the reply must have or None for a scalar), from one whole message.

        Arrays are the instance's own and may be changed.
        """
        _, _, *parts = self._header.unpack_from(message)
        expected = None if self.signature.like is None else parts[self.signature.like]
        offset = self._header.size
        for index, dtype in self._ragged:
            count = parts[index]
            parts[index] = np.frombuffer(message, dtype, count, offset).copy()
            offset += count * dtype.itemsize
        return parts, expected

    def elements(self, value: object, expected: int | None) -> bytes:
        """The declared elements of what the program returned; never repaired, NaN and infinities pass.

        Raises:
            InvalidReply: Another type, shape, length or dtype, or an integer that does not fit.
        """
        if expected is None:
            array = _scalar(value)
        else:
            array = value if type(value) is np.ndarray else _from_list(value)
            if array.ndim != 1:
                raise InvalidReply("reply-shape")
            if len(array) != expected:
                raise InvalidReply("reply-length")
        return array.tobytes() if array.dtype == self._returns else _cast(array, self._returns).tobytes()


def _scalar(value: object) -> NDArray[Any]:
    if type(value) not in _SCALARS and not (type(value) is np.ndarray and value.ndim == 0):
        raise InvalidReply("reply-shape" if type(value) in {np.ndarray, list, tuple} else "reply-type")
    return np.asarray(value)


def _from_list(value: object) -> NDArray[Any]:
    if type(value) is not list and type(value) is not tuple:
        raise InvalidReply("reply-shape" if type(value) in _SCALARS else "reply-type")
    try:
        return np.array(value)
    except ValueError as error:  # lists of unequal lengths within
        raise InvalidReply("reply-shape") from error


def _cast(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if array.size == 0:
        return array.astype(dtype)  # an empty list has no dtype of its own
    if array.dtype.kind not in _CASTS[dtype.kind]:
        raise InvalidReply("reply-dtype")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and the evaluator judges that
        cast = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(cast, array):
        raise InvalidReply("reply-range")
    return cast
