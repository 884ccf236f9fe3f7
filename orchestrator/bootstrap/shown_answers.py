"""What a search's agents were answered after each of their commits, rebuilt from the journal of the run.

A journal holds verdicts, and not what was said of them. The answer to a commit follows from the records before it, the
task and the policy's disclosure; only its notice that the context is nearly full does not (`walk_again` finds that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.tasks import TaskView
from orchestrator.methods.agentic_evolve import History, Settings, texts
from orchestrator.methods.agentic_evolve.archive import described, migrant_lines
from orchestrator.methods.agentic_evolve.entries import Entry, commit_id, features_of, fitness_of
from orchestrator.methods.agentic_evolve.history import Shown
from orchestrator.methods.agentic_evolve.island_records import island_records
from orchestrator.methods.agentic_evolve.ports import Disclosure
from orchestrator.ports import Journal
from orchestrator.search.archive import Cell, Grid, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """The answer to one commit, in parts: all the answers of a run repeat each other's lines."""

    commit: str
    island: int
    verdict: str
    """One JSON object: the commit, whether it is a duplicate, and its metrics or failure as disclosed."""
    best: str | None
    """The candidate that `island_best` describes."""
    elite: tuple[Cell, str] | None
    """The cell that the commit took, and its id; None: the grid stayed as it was."""
    migration: tuple[str, ...] | None
    """Candidates of other islands, best first; None: it was not time for a migration."""
    budget: str
    """One JSON object."""
    is_last_notice: bool
    """Whether the answer says that the budget is exhausted."""
    was_sent: bool
    """Whether a request followed, by which the model saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLog:
    """All answers of a run."""

    initial: Mapping[int, tuple[Cell, str] | None]
    """By island, the cell of the initial program."""
    answers: Sequence[ShownAnswer]
    """By island, and within it in the order of the commits."""
    lines: Mapping[str, str]
    """By candidate: its line in summaries, one JSON object."""
    migrants: Mapping[str, str]
    """By candidate: its line where a migration shows it, one JSON object."""

    def texts(self) -> Iterator[tuple[str, str]]:
        """(commit, the whole answer but for its notice and the closing brace), by island."""
        grids: dict[int, dict[Cell, str]] = {}
        for answer in self.answers:
            first = self.initial[answer.island]
            grid = grids.setdefault(answer.island, {} if first is None else {first[0]: first[1]})
            if answer.elite is not None:
                grid[answer.elite[0]] = answer.elite[1]
            best = "null" if answer.best is None else self.lines[answer.best]
            elites = ", ".join(self.lines[grid[cell]] for cell in sorted(grid))
            text = f'{answer.verdict[:-1]}, "island_best": {best}, "grid": [{elites}]'
            if answer.migration is not None:
                text += f', "migration": [{", ".join(self.migrants[one] for one in answer.migration)}]'
            yield answer.commit, f'{text}, "budget": {answer.budget}'


@dataclass(slots=True, kw_only=True)
class _Island:
    """What has happened on one island so far."""

    grid: Grid[Entry]
    requests: int = 0
    analyses: int = 0
    """Since its last commit that was evaluated."""
    commits: int = 0
    """Evaluated ones."""
    waiting: tuple[Entry, tuple[Cell, str] | None, int, int] | None = None
    """A commit whose answer has not been sent: its entry, cell, requests and analyses by then."""
    shown: tuple[str, ...] | None = None
    answers: list[ShownAnswer] = field(default_factory=list)


def read_answers(
    journal: Journal, history: History, settings: Settings, task: TaskView, disclosure: Disclosure
) -> AnswerLog:
    """Rebuild all answers.

    Args:
        journal: Of the run.
        history: Read from it.
        settings: Of the run.
        task: Of the run, as it was.
        disclosure: Of the task and the policy that the run had.
    """
    entries = {entry.id: entry for entry in history.commits}
    migrations = {(one.island, one.migration): one for one in history.migrations}
    islands = {number: _begun(history, settings, task) for number in range(settings.islands)}
    initial = {number: _first_cell(island) for number, island in islands.items()}
    answer = _answering(settings, disclosure)
    for number, kind, name, record in island_records(journal):
        island = islands[number]
        if kind == "request":
            answer(island, was_sent=True)
            island.requests += "reply" in record and name.isdigit()
        elif kind == "analysis":
            answer(island, was_sent=True)
            island.analyses += 1
        elif kind == "migration":
            island.shown = migrations[number, int(name)].ids
        elif kind == "commit":
            answer(island, was_sent=True)
            _commit(island, entries[commit_id(number, int(name.removeprefix("c")))], task)
    for island in islands.values():
        answer(island, was_sent=False)
    every = [*([] if history.initial is None else [history.initial]), *history.commits]
    shown = {one for step in history.steps if isinstance(step, Shown) for one in step.ids}
    return AnswerLog(
        initial=initial,
        answers=[one for number in sorted(islands) for one in islands[number].answers],
        lines={entry.id: texts.as_json(described(entry, disclosure)) for entry in every},
        migrants={one: texts.as_json(migrant_lines([entries[one]], disclosure)[0]) for one in shown if one in entries},
    )


def _begun(history: History, settings: Settings, task: TaskView) -> _Island:
    island = _Island(grid=Grid(bins=(settings.bins,) * len(task.features)))
    if history.initial is not None:
        _offered(island.grid, history.initial, task)
    return island


def _first_cell(island: _Island) -> tuple[Cell, str] | None:
    return next(((cell, elite.occupant.id) for cell, elite in island.grid.cells.items()), None)


def _offered(grid: Grid[Entry], entry: Entry, task: TaskView) -> tuple[Cell, str] | None:
    fitness = fitness_of(entry, task)
    if fitness is None:
        return None
    features = features_of(entry, task)
    is_kept = grid.offer(entry, fitness=fitness, features=features) is not Placement.REJECTED
    return (grid.cell(features), entry.id) if is_kept else None


def _commit(island: _Island, entry: Entry, task: TaskView) -> None:
    island.waiting = (entry, _offered(island.grid, entry, task), island.requests, island.analyses)
    if entry.duplicate_of is None:
        island.commits += 1
        island.analyses = 0


def _answering(settings: Settings, disclosure: Disclosure) -> Callable[..., None]:
    """What ends the waiting of an island's last commit for its answer."""

    def answer(island: _Island, *, was_sent: bool) -> None:
        if island.waiting is None:
            return
        entry, elite, requests, analyses = island.waiting
        budget = _budget(settings, island, requests, 0 if entry.duplicate_of is None else analyses)
        verdict: dict[str, Any] = {"commit": entry.id, "duplicate_of": entry.duplicate_of}
        island.answers.append(
            ShownAnswer(
                commit=entry.id,
                island=entry.island or 0,
                verdict=texts.as_json(verdict | dict(disclosure.verdict(entry.verdict))),
                best=None if island.grid.best is None else island.grid.best.occupant.id,
                elite=elite,
                migration=island.shown,
                budget=texts.as_json(budget),
                is_last_notice=budget["commits_left"] <= 0 or budget["requests_left"] <= 0,
                was_sent=was_sent,
            )
        )
        island.waiting = island.shown = None

    return answer


def _budget(settings: Settings, island: _Island, requests: int, analyses: int) -> dict[str, int]:
    left = {
        "commits_left": settings.commits_per_island - island.commits,
        "requests_left": settings.requests_per_island - requests,
    }
    return left | ({"analyses_left": settings.analyses_per_commit - analyses} if settings.analysis else {})
