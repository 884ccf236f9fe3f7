"""Progress of a bench or a sweep on stderr: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live

from orchestrator.bootstrap.sql.bench import Begun
from orchestrator.bootstrap.sql.choices import CommonChoices
from orchestrator.bootstrap.sql.outcomes import Method, Outcome
from orchestrator.bootstrap.sql.scores import HEADLINE
from orchestrator.bootstrap.sql.sweep import SweepBegun
from orchestrator.bootstrap.sql.sweep_choices import METHODS
from orchestrator.cli.heartbeat import Heartbeat, duration, repeated
from orchestrator.cli.layout import fitting_table
from orchestrator.cli.progress import ticking
from orchestrator.cli.terminal import Terminal, one_line, visible

BegunT = TypeVar("BegunT")
_LINES = 20
"""Lines in all for what is answered, where there is no terminal."""
_SPARE = ("last", "tokens", "not reached", "seconds each")


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[BegunT]):
    """In what the progress of a bench and of a sweep differ."""

    unit: str
    """Of what is counted."""
    methods: Callable[[BegunT], Sequence[Method]]
    """Whose right answers are counted."""
    beginning: Callable[[BegunT], str]


class _Tally:
    """What has been answered so far, by earlier processes as well; only times are of this one. Not thread-safe."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.reached = 0
        self.tokens = 0
        self.not_reached = 0
        self.last = ""
        self.right: Counter[Method] = Counter()
        self.methods: Sequence[Method] = ()
        self.began = time.monotonic()

    def begin(self, total: int, before: Iterable[Outcome]) -> None:
        for outcome in before:
            self._count(outcome)
        self.total, self.began = total, time.monotonic()

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.last = outcome.id
        self._count(outcome)

    def _count(self, outcome: Outcome) -> None:
        self.reached += 1
        self.tokens += outcome.spent.usage.tokens
        self.not_reached += not outcome.answers
        self.right.update(method for method, right in outcome.answers.items() if HEADLINE in right)

    def strict(self, method: Method) -> str:
        return f"{100 * self.right[method] / self.reached:.1f}" if self.reached else ""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> str:
        """How long the rest takes, if it takes as long as what is done; empty: nobody can say, or nothing is left."""
        if not self.done or self.reached >= self.total:
            return ""
        return f"about {duration(self.elapsed / self.done * (self.total - self.reached))} left"


