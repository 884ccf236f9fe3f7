"""Progress of a run on stderr: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live

from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import run_store
from orchestrator.cli.heartbeat import Heartbeat, duration, repeated
from orchestrator.cli.layout import fitting_table
from orchestrator.cli.terminal import Terminal, visible
from orchestrator.domain.conversation import Usage
from orchestrator.errors import RunStateError
from orchestrator.evaluation.tasks import Task
from orchestrator.methods.agentic_evolve import Event, Progress, Settings
from orchestrator.methods.agentic_evolve.entries import INITIAL, load_entry

__all__ = ["ProgressLines", "ProgressTable", "Qualities", "duration", "followed", "ticking"]

_TOLD = frozenset({Event.COMMIT, Event.DUPLICATE, Event.MIGRATION, Event.HANDOFF, Event.STOP})
_SPARE = ("tokens", "US dollars", "requests", "analyses", "now", "best")
"""Columns that a narrow terminal does without, the first first."""
_NOW_CELLS = 17
_ISLAND = re.compile(r"i(\d+)-")


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """The run that is followed."""

    run_id: str
    settings: Settings
    task: Task


class Qualities:
    """The task's quality figure of candidates, read from the run's journal; each is looked up once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._known: dict[str, float | None] = {}

    def of(self, begun: _Begun, candidate_id: str | None) -> float | None:
        """Quality; None: there is no such candidate, or it has no score."""
        if candidate_id is None:
            return None
        if candidate_id not in self._known:
            self._known[candidate_id] = self._read(begun, candidate_id)
        return self._known[candidate_id]

    def forget(self) -> None:
        """Another run begins, whose candidates have the same ids."""
        self._known.clear()

    def _read(self, begun: _Begun, candidate_id: str) -> float | None:
        try:
            with run_store(self._places).open(begun.run_id, read_only=True) as journal:
                metrics = load_entry(candidate_id, journal).verdict.metrics
        except RunStateError:
            return None  # only told in passing; whoever needs it meets the error elsewhere
        return None if metrics is None else metrics.get(begun.task.spec.quality.metric)


