"""Runs of a group as `compare` takes them: read only, and only those that have ended with a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.bootstrap.compare import Conditions
from orchestrator.cli.history import RunView, read_view
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import InputError
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.statistics import BestSoFar, best_so_far
from orchestrator.search.statistics import LARGEST
from orchestrator.storage.runs import RunStore

Spent = Literal["evaluations", "tokens", "usd", "cpu_seconds"]
SPENT: tuple[Spent, ...] = ("evaluations", "tokens", "usd", "cpu_seconds")
SPENT_WORDS: dict[Spent, str] = {
    "evaluations": "evaluations",
    "tokens": "tokens",
    "usd": "US dollars",
    "cpu_seconds": "CPU seconds of programs and analyses",
}


@dataclass(frozen=True, kw_only=True)
class CountedRun:
    """A run that has ended and whose best has a score."""

    view: RunView
    best: Entry
    points: Sequence[BestSoFar]
    """In the order in which they were recorded."""

    @property
    def run_id(self) -> str:
        """Of the run."""
        return self.view.run_id

    def spent(self, what: Spent) -> float | None:
        """Until its last paid evaluation; None: unknown."""
        return _amount(self.points[-1], what)

    def curve(self, what: Spent) -> list[tuple[float, float]] | None:
        """(spent, quality of the best so far), the initial program at the beginning; None: what was spent is unknown.

        Against evaluations it goes by commit number, then island; otherwise in the order of recording. Qualities of
        more than `LARGEST` in size are left out.
        """
        curve = self._whole_curve(what)
        return None if curve is None else [point for point in curve if abs(point[1]) <= LARGEST]

    def _whole_curve(self, what: Spent) -> list[tuple[float, float]] | None:
        if what == "evaluations":
            return [(float(evaluations), quality) for evaluations, quality in self.view.curve()]
        curve = []
        for point in self.points:
            amount = _amount(point, what)
            if amount is None:
                return None
            if point.best is not None and point.best.verdict.metrics is not None:
                curve.append((amount, point.best.verdict.metrics[self.view.quality.metric]))
        return curve

    def conditions(self) -> Conditions:
        """As far as they decide whether it may be compared."""
        return Conditions(run_id=self.run_id, header=self.view.history.header, data=self._data())

    def _data(self) -> Mapping[str, str]:
        initial = self.view.history.initial
        verdicts = [*([] if initial is None else [initial.verdict]), *(verdict for _, verdict in self.view.finals)]
        return {verdict.split: _data_of(verdict) for verdict in verdicts}


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs that are compared with those of another group."""

    option: str
    """Where they were named, for messages."""
    runs: Sequence[CountedRun]
    """At least one."""
    left_out: Mapping[str, str]
    """Run to reason."""


def read_group(store: RunStore, run_ids: Sequence[str], option: str) -> Group:
    """Read the runs of a group.

    Raises:
        InputError: None of them counts.
        RunStateError: One is no search, or is damaged.
    """
    runs, left_out = [], {}
    for run_id in run_ids:
        with store.open(run_id, read_only=True) as journal:
            view = read_view(run_id, journal, with_ledger=False)
        found = _counted(view)
        if isinstance(found, str):
            left_out[run_id] = found
        else:
            runs.append(found)
    if not runs:
        reasons = "; ".join(f"{run_id}: {reason}" for run_id, reason in left_out.items())
        msg = f"no run of {option} can be compared: {reasons}"
        raise InputError(msg)
    return Group(option=option, runs=runs, left_out=left_out)


def _counted(view: RunView) -> CountedRun | str:
    if not view.has_ended:
        state = "it has not ended" if view.pause is None else "it is paused"
        return f"{state}; `evolvarium resume {view.run_id}` goes on with it"
    best = view.best
    if best is None:
        return "none of its programs has a score"
    return CountedRun(view=view, best=best, points=best_so_far(view.history))


def _amount(point: BestSoFar, what: Spent) -> float | None:
    match what:
        case "evaluations":
            return float(point.evaluations)
        case "tokens":
            return float(point.usage.tokens)
        case "usd":
            return None if point.usage.usd is None else float(point.usage.usd)
        case "cpu_seconds":
            return point.cpu_seconds


def _data_of(verdict: Verdict) -> str:
    known = verdict.fingerprint.get("data")
    return known or ("this home's own seed" if verdict.secret else "the published seed, or public files")
