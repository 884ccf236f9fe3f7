"""Progress of `task assess` on stderr: a line with a clock on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from orchestrator.cli.heartbeat import Heartbeat, duration, repeated
from orchestrator.cli.progress import ticking
from orchestrator.cli.terminal import Terminal, visible


class Assessing:
    """Which run of how many is assessed, and for how long. Thread-safe."""

    def __init__(self, say: Callable[[str], object], runs: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is assessed yet.

        Args:
            say: Prints one line.
            runs: How many will be.
            clock: Seconds, monotonic.
        """
        self._say = say
        self._runs = runs
        self._clock = clock
        self._heartbeat = Heartbeat(say, clock)
        self._lock = threading.Lock()  # guards all below: it is drawn by another thread
        self._begun = 0
        self._task: str | None = None
        self._since = clock()

    def note(self, text: str) -> None:
        """Say something."""
        self._say(text)
        self._heartbeat.said()

    def begin(self, task: str) -> None:
        """The next run, of this task, is assessed from now on."""
        with self._lock:
            self._begun += 1
            self._task = task
            self._since = self._clock()

    def standing(self) -> str:
        """How things stand, for instance `assessing PO1 (2 of 12) for 40 s`."""
        with self._lock:
            what = "preparing" if self._task is None else f"assessing {self._task} ({self._begun} of {self._runs})"
            return f"{what} for {duration(self._clock() - self._since)}"

    def beat(self) -> None:
        """After a silence, say how things stand; called every second."""
        self._heartbeat.beat(self.standing)


@contextmanager
def assessing(terminal: Terminal, runs: int) -> Iterator[Assessing]:
    """What `task assess` tells while it goes on.

    Args:
        terminal: For plain lines.
        runs: How many are assessed.
    """
    if not sys.stderr.isatty():
        lines = Assessing(terminal.note, runs)
        with repeated("progress", lines.beat):
            yield lines
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    lines = Assessing(lambda text: console.print(visible(text), soft_wrap=True), runs)
    # As of `followed`; the line is gone when the result is printed.
    live = Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        get_renderable=lambda: Text(visible(lines.standing())),
    )
    with live, ticking(live):
        yield lines
