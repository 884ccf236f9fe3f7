"""Progress of a run on stderr: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from orchestrator.cli.terminal import Terminal, visible
from orchestrator.domain.conversation import Usage
from orchestrator.evaluation.tasks import Task
from orchestrator.methods.agentic_evolve import Event, Progress, Settings

_TOLD = frozenset({Event.COMMIT, Event.DUPLICATE, Event.MIGRATION, Event.HANDOFF, Event.STOP})
_COLUMNS = ("island", "commits", "analyses", "requests", "best", "fitness", "tokens", "US dollars", "last")


class ProgressLines:
    """One line for each event that matters."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def start(self, run_id: str, settings: Settings, task: Task) -> None:
        """Say what begins."""
        self._terminal.note(_beginning(run_id, settings, task))

    def event(self, progress: Progress) -> None:
        """Say what has happened."""
        if progress.event in _TOLD:
            self._terminal.note(_line(progress))


class ProgressTable:
    """A row per island, drawn again at every event; nothing runs in between."""

    def __init__(self, terminal: Terminal, live: Live) -> None:
        self._terminal = terminal
        self._live = live
        self._rows: dict[int, Progress] = {}
        self._settings: Settings | None = None

    def start(self, run_id: str, settings: Settings, task: Task) -> None:
        """Say what begins, above the table."""
        self._settings = settings
        self._live.console.print(visible(_beginning(run_id, settings, task)))

    def event(self, progress: Progress) -> None:
        """Draw the table as it is now."""
        self._rows[progress.island] = progress
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        for column in _COLUMNS:
            table.add_column(column)
        for _, row in sorted(self._rows.items()):
            table.add_row(*map(visible, self._cells(row)))
        best = max(
            (row for row in self._rows.values() if row.best_fitness is not None),
            key=lambda row: row.best_fitness or 0.0,
            default=None,
        )
        total = sum((row.usage for row in self._rows.values()), Usage())
        table.add_section()
        table.add_row(
            "all",
            str(sum(row.commits for row in self._rows.values())),
            str(sum(row.analyses for row in self._rows.values())),
            str(sum(row.requests for row in self._rows.values())),
            "" if best is None else str(best.best_id),
            "" if best is None else f"{best.best_fitness:.6f}",
            str(total.tokens),
            _usd(total),
        )
        return table

    def _cells(self, row: Progress) -> list[str]:
        limit = "" if self._settings is None else f"/{self._settings.commits_per_island}"
        fitness = "" if row.best_fitness is None else f"{row.best_fitness:.6f}"
        return [
            str(row.island),
            f"{row.commits}{limit}",
            str(row.analyses),
            str(row.requests),
            row.best_id or "",
            fitness,
            str(row.usage.tokens),
            _usd(row.usage),
            f"{row.event.value} {row.subject}".rstrip(),
        ]


@contextmanager
def followed(terminal: Terminal) -> Iterator[ProgressLines | ProgressTable]:
    """What `run` and `resume` tell while they go on."""
    if not sys.stderr.isatty():
        yield ProgressLines(terminal)
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    # Without automatic refreshing rich makes no thread, and its streams stay as they are.
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        yield ProgressTable(terminal, live)


def _beginning(run_id: str, settings: Settings, task: Task) -> str:
    analyses = f"{settings.analyses_per_commit} analyses per commit" if settings.analysis else "no analyses"
    return (
        f"run {run_id}: {task.name}, {settings.method}, seed {settings.seed}, {settings.islands} islands, "
        f"{settings.commits_per_island} commits each, {analyses}"
    )


def _line(progress: Progress) -> str:
    best = "nothing scored" if progress.best_fitness is None else f"{progress.best_id} {progress.best_fitness:.6f}"
    subject = f" {progress.subject}" if progress.subject else ""
    return (
        f"island {progress.island}: {progress.event.value}{subject}; {progress.commits} commits, "
        f"{progress.analyses} analyses, {progress.requests} requests; best {best}"
    )


def _usd(usage: Usage) -> str:
    return "unknown" if usage.usd is None else f"{usage.usd:.4f}"
