"""The evaluator author's interface, answered by direct calls: what an evaluation costs without any sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """One array per instance, concatenated."""

    values: NDArray[Any]
    lengths: NDArray[Any]

    def split(self) -> list[NDArray[Any]]:
        """One view per instance."""
        ends = np.cumsum(self.lengths).tolist()
        return [self.values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was made when it began."""

    values: NDArray[Any] | Ragged

    def result(self) -> NDArray[Any] | Ragged:
        """What it returned."""
        return self.values


class Refused(Exception):
    """The evaluator rejects the program."""


class Program:
    """Functions of a program in this very process; all instances share its state."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], nodes: int) -> None:
        """Take over what the program defined."""
        self._functions = functions
        self.nodes = nodes

    @contextmanager
    def open(self, count: int) -> Iterator[Program]:  # noqa: ARG002 - the interface's
        """The program itself."""
        yield self

    def begin(self, function: str, ids: Any, **arguments: Any) -> Call:
        """Nothing else could run meanwhile, so the call is made at once."""
        return Call(self.call(function, ids, **arguments))

    def call(self, function: str, ids: NDArray[Any], **arguments: Any) -> Any:
        """Call a function once per instance; replies are checked for shape and finite numbers, as outside.

        Raises:
            ValueError: A reply is not what is due.
        """
        columns = [_per_instance(argument) for argument in arguments.values()]
        call = self._functions[function]
        replies = [np.asarray(call(*row)) for row in zip(*columns, strict=True)]
        ragged = next((argument for argument in arguments.values() if isinstance(argument, Ragged)), None)
        values = np.array(replies) if ragged is None else np.concatenate(replies)
        if len(values) != (len(ids) if ragged is None else len(ragged.values)) or not np.isfinite(values).all():
            msg = f"{function!r} returned another shape, or a number that is not finite"
            raise ValueError(msg)
        return values if ragged is None else Ragged(values, ragged.lengths)


def _per_instance(argument: NDArray[Any] | Ragged) -> list[Any]:
    return argument.split() if isinstance(argument, Ragged) else argument.tolist()
