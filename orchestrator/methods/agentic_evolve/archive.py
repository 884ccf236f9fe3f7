"""What one island knows: its own commits, its grid, and which candidates of other islands it was shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.tasks import TaskView
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry, features_of, fitness_of
from orchestrator.methods.agentic_evolve.ports import Disclosure
from orchestrator.methods.agentic_evolve.texts import one_line
from orchestrator.search.archive import Grid


class IslandArchive:
    """Not thread-safe: each island has its own."""

    def __init__(self, initial: Entry, task: TaskView, *, bins: int) -> None:
        """Begin with the initial program, which every island has in its grid if it has a score."""
        self._task = task
        self._own: dict[str, Entry] = {}
        self._first: dict[FileTree, Entry] = {}
        self._shown: dict[str, Entry] = {}
        self._read: dict[FileTree, Entry] = {}
        self._grid: Grid[Entry] = Grid(bins=(bins,) * len(task.features))
        self.add(initial)

    @property
    def best(self) -> Entry | None:
        """Of highest fitness, the earlier one on ties; None: nothing has a score."""
        return None if self._grid.best is None else self._grid.best.occupant

    def emigrants(self) -> tuple[Entry, ...]:
        """The elites other islands may be shown; the initial program is not among them, since they all have it."""
        return tuple(entry for entry in self._grid.elites if entry.id != INITIAL)

    def add(self, entry: Entry) -> None:
        """Record an own commit; a scored one competes for its cell (a duplicate ties with its original, and loses)."""
        self._own[entry.id] = entry
        self._first.setdefault(entry.candidate.payload, entry)
        fitness = fitness_of(entry, self._task)
        if fitness is not None:
            self._grid.offer(entry, fitness=fitness, features=features_of(entry, self._task))

    def twin(self, payload: FileTree) -> Entry | None:
        """The first own candidate with the same files, byte for byte."""
        return self._first.get(payload)

    def read(self, entry: Entry) -> None:
        """Note that the agent has read a candidate."""
        self._read.setdefault(entry.candidate.payload, entry)

    def known(self, payload: FileTree) -> Entry | None:
        """The own candidate with these files, else the one of another island that the agent has read."""
        return self._first.get(payload) or self._read.get(payload)

    def show(self, entry: Entry) -> None:
        """Note that the agent was shown another island's candidate."""
        self._shown[entry.id] = entry

    @property
    def shown(self) -> Collection[str]:
        """Ids of other islands' candidates that the agent was shown."""
        return self._shown.keys()

    def find(self, entry_id: str) -> Entry | None:
        """A candidate the agent may read: its own, the initial program, or one it was shown."""
        return self._own.get(entry_id) or self._shown.get(entry_id)

    def summary(self, disclosure: Disclosure) -> dict[str, Any]:
        """Best and elites as the agent sees them."""
        return {
            "island_best": None if self.best is None else described(self.best, disclosure),
            "grid": [described(entry, disclosure) for entry in self._grid.elites],
        }


def described(entry: Entry, disclosure: Disclosure) -> dict[str, Any]:
    """One line of a summary: id, metrics and description."""
    return {
        "id": entry.id,
        "metrics": disclosure.verdict(entry.verdict)["metrics"],
        "description": one_line(entry.candidate.description),
    }


def migrant_lines(entries: Sequence[Entry], disclosure: Disclosure) -> list[dict[str, Any]]:
    """Migration candidates: like the local elites, and with the island they come from."""
    return [{"id": entry.id, "island": entry.island} | described(entry, disclosure) for entry in entries]
