"""States of runs in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.cli.documents import RunEntry


def state_in_words(state: str, pause: str | None) -> str:
    """A state, with why the run is paused where it is."""
    return state if pause is None else f"{state}: {pause}"


def pauses(entries: Iterable[RunEntry]) -> Iterator[str]:
    """A line for each run that is paused and that no process goes on with: why, and what to do."""
    for entry in entries:
        if entry.pause is not None and not entry.owner_pid:
            yield f"Run {entry.run} is paused: {entry.pause}; `evolvarium resume {entry.run}` goes on."