class ProgressLines(Generic[BegunT]):
    """One line for what matters, and one after every half minute without any. Thread-safe."""

    def __init__(self, terminal: Terminal, kind: Kind[BegunT], clock: Callable[[], float] = time.monotonic) -> None:
        """Say nothing yet.

        Args:
            terminal: Where lines go.
            kind: Of run.
            clock: Seconds, monotonic.
        """
        self._terminal = terminal
        self._kind = kind
        self._heartbeat = Heartbeat(terminal.note, clock)
        self._lock = threading.Lock()  # guards _tally and _doing: questions end in different threads
        self._tally = _Tally()
        self._doing = "the run has not begun"

    def note(self, text: str) -> None:
        """Say what takes a while."""
        with self._lock:
            self._doing = text
        self._say(text)

    def start(self, begun: BegunT) -> None:
        """Say what begins."""
        self._tally.methods = self._kind.methods(begun)
        self._say(self._kind.beginning(begun))

    def total(self, total: int, before: Iterable[Outcome]) -> None:
        """Say how much there is to do, and count what is done already."""
        with self._lock:
            self._tally.begin(total, before)
            done = self._tally.reached
        self._say(_to_do(self._kind.unit, total, done))

    def outcome(self, outcome: Outcome) -> None:
        """Say where it stands, now and then."""
        with self._lock:
            tally = self._tally
            tally.add(outcome)
            if tally.reached % max(1, tally.total // _LINES) and tally.reached != tally.total:
                return
            line = _standing(self._kind.unit, tally)
        self._say(line)

    def beat(self) -> None:
        """Say where it stands after a silence."""
        self._heartbeat.beat(self._now)

    def _now(self) -> str:
        with self._lock:
            return _standing(self._kind.unit, self._tally) if self._tally.reached else f"still {self._doing}"

    def _say(self, line: str) -> None:
        self._heartbeat.said()
        self._terminal.note(line)


class ProgressTable(Generic[BegunT]):
    """A single row, drawn again at every answer and every second. Thread-safe."""

    def __init__(self, console: Console, kind: Kind[BegunT]) -> None:
        """Draw nothing yet.

        Args:
            console: Of the terminal.
            kind: Of run.
        """
        self._console = console
        self._kind = kind
        self._lock = threading.Lock()  # guards _tally: questions end and drawing happens in different threads
        self._tally = _Tally()

    def note(self, text: str) -> None:
        """Say something above the table."""
        self._console.print(visible(text), soft_wrap=True)

    def start(self, begun: BegunT) -> None:
        """Say what begins, above the table."""
        self._tally.methods = self._kind.methods(begun)
        self.note(self._kind.beginning(begun))

    def total(self, total: int, before: Iterable[Outcome]) -> None:
        """Say how much there is to do, and begin to count with what is done already."""
        with self._lock:
            self._tally.begin(total, before)
            done = self._tally.reached
        self.note(_to_do(self._kind.unit, total, done))

    def outcome(self, outcome: Outcome) -> None:
        """Count an answer."""
        with self._lock:
            self._tally.add(outcome)

    def drawn(self) -> RenderableType:
        """The table as it is now; the empty line below takes up what the terminal echoes, such as ^C."""
        with self._lock:
            tally = self._tally
            if not tally.total:
                return ""
            strict = {f"{m.value} {HEADLINE.value} %": tally.strict(m) for m in tally.methods}
            row = {
                self._kind.unit: f"{tally.reached}/{tally.total}",
                **strict,
                **({"not reached": str(tally.not_reached)} if tally.not_reached else {}),
                "tokens": str(tally.tokens),
                "seconds each": f"{tally.elapsed / tally.done:.1f}" if tally.done else "",
                "last": one_line(tally.last, 20),
                "now": f"after {duration(tally.elapsed)}",
                "left": tally.left.removesuffix(" left"),
            }
        table = fitting_table(
            list(row), [list(row.values())], width=self._console.width, spare_columns=_SPARE, one_line=True
        )
        return Group(table, "")


@contextmanager
def followed(terminal: Terminal, kind: Kind[BegunT]) -> Iterator[ProgressLines[BegunT] | ProgressTable[BegunT]]:
    """What a run tells while it goes on; the percentages are strict accuracy of what is answered, also before it."""
    if not sys.stderr.isatty():
        lines = ProgressLines(terminal, kind)
        with repeated("progress", lines.beat):
            yield lines
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    table = ProgressTable(console, kind)
    live = Live(
        console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, get_renderable=table.drawn
    )
    with live, ticking(live):
        yield table


def _standing(unit: str, tally: _Tally) -> str:
    strict = ", ".join(f"{method.value} {tally.strict(method)} %" for method in tally.methods)
    parts = [
        f"{tally.reached} of {tally.total} {unit} after {duration(tally.elapsed)}",
        *([tally.left] if tally.left else []),
        f"{HEADLINE.value} so far: {strict}",
        *([f"{tally.not_reached} not reached by the budget count as wrong"] if tally.not_reached else []),
        f"{tally.tokens} tokens",
    ]
    return "; ".join(parts)


def _models(choices: CommonChoices) -> str:
    return choices.model if choices.critic == choices.model else f"{choices.model}, critic {choices.critic}"


def _bench_beginning(begun: Begun) -> str:
    choices, settings = begun.choices, begun.settings
    return (
        f"run {begun.run_id}: {choices.layout.value}, {begun.questions} questions, "
        f"{', '.join(method.value for method in choices.methods)}, {_models(choices)}, seed {settings.seed}, "
        f"{settings.candidates} candidates, {settings.rounds} rounds"
    )


def _sweep_beginning(begun: SweepBegun) -> str:
    asked = " and ".join(f"{count} questions of {name}" for name, count in begun.questions.items())
    return (
        f"run {begun.run_id}: {begun.variants} variants on {asked}, {_models(begun.choices)}; {begun.trials} "
        "evolutions of each question answer for all variants"
    )


def _to_do(unit: str, total: int, done: int) -> str:
    what = "questions can be evaluated" if unit == "questions" else f"{unit} of questions that can be evaluated"
    return f"{total} {what}{f', {done} of them are answered already' if done else ''}"


BENCH = Kind[Begun](unit="questions", methods=lambda begun: begun.choices.methods, beginning=_bench_beginning)
SWEEP = Kind[SweepBegun](unit="evolutions", methods=lambda _: METHODS, beginning=_sweep_beginning)
