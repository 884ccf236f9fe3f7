"""Which runs are measured, and what they are held to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import InputError

SEEDS = (1, 2, 3)
FULL_SEED = 1
OR_LIBRARY = "or_library/binpack1.txt"
"""Below the data folder."""
_DEMO = re.compile(r"^DEMO_ARGS \?= (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the method is held to, in percent of excess, points and minutes."""

    demo_hidden_percent: float = 4.6
    demo_fresh_percent: float = 4.6
    demo_points: float = 0.4
    """How much worse the run without analyses is at least."""
    demo_minutes: float = 10.0
    """Of both runs together."""
    full_hidden_percent: float = 3.8
    full_or1_percent: float = 3.4
    full_minutes: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One command of `evolvarium`."""

    verb: tuple[str, ...] = ("run",)
    arguments: tuple[str, ...]
    """After it; files are named without their folders."""
    files: tuple[tuple[str, Path], ...] = ()
    """What a name among the arguments stands for."""

    @property
    def command(self) -> str:
        """As one types it."""
        return shlex.join(["evolvarium", *self.verb, *self.arguments])

    def argv(self) -> list[str]:
        """The arguments with every file in its place."""
        places = {name: str(path) for name, path in self.files}
        return [places.get(argument, argument) for argument in self.arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPair:
    """`make demo` with one seed."""

    seed: int
    with_analysis: PlannedRun
    without_analysis: PlannedRun


def demo_arguments(makefile: str) -> tuple[str, ...]:
    """What `make demo` passes to `evolvarium run`, from the text of the Makefile.

    Raises:
        InputError: The Makefile does not say.
    """
    found = _DEMO.search(makefile)
    if found is None:
        msg = "the Makefile has no line `DEMO_ARGS ?= ...`; the results are measured with what `make demo` runs"
        raise InputError(msg)
    return tuple(shlex.split(found[1]))


def demo_pairs(arguments: Sequence[str], seeds: Iterable[int], commits: int | None) -> list[DemoPair]:
    """A pair of runs per seed.

    Args:
        arguments: Of `make demo`.
        seeds: In place of its seed.
        commits: In place of its number of commits; None: its own.
    """
    pairs = []
    for seed in seeds:
        changed = _with(arguments, "--seed", seed)
        if commits is not None:
            changed = _with(changed, "--commits", commits)
        with_analysis = PlannedRun(arguments=changed)
        without = PlannedRun(arguments=(*changed, "--no-analysis"))
        pairs.append(DemoPair(seed=seed, with_analysis=with_analysis, without_analysis=without))
    return pairs


def full_run(arguments: Sequence[str], data: Path, commits: int | None) -> PlannedRun:
    """The task's own number of commits, with the OR-Library instances measured at the end.

    Args:
        arguments: Of `make demo`.
        data: Folder that holds `or_library/`.
        commits: In place of the task's number of commits; None: the task's own.

    Raises:
        InputError: The instances are not there.
    """
    file = data / OR_LIBRARY
    if not file.is_file():
        msg = f"there is no {str(file)!r}; set EVOLVARIUM_DATA to the folder that holds {OR_LIBRARY}"
        raise InputError(msg)
    changed = _with(_without(arguments, "--commits"), "--seed", FULL_SEED)
    if commits is not None:
        changed = _with(changed, "--commits", commits)
    return PlannedRun(arguments=(*changed, "--or-library", file.name), files=((file.name, file),))


def _with(arguments: Sequence[str], option: str, value: int) -> tuple[str, ...]:
    return (*_without(arguments, option), option, str(value))


def _without(arguments: Sequence[str], option: str) -> tuple[str, ...]:
    kept = list(arguments)
    while option in kept:
        place = kept.index(option)
        del kept[place : place + 2]
    return tuple(kept)
