"""A run as its journal tells it: read only, so it needs no engine, no model and no lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.bootstrap.finals import read_finals
from orchestrator.bootstrap.pauses import pause_of
from orchestrator.bootstrap.runs import SEARCH, in_words, kind_of
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import RunStateError
from orchestrator.methods.agentic_evolve import History, read_history
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.final_choice import final_entry, named_entry, rule_of
from orchestrator.methods.agentic_evolve.history import best_of
from orchestrator.ports import Journal
from orchestrator.search.final_choice import Rule
from orchestrator.search.spending import Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The metric that people read."""

    metric: str
    lower_is_better: bool
    unit: str
    label: str

    def gain(self, first: float, other: float) -> float:
        """How much better the first is, in points."""
        return other - first if self.lower_is_better else first - other


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run and what was measured after it."""

    run_id: str
    history: History
    has_ended: bool
    pause: str | None
    """Why it is paused; None: it is not."""
    finals: Sequence[tuple[str, Verdict]]
    """(candidate id, verdict) on splits that played no part in the search."""
    ledger: Sequence[Spending] = ()
    """What was spent on the model, by island."""
    choice: Rule | None = None
    """How the final candidate is chosen; None: by the task's rule."""

    @property
    def rule(self) -> Rule:
        """How the final candidate is chosen."""
        return self.choice or rule_of(self.history)

    @cached_property
    def best(self) -> Entry | None:
        """The final candidate; None: nothing has a score."""
        return final_entry(self.history, self.choice)

    @cached_property
    def quality(self) -> Quality:
        """As the task had it when the run began."""
        quality = self.history.header["task"].get("quality")
        fields = ("metric", "direction", "unit", "label")
        if not isinstance(quality, dict) or not all(isinstance(quality.get(field), str) for field in fields):
            msg = f"the record of 'run' is damaged (task.quality lacks one of {', '.join(fields)})"
            raise RunStateError(msg)
        return Quality(
            metric=quality["metric"],
            lower_is_better=quality["direction"] == "minimize",
            unit=quality["unit"],
            label=quality["label"],
        )

    def curve(self) -> list[tuple[int, float]]:
        """(paid evaluations, quality of the best so far), the initial program at 0; by commit number, then island."""
        points: list[tuple[int, float]] = []
        best: Entry | None = None
        for number, entry in enumerate(self.history.candidates):
            best = best_of([entry] if best is None else [best, entry], self.history.fitness)
            if best is not None and best.verdict.metrics is not None:
                points.append((number, best.verdict.metrics[self.quality.metric]))
        return points


def read_view(run_id: str, journal: Journal, *, with_ledger: bool = True, choice: Rule | None = None) -> RunView:
    """Read a journal, also of a run that is going on.

    Args:
        run_id: Of the run.
        journal: Of it.
        with_ledger: Whether spending is added up, which reads all records once more.
        choice: The rule of the final choice; None: the task's.

    Raises:
        RunStateError: It holds no run, or is damaged.
        InputError: The task declares nothing that the rule could choose by.
    """
    if (kind := kind_of(journal)) != SEARCH:
        msg = f"run {run_id} is {in_words(kind)}; `evolvarium show {run_id}` shows all of it"
        raise RunStateError(msg)
    try:
        view = RunView(
            run_id=run_id,
            history=read_history(journal),
            has_ended=journal.get("run/end") is not None,
            pause=pause_of(journal),
            finals=read_finals(journal),
            ledger=read_ledger(journal) if with_ledger else (),
            choice=choice,
        )
        _require_quality(view)
        _ = view.best  # what it cannot be chosen by is met here
    except RunStateError as error:
        if run_id in str(error):
            raise
        msg = f"run {run_id}: {error}"
        raise RunStateError(msg) from error
    return view


def _require_quality(view: RunView) -> None:
    metric = view.quality.metric
    verdicts = [(entry.id, entry.verdict) for entry in view.history.candidates]
    for candidate_id, verdict in [*verdicts, *view.finals]:
        if verdict.metrics is not None and metric not in verdict.metrics:
            msg = (
                f"a verdict on {candidate_id!r} lacks the metric {metric!r}; restore the run from a copy, or remove it"
            )
            raise RunStateError(msg)


def find_candidate(view: RunView, candidate_id: str) -> Entry:
    """A candidate by id; `best` is the final one.

    Raises:
        RunStateError: The run has none of this id.
    """
    if candidate_id == "best" and view.best is not None:
        return view.best
    return named_entry(view.history, view.run_id, candidate_id)
