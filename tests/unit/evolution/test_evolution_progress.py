"""An evolution says in lines what has happened, and stays silent about what happens all the time."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.running import Begun
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.cli.evolution_progress import EvolutionProgress, in_words
from orchestrator.methods.robophd.events import Event, Progress
from orchestrator.methods.robophd.settings import Settings
from orchestrator.search.sampling import DatabaseSplit


def told(event: Event, **fields: Any) -> Progress:
    return Progress(event=event, iteration=fields.pop("iteration", 3), **fields)


class Lines:
    """A terminal that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, *parts: str) -> None:
        self.notes += parts


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (told(Event.ITERATION, subject="standard"), "iteration 3: a standard round"),
        (told(Event.REQUEST, done=4), "iteration 3: the evolver's request 4"),
        (told(Event.PACKAGE, subject="p03", note="adds\nkeys"), "iteration 3: p03 was made: adds keys"),
        (told(Event.PACKAGE, note="it said nothing"), "iteration 3: the evolution failed: it said nothing"),
        (told(Event.FOCUS, figures={"p03.0": 0.5}), "iteration 3: tested on earlier questions: p03.0 50.0 %"),
        (told(Event.ANALYSIS, subject="p03/shop"), "p03/shop analysed"),
        (told(Event.ANALYSIS, subject="p03/shop", note="timeout"), "p03/shop: the tool failed (timeout)"),
        (told(Event.ANSWER, subject="p03", done=1, total=9), "p03 answers"),
        (told(Event.CONTEST, figures={"naive": 0.25, "p03": 1.0}), "iteration 3: naive 25.0 %, p03 100.0 %"),
        (told(Event.SELECT, subject="p03", figures={"p03": 0.4}), "selection: p03 40.0 %"),
        (told(Event.END, subject="p03"), "champion: p03"),
    ],
)
def test_every_event_has_its_line(progress: Progress, line: str) -> None:
    assert in_words(progress) == line


def test_every_kind_of_event_has_words() -> None:
    assert all(in_words(told(event, subject="x", figures={"x": 1.0})) for event in Event)


def test_what_happens_all_the_time_is_told_only_after_a_silence() -> None:
    lines = Lines()
    terminal: Any = lines
    progress = EvolutionProgress(terminal)
    progress.event(told(Event.ITERATION, subject="standard"))
    for event in (Event.REQUEST, Event.ANSWER, Event.ANALYSIS):
        progress.event(told(event, subject="p03"))
    assert lines.notes == ["iteration 3: a standard round"]
    progress.event(told(Event.ANALYSIS, subject="p03/shop", note="timeout"))
    assert lines.notes[1:] == ["p03/shop: the tool failed (timeout)"]
    progress.beat()
    assert len(lines.notes) == 2, "something has just been said"


def test_many_answers_outside_the_iterations_are_counted() -> None:
    lines = Lines()
    terminal: Any = lines
    progress = EvolutionProgress(terminal)
    for done in range(1, 251):
        progress.event(told(Event.ANSWER, subject="p03", done=done, total=250))
        progress.event(told(Event.ANSWER, iteration=0, subject="p02", done=done, total=250))
    assert lines.notes == ["p02 answers: 100 of 250 questions", "p02 answers: 200 of 250 questions"]


def test_a_model_cannot_write_to_the_terminal_through_its_description() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=False, width=200)
    terminal: Any = Lines()
    with Bar(console=console) as bar:
        progress = EvolutionProgress(terminal, bar)
        progress.event(told(Event.PACKAGE, subject="p03", note="\x1b[2J[red]gone[/red]" + "x" * 500))
    shown = screen.getvalue()
    assert "\x1b[2J" not in shown
    assert "[red]gone[/red]" in shown
    assert "x" * 200 not in shown


def test_the_beginning_names_the_run_and_what_every_database_is_for() -> None:
    lines = Lines()
    terminal: Any = lines
    choices = EvolveChoices(datasets=(DatasetChoice(kind=Layout.JSONL, root="q.jsonl"),))
    split = DatabaseSplit(evolve=("a", "b"), select=("c",), final=("d",))
    begun = Begun(run_id="abc", choices=choices, settings=Settings(seed=7), split=split, select_questions=412)
    EvolutionProgress(terminal).start(begun)
    assert lines.notes == [
        "run abc: 30 iterations, seed 7, evolver offline, answers by offline",
        "databases for contests: a, b; to choose the champion by: c; for final figures: d",
        "selection asks at most 412 questions of every package that competed",
    ]
