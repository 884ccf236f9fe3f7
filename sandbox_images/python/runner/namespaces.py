"""The copies of a loaded program in this process: the program is loaded once more for each, into modules of its own.

For programs of which `sharing.can_share` holds, and that load quickly; see there for why.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from columns import Ragged, Values
from inspection import module_name
from instance import OK, Function, respond
from instances import Answer, failure
from numpy.typing import NDArray
from program import Program
from wire import Wire

LOAD_SECONDS = 0.1
"""CPU time that loading all copies may take; forking a hundred takes as long."""
LOAD_BYTES = 32 << 20
"""What they may hold in memory."""
_PAGES = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Namespaces:
    """A generation of copies; the counterpart of `instances.Instances`."""

    def __init__(self, copies: Sequence[Sequence[Function]], files: Collection[str]) -> None:
        """Take over loaded copies.

        Args:
            copies: Of each copy the functions, in the order of the `start` frame.
            files: The program's.
        """
        self._copies = copies
        self._files = files

    def __len__(self) -> int:
        return len(self._copies)

    def call(self, wire: Wire, instances: Sequence[int], values: Sequence[Values]) -> list[Answer]:
        """As `instances.Instances.call`."""
        rows = zip(*_per_copy(values), strict=True) if values else [()] * len(instances)
        like, function, copies, files = wire.signature.like, wire.number, self._copies, self._files
        answers: list[Answer] = []
        for number, arguments in zip(instances, rows, strict=True):
            expected = None if like is None else len(arguments[like])
            status, payload = respond(wire, copies[number][function], arguments, expected, files)
            answers.append(payload if status == OK else failure(status, payload))
        return answers

    def close(self) -> None:
        """Let go of every copy."""
        self._copies = ()


def loaded_again(program: Program, entry: str, names: Sequence[str], count: int) -> Namespaces | None:
    """So many copies, each loaded afresh; None: loading takes too much for that.

    Args:
        program: One that has been loaded without an error.
        entry: Its entry file.
        names: Of its functions, in the order of the `start` frame.
        count: How many copies.
    """
    latest, most_bytes = time.process_time() + LOAD_SECONDS, _resident_bytes() + LOAD_BYTES
    copies: list[list[Function]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first loading has warned
        for _ in range(count):
            try:
                module = program.again().load(module_name(entry))
                copies.append([vars(module)[name] for name in names])
            except BaseException:  # it loads differently each time; then a process per copy it is
                return None
            if time.process_time() > latest or _resident_bytes() > most_bytes:
                return None
    return Namespaces(copies, program.files)


def _per_copy(values: Sequence[Values]) -> list[Sequence[object]]:
    """Of every argument what each copy gets: a Python number, or an array of the copy's own."""
    arguments: list[Sequence[object]] = [() for _ in values]
    alike: dict[tuple[str, bytes], list[int]] = {}
    for index, value in enumerate(values):
        if isinstance(value, Ragged):
            alike.setdefault((value.values.dtype.str, value.lengths.tobytes()), []).append(index)
        else:
            arguments[index] = value.tolist()
    for indices in alike.values():
        columns = [value for index in indices if isinstance(value := values[index], Ragged)]
        for index, arrays in zip(indices, _cut(columns), strict=True):
            arguments[index] = arrays
    return arguments


def _cut(columns: Sequence[Ragged]) -> list[tuple[NDArray[Any], ...]]:
    """Of every column the copies' arrays; the columns are alike in dtype and lengths.

    What a copy gets of all of them lies in one block, which takes half the time of an array for each.
    """
    ends = columns[0].lengths.cumsum(dtype=np.int64).tolist()
    cuts = zip([0, *ends], ends, strict=False)
    if len(columns) == 1:
        values = columns[0].values
        return [tuple([values[start:end].copy() for start, end in cuts])]
    together = np.concatenate([column.values for column in columns]).reshape(len(columns), -1)
    return list(zip(*[tuple(together[:, start:end].copy()) for start, end in cuts], strict=True))


def _resident_bytes() -> int:
    return int(_PAGES.read_text().split()[1]) * _PAGE_BYTES
