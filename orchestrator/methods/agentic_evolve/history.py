"""A run as its journal tells it, without model, evaluator or clock: the archive and what was consumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from orchestrator.domain.conversation import Reply, Usage
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.records import from_record
from orchestrator.errors import RunStateError
from orchestrator.methods.agentic_evolve import texts
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry, commit_id, entry_from_record
from orchestrator.methods.agentic_evolve.history_records import (
    check_entry,
    check_header,
    check_known,
    checked_usage,
    record_of,
)
from orchestrator.methods.agentic_evolve.island_records import island_records, key_of, lost_calls
from orchestrator.methods.agentic_evolve.results import RunResult
from orchestrator.ports import AnalysisResult, Journal
from orchestrator.search.archive import Grid
from orchestrator.search.attempts import TOO_LONG
from orchestrator.search.reply_kinds import Outcomes, outcomes_of
from orchestrator.search.requests import reply_in

_SHOWN = TypeAdapter(list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one migration showed."""

    island: int
    """Who was shown it."""
    migration: int
    """The island's k-th, from 1."""
    ids: tuple[str, ...]
    """Best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request of an island that was answered."""

    island: int
    number: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """One analysis of an island."""

    island: int
    cpu_seconds: float | None
    """Of its container; None: the runtime does not account for it."""


Step = Entry | Shown | Answered | Analysed


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """What was used of the model and the analyst."""

    requests: int = 0
    """Answered ones."""
    analyses: int = 0
    usage: Usage = field(default_factory=Usage)
    """Of all replies, and of lost calls at their reservation."""
    lost: int = 0
    """Calls whose outcome nobody knows; one that is in flight just now looks the same."""

    def __add__(self, other: Consumption) -> Consumption:
        """Sum."""
        return Consumption(
            requests=self.requests + other.requests,
            analyses=self.analyses + other.analyses,
            usage=self.usage + other.usage,
            lost=self.lost + other.lost,
        )


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything a journal holds of a run, complete or not."""

    header: Mapping[str, Any]
    """The record `run`."""
    initial: Entry | None
    """None: the run was cut off before it was evaluated."""
    steps: Sequence[Step]
    """Commits, migrations, replies and analyses in the order in which they were recorded; it depends on timing between
    islands, but not within one."""
    consumption: Mapping[int, Consumption]
    """By island."""
    stops: Mapping[int, str]
    """Island to reason, for islands that have stopped."""
    refusals: Sequence[str] = ()
    """What was said of each conversation that was too long for the model."""

    @property
    def outcomes(self) -> Outcomes:
        """What became of all requests."""
        replies = [step.reply for step in self.steps if isinstance(step, Answered)]
        tools = texts.tool_names(analysis=bool(self.header["settings"]["analysis"]))
        return outcomes_of(replies, self.refusals, tools)

    @property
    def fitness(self) -> str:
        """The metric that selection maximises."""
        return str(self.header["task"]["fitness"])

    @cached_property
    def commits(self) -> tuple[Entry, ...]:
        """All commits, failed ones and duplicates too, in an order that does not depend on timing."""
        return tuple(sorted((step for step in self.steps if isinstance(step, Entry)), key=lambda entry: entry.age))

    @property
    def paid(self) -> tuple[Entry, ...]:
        """Commits that cost an evaluation."""
        return tuple(entry for entry in self.commits if entry.duplicate_of is None)

    @property
    def candidates(self) -> tuple[Entry, ...]:
        """The initial program and the paid commits."""
        return (*(() if self.initial is None else (self.initial,)), *self.paid)

    @property
    def migrations(self) -> tuple[Shown, ...]:
        """All migrations, by their number and island."""
        shown = (step for step in self.steps if isinstance(step, Shown))
        return tuple(sorted(shown, key=lambda step: (step.migration, step.island)))

    @property
    def best(self) -> Entry | None:
        """The candidate of highest fitness; on ties the earliest: by commit number, then by island."""
        return best_of(self.candidates, self.fitness)

    @property
    def total(self) -> Consumption:
        """Of all islands."""
        return sum(self.consumption.values(), Consumption())

    def grids(self) -> dict[int, Grid[Entry]]:
        """Each island's grid as its agent sees it."""
        names, bins = self.header["task"]["features"], self.header["settings"]["bins"]
        grids: dict[int, Grid[Entry]] = {}
        for island in range(self.header["settings"]["islands"]):
            grids[island] = Grid(bins=(bins,) * len(names))
            for entry in self.candidates:
                metrics = entry.verdict.metrics
                if entry.island in {None, island} and metrics is not None:
                    features = [metrics[name] for name in names]
                    grids[island].offer(entry, fitness=metrics[self.fitness], features=features)
        return grids

    def endings(self) -> dict[str, int]:
        """How many paid evaluations ended in each way."""
        counts = Counter(ending_of(entry).value for entry in self.paid)
        return dict(sorted(counts.items()))

    def result(self, run_id: str) -> RunResult:
        """The run in figures."""
        total, best = self.total, self.best
        return RunResult(
            run=run_id,
            task=self.header["task"]["name"],
            method=self.header["method"],
            model=self.header["model"],
            seed=self.header["seed"],
            best_id=None if best is None else best.id,
            best_metrics=None if best is None else best.verdict.metrics,
            initial_metrics=None if self.initial is None else self.initial.verdict.metrics,
            evaluations=len(self.paid),
            analyses=total.analyses,
            requests=total.requests,
            usage=total.usage,
            endings=self.endings(),
            stops=self.stops,
        )


