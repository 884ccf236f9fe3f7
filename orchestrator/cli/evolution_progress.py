"""What an evolution tells while it goes on: a line for everything that has happened, and a bar where people watch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.bootstrap.robophd.running import Begun
from orchestrator.cli.heartbeat import Heartbeat, repeated
from orchestrator.cli.terminal import Terminal, inert, one_line, visible
from orchestrator.methods.robophd.events import Event
from orchestrator.methods.robophd.events import Progress as Told

_NOTE_CHARACTERS = 160
_ANSWERS_TOLD = 100
"""Outside the iterations, which are short, every so many answers are told: selection and final figures ask far more."""
_QUIET = {Event.REQUEST, Event.ANSWER, Event.ANALYSIS}
"""Told by the bar, or after a silence."""


class EvolutionProgress:
    """Prints lines to stderr. Thread-safe as the terminal is."""

    def __init__(self, terminal: Terminal, bar: Progress | None = None) -> None:
        """Nothing has happened yet.

        Args:
            terminal: Where to.
            bar: Shown meanwhile; None: nobody watches.
        """
        self._terminal = terminal
        self._bar = bar
        self._task = None if bar is None else bar.add_task("preparing", total=None)
        self._heartbeat = Heartbeat(self._say)
        self._lock = threading.Lock()  # guards _last
        self._last = "preparing"

    def start(self, begun: Begun) -> None:
        """A run has its journal."""
        split, settings, choices = begun.split, begun.settings, begun.choices
        self.note(
            f"run {begun.run_id}: {settings.iterations} iterations, seed {settings.seed}, evolver {choices.evolver}, "
            f"answers by {choices.answerer}"
        )
        self.note(
            f"databases for contests: {', '.join(split.evolve)}; to choose the champion by: {', '.join(split.select)}; "
            f"for final figures: {', '.join(split.final)}"
        )
        self.note(f"selection asks at most {begun.select_questions} questions of every package that competed")

    def note(self, text: str) -> None:
        """Something in words."""
        self._heartbeat.said()
        self._say(text)

    def event(self, told: Told) -> None:
        """Something that has happened."""
        text = in_words(told)
        counted = f"{text}: {told.done} of {told.total} questions" if told.event is Event.ANSWER else text
        with self._lock:
            self._last = counted
        if self._bar is not None and self._task is not None:
            total = told.total or None
            self._bar.update(self._task, description=_plain(text), completed=told.done, total=total)
        if told.event not in _QUIET or (told.event is Event.ANALYSIS and told.note):
            self.note(text)
        elif told.event is Event.ANSWER and not told.iteration and told.done % _ANSWERS_TOLD == 0:
            self.note(counted)

    def beat(self) -> None:
        """Say how things stand if nothing has been said for a while."""
        self._heartbeat.beat(lambda: self._last)

    def _say(self, text: str) -> None:
        if self._bar is None:
            self._terminal.note(text)
        else:
            self._bar.console.print(_plain(text), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def followed(terminal: Terminal) -> Iterator[EvolutionProgress]:
    """Progress for as long as the block lasts."""
    if not sys.stderr.isatty():
        lines = EvolutionProgress(terminal)
        with repeated("progress", lines.beat):
            yield lines
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False, transient=True) as bar:
        yield EvolutionProgress(terminal, bar)


def in_words(told: Told) -> str:
    """An event in one line."""
    note = one_line(told.note, _NOTE_CHARACTERS)
    figures = ", ".join(f"{name} {100 * share:.1f} %" for name, share in told.figures.items())
    match told.event:
        case Event.ITERATION:
            text = f"iteration {told.iteration}: a {told.subject} round"
        case Event.REQUEST:
            text = f"iteration {told.iteration}: the evolver's request {told.done}"
        case Event.PACKAGE if told.subject:
            text = f"iteration {told.iteration}: {told.subject} was made: {note}"
        case Event.PACKAGE:
            text = f"iteration {told.iteration}: the evolution failed: {note}"
        case Event.FOCUS:
            text = f"iteration {told.iteration}: tested on earlier questions: {figures}"
        case Event.ANALYSIS:
            text = f"{told.subject} analysed" if not note else f"{told.subject}: the tool failed ({note})"
        case Event.ANSWER:
            text = f"{told.subject} answers"
        case Event.CONTEST:
            text = f"iteration {told.iteration}: {figures}"
        case Event.SELECT:
            text = f"selection: {figures}"
        case _:
            text = f"champion: {told.subject}"
    return text


def _plain(text: str) -> str:
    return inert(visible(text))
