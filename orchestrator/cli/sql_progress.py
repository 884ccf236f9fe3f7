"""Progress of a bench on stderr: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live

from orchestrator.bootstrap.sql.bench import Begun
from orchestrator.bootstrap.sql.outcomes import Method, Outcome
from orchestrator.cli.layout import fitting_table
from orchestrator.cli.progress import duration, ticking
from orchestrator.cli.terminal import Terminal, one_line, visible
from orchestrator.evaluation.sql_judge import Metric

_LINES = 20
"""Lines in all for the questions of a bench, where there is no terminal."""
_SPARE = ("last", "tokens", "seconds each")


class _Tally:
    """What has been answered so far. Not thread-safe."""

    def __init__(self) -> None:
        self.total = 0
        self.before = 0
        self.done = 0
        self.tokens = 0
        self.last = ""
        self.right: Counter[Method] = Counter()
        self.methods: Sequence[Method] = ()
        self.began = time.monotonic()

    def begin(self, total: int, before: int) -> None:
        self.total, self.before, self.began = total, before, time.monotonic()

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.last = outcome.id
        spent = outcome.spent
        self.tokens += spent.input_tokens + spent.cached_input_tokens + spent.output_tokens
        self.right.update(method for method, right in outcome.answers.items() if Metric.STRICT in right)

    def strict(self, method: Method) -> str:
        return f"{100 * self.right[method] / self.done:.1f}" if self.done else ""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began


class BenchLines:
    """One line for what matters. Thread-safe."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()  # guards _tally: questions end in different threads
        self._tally = _Tally()

    def note(self, text: str) -> None:
        """Say what takes a while."""
        self._terminal.note(text)

    def start(self, begun: Begun) -> None:
        """Say what begins."""
        self._tally.methods = begun.choices.methods
        self._terminal.note(_beginning(begun))

    def questions(self, evaluable: int, done: int) -> None:
        """Say how much there is to do."""
        self._tally.begin(evaluable, done)
        self._terminal.note(_to_do(evaluable, done))

    def outcome(self, outcome: Outcome) -> None:
        """Say where it stands, now and then."""
        with self._lock:
            tally = self._tally
            tally.add(outcome)
            reached = tally.before + tally.done
            step = max(1, tally.total // _LINES)
            if reached % step and reached != tally.total:
                return
            strict = ", ".join(f"{method.value} {tally.strict(method)} %" for method in tally.methods)
            line = f"{reached} of {tally.total} questions after {duration(tally.elapsed)}; strict so far: {strict}"
        self._terminal.note(line)


class BenchTable:
    """A single row, drawn again at every question and every second. Thread-safe."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()  # guards _tally: questions end and drawing happens in different threads
        self._tally = _Tally()

    def note(self, text: str) -> None:
        """Say something above the table."""
        self._console.print(visible(text), soft_wrap=True)

    def start(self, begun: Begun) -> None:
        """Say what begins, above the table."""
        self._tally.methods = begun.choices.methods
        self.note(_beginning(begun))

    def questions(self, evaluable: int, done: int) -> None:
        """Say how much there is to do, and begin to count."""
        with self._lock:
            self._tally.begin(evaluable, done)
        self.note(_to_do(evaluable, done))

    def outcome(self, outcome: Outcome) -> None:
        """Count a question."""
        with self._lock:
            self._tally.add(outcome)

    def drawn(self) -> RenderableType:
        """The table as it is now; the empty line below takes up what the terminal echoes, such as ^C."""
        with self._lock:
            tally = self._tally
            if not tally.total:
                return ""
            columns = ["questions", *(f"{m.value} %" for m in tally.methods), "tokens", "seconds each", "last", "now"]
            row = [
                f"{tally.before + tally.done}/{tally.total}",
                *(tally.strict(method) for method in tally.methods),
                str(tally.tokens),
                f"{tally.elapsed / tally.done:.1f}" if tally.done else "",
                one_line(tally.last, 20),
                f"after {duration(tally.elapsed)}",
            ]
        return Group(fitting_table(columns, [row], width=self._console.width, spare_columns=_SPARE, one_line=True), "")


@contextmanager
def followed_bench(terminal: Terminal) -> Iterator[BenchLines | BenchTable]:
    """What a bench tells while it goes on; the percentages are strict accuracy of what this process has answered."""
    if not sys.stderr.isatty():
        yield BenchLines(terminal)
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    table = BenchTable(console)
    live = Live(
        console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, get_renderable=table.drawn
    )
    with live, ticking(live):
        yield table


def _beginning(begun: Begun) -> str:
    choices, settings = begun.choices, begun.settings
    models = choices.model if choices.critic == choices.model else f"{choices.model}, critic {choices.critic}"
    return (
        f"run {begun.run_id}: {choices.layout.value}, {begun.questions} questions, "
        f"{', '.join(method.value for method in choices.methods)}, {models}, seed {settings.seed}, "
        f"{settings.candidates} candidates, {settings.rounds} rounds"
    )


def _to_do(evaluable: int, done: int) -> str:
    before = f", {done} of them are answered already" if done else ""
    return f"{evaluable} questions can be evaluated{before}"