def best_of(entries: Sequence[Entry], fitness: str) -> Entry | None:
    """The first of highest fitness; None: none has a score."""
    best: tuple[float, Entry] | None = None
    for entry in entries:
        if entry.verdict.metrics is not None and (best is None or entry.verdict.metrics[fitness] > best[0]):
            best = (entry.verdict.metrics[fitness], entry)
    return None if best is None else best[1]


def ending_of(entry: Entry) -> Ending:
    """How an evaluation ended."""
    return Ending.OK if entry.verdict.failure is None else entry.verdict.failure.ending


def read_history(journal: Journal) -> History:
    """Read a journal, of a run that may still be going on.

    Raises:
        RunStateError: It holds no run of this method, or is damaged.
    """
    header = journal.get("run")
    if header is None or not str(header.get("method", "")).startswith("agentic-evolve"):
        msg = "this journal holds no run of agentic-evolve"
        raise RunStateError(msg)
    with record_of("run"):
        check_header(header)
    initial = journal.get(INITIAL)
    first: Entry | None = None
    if initial is not None:
        with record_of(INITIAL):
            first = check_entry(entry_from_record(INITIAL, initial, journal), header)
    steps: list[Step] = []
    known = {INITIAL}
    consumption: dict[int, Consumption] = {}
    stops: dict[int, str] = {}
    refusals: list[str] = []
    for island, kind, name, record in island_records(journal):
        key = key_of(island, kind, name)
        with record_of(key):
            consumption[island] = consumption.get(island, Consumption()) + _consumed(key, kind, name, record)
            if kind == "stop":
                stops[island] = str(record["reason"])
            if kind == "request" and TOO_LONG in record:
                refusals.append(str(record[TOO_LONG]))
            step = _step(island, kind, name, record, journal)
            if isinstance(step, Entry):
                check_known((*step.candidate.parents, step.duplicate_of), known)
                known.add(check_entry(step, header).id)
            elif isinstance(step, Shown):
                check_known(step.ids, known)
            steps += [] if step is None else [step]
    for island, usage in lost_calls(journal):
        consumption[island] = consumption.get(island, Consumption()) + Consumption(usage=usage, lost=1)
    return History(
        header=header,
        initial=first,
        steps=steps,
        consumption=dict(sorted(consumption.items())),
        stops=dict(sorted(stops.items())),
        refusals=refusals,
    )


def _step(island: int, kind: str, name: str, record: Mapping[str, Any], journal: Journal) -> Step | None:
    match kind:
        case "commit":
            return entry_from_record(commit_id(island, int(name.removeprefix("c"))), record, journal)
        case "migration":
            return Shown(island=island, migration=int(name), ids=tuple(_SHOWN.validate_python(record["shown"])))
        case "request" if name.isdigit():
            reply = reply_in(key_of(island, kind, name), record)
            return None if reply is None else Answered(island=island, number=int(name), reply=reply)
        case "analysis":
            result = from_record(AnalysisResult, record["result"])
            return Analysed(island=island, cpu_seconds=result.outcome.cpu_seconds)
        case _:
            return None


def _consumed(key: str, kind: str, name: str, record: Mapping[str, Any]) -> Consumption:
    match kind:
        case "analysis":
            return Consumption(analyses=1)
        case "request" if name.isdigit():
            reply = reply_in(key, record)
            return Consumption() if reply is None else Consumption(requests=1, usage=checked_usage(reply.usage))
        case _:
            return Consumption()