class ProgressLines:
    """One line for each event that matters, and one after every half minute without any. Thread-safe."""

    def __init__(self, terminal: Terminal, qualities: Qualities, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._qualities = qualities
        self._clock = clock
        self._heartbeat = Heartbeat(terminal.note, clock)
        self._lock = threading.Lock()  # guards all below: events, work and heartbeats come from different threads
        self._begun: _Begun | None = None
        self._rows: dict[int, Progress] = {}
        self._work: dict[int, tuple[str, float]] = {}

    def note(self, text: str) -> None:
        """Say what takes a while before the run begins."""
        self._terminal.note(text)
        self._heartbeat.said()

    def start(self, run_id: str, settings: Settings, task: Task) -> None:
        """Say what begins."""
        with self._lock:
            self._begun = _Begun(run_id=run_id, settings=settings, task=task)
            self._rows.clear()  # a batch has one run after the other
            self._work.clear()
        self._qualities.forget()
        self.note(_beginning(self._begun))

    def work(self, attempt_id: str, work: str) -> None:
        """An evaluation or analysis of an island begins; told only after a silence."""
        island = _ISLAND.match(attempt_id)
        if island is not None:
            with self._lock:
                self._work[int(island[1])] = (work, self._clock())

    def event(self, progress: Progress) -> None:
        """Say what has happened."""
        with self._lock:
            self._rows[progress.island] = progress
            self._work.pop(progress.island, None)
        if self._begun is not None and progress.event in _TOLD:
            quality = self._qualities.of(self._begun, progress.best_id)
            self.note(_line(progress, self._begun.task.spec.quality.metric, quality))

    def beat(self) -> None:
        """After a silence, say how things stand; called every second."""
        self._heartbeat.beat(self._standing)

    def _standing(self) -> str:
        with self._lock:
            rows, begun = [row for _, row in sorted(self._rows.items())], self._begun
            work = {
                island: f"{what} for {duration(self._clock() - since)}" for island, (what, since) in self._work.items()
            }
        if begun is None:
            return "preparing"
        if not rows:
            return "evaluating the initial program"
        if len(rows) == begun.settings.islands and all(row.event is Event.STOP for row in rows):
            return "the search is over; measuring the initial program and the best on the other splits"
        total = begun.settings.commits_per_island * begun.settings.islands
        done = f"{sum(row.commits for row in rows)} of {total} commits, {sum(row.analyses for row in rows)} analyses"
        now = [f"island {row.island} {work.get(row.island, f'last {row.event.value}')}" for row in rows]
        return f"{done}; {', '.join(now)}"


class ProgressTable:
    """A row per island, drawn again at every event and every second. Thread-safe."""

    def __init__(self, console: Console, qualities: Qualities) -> None:
        self._console = console
        self._qualities = qualities
        self._lock = threading.Lock()  # guards all below: events, work and drawing come from different threads
        self._rows: dict[int, Progress] = {}
        self._work: dict[int, tuple[str, float]] = {}
        self._begun: _Begun | None = None
        self._begun_at = time.monotonic()

    def note(self, text: str) -> None:
        """Say something above the table."""
        self._console.print(visible(text), soft_wrap=True)

    def start(self, run_id: str, settings: Settings, task: Task) -> None:
        """Say what begins, above the table."""
        with self._lock:
            self._begun = _Begun(run_id=run_id, settings=settings, task=task)
            self._begun_at = time.monotonic()
            self._rows.clear()  # a batch has one run after the other
            self._work.clear()
        self._qualities.forget()
        self.note(_beginning(self._begun))

    def work(self, attempt_id: str, work: str) -> None:
        """An evaluation or analysis of an island begins."""
        island = _ISLAND.match(attempt_id)
        if island is not None:
            with self._lock:
                self._work[int(island[1])] = (work, time.monotonic())

    def event(self, progress: Progress) -> None:
        """Remember where an island stands; what was under way on it is done."""
        with self._lock:
            self._rows[progress.island] = progress
            self._work.pop(progress.island, None)

    def drawn(self) -> RenderableType:
        """The table as it is now; the empty line below takes up what the terminal echoes, such as ^C."""
        with self._lock:
            if self._begun is None or not self._rows:
                return ""
            columns = [
                *("island", "commits", "analyses", "requests", "best", "fitness"),
                self._begun.task.spec.quality.metric,
                *("tokens", "US dollars", "now"),
            ]
            rows = [self._cells(self._begun, row) for _, row in sorted(self._rows.items())]
            rows.append(self._total(self._begun))
        spare = (*_SPARE[:-1], columns[6], _SPARE[-1])
        width = self._console.width
        return Group(fitting_table(columns, rows, width=width, spare_columns=spare, one_line=True), "")

    def _total(self, begun: _Begun) -> list[str]:
        rows = self._rows.values()
        scored = [row for row in rows if row.best_fitness is not None]
        best = max(scored, key=lambda row: row.best_fitness or 0.0, default=None)
        total = sum((row.usage for row in rows), Usage())
        return [
            "all",
            str(sum(row.commits for row in rows)),
            str(sum(row.analyses for row in rows)),
            str(sum(row.requests for row in rows)),
            *self._best(begun, best),
            str(total.tokens),
            _usd(total),
            f"after {duration(time.monotonic() - self._begun_at)}".ljust(_NOW_CELLS),
        ]

    def _cells(self, begun: _Begun, row: Progress) -> list[str]:
        return [
            str(row.island),
            f"{row.commits}/{begun.settings.commits_per_island}",
            str(row.analyses),
            str(row.requests),
            *self._best(begun, row),
            str(row.usage.tokens),
            _usd(row.usage),
            self._now(row),
        ]

    def _best(self, begun: _Begun, row: Progress | None) -> list[str]:
        if row is None or row.best_fitness is None:
            return ["", "", ""]
        quality = self._qualities.of(begun, row.best_id)
        return [visible(row.best_id or ""), f"{row.best_fitness:.6g}", "" if quality is None else f"{quality:.5g}"]

    def _now(self, row: Progress) -> str:
        if row.island in self._work:
            work, since = self._work[row.island]
            return f"{work} {duration(time.monotonic() - since)}"
        return visible(f"{row.event.value} {row.subject}".rstrip())


@contextmanager
def followed(terminal: Terminal, places: Places) -> Iterator[ProgressLines | ProgressTable]:
    """What `run` and `resume` tell while they go on."""
    qualities = Qualities(places)
    if not sys.stderr.isatty():
        lines = ProgressLines(terminal, qualities)
        with repeated("progress", lines.beat):
            yield lines
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    table = ProgressTable(console, qualities)
    # Rich's own refreshing would make a thread that nobody joins within a deadline; its streams stay as they are.
    live = Live(
        console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, get_renderable=table.drawn
    )
    with live, ticking(live):
        yield table


def ticking(live: Live) -> AbstractContextManager[None]:
    """Draw every second within the block."""
    return repeated("progress", live.refresh)


def _beginning(begun: _Begun) -> str:
    settings = begun.settings
    analyses = f"{settings.analyses_per_commit} analyses per commit" if settings.analysis else "no analyses"
    return (
        f"run {begun.run_id}: {begun.task.name}, {settings.method}, seed {settings.seed}, {settings.islands} islands, "
        f"{settings.commits_per_island} commits each, {analyses}"
    )


def _line(progress: Progress, metric: str, quality: float | None) -> str:
    name = "is still the initial program," if progress.best_id == INITIAL else progress.best_id
    best = "nothing scored" if progress.best_fitness is None else f"{name} {progress.best_fitness:.6g}"
    measured = "" if quality is None else f", {metric} {quality:.5g}"
    subject = f" {progress.subject}" if progress.subject else ""
    return (
        f"island {progress.island}: {progress.event.value}{subject}; {progress.commits} commits, "
        f"{progress.analyses} analyses, {progress.requests} requests; best {best}{measured}"
    )


def _usd(usage: Usage) -> str:
    return "unknown" if usage.usd is None else f"{usage.usd:.4f}"
