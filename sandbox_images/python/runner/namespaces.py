"""The copies of a loaded program in this process: the program is loaded once more for each, into modules of its own.

For programs of which `sharing.can_share` holds, and that load quickly; see there for why.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

from columns import Ragged, Values
from inspection import module_name
from instance import OK, Function, respond
from instances import Answer, failure
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
        rows = zip(*(_per_copy(value) for value in values), strict=True) if values else [()] * len(instances)
        answers: list[Answer] = []
        for number, arguments in zip(instances, rows, strict=True):
            expected = None if wire.signature.like is None else len(arguments[wire.signature.like])
            status, payload = respond(wire, self._copies[number][wire.number], arguments, expected, self._files)
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


def _per_copy(value: Values) -> list[object]:
    """One argument of every copy: a Python number, or an array of the copy's own."""
    if not isinstance(value, Ragged):
        return value.tolist()
    elements, end, arrays = value.values, 0, []
    for length in value.lengths.tolist():
        arrays.append(elements[end : end + length].copy())
        end += length
    return arrays


def _resident_bytes() -> int:
    return int(_PAGES.read_text().split()[1]) * _PAGE_BYTES
