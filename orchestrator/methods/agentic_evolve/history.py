"""A run as its journal tells it, without model, evaluator or clock: the archive and what was consumed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from orchestrator.domain.conversation import Reply, Usage
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.records import from_record
from orchestrator.errors import RunStateError
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry, commit_id, entry_from_record
from orchestrator.methods.agentic_evolve.history_records import (
    check_entry,
    check_header,
    check_known,
    checked_usage,
    record_of,
)
from orchestrator.methods.agentic_evolve.results import RunResult
from orchestrator.ports import AnalysisResult, Journal
from orchestrator.search.archive import Grid
from orchestrator.search.requests import reply_in

_STEP_KEY = re.compile(r"i(?P<island>\d+)/(?P<kind>request|analysis|commit|migration|stop)(?:/(?P<name>.+))?")
_SHOWN = TypeAdapter(list[str])
_MARK = re.compile(r"(?P<number>\d+)(?:/(?P<attempt>\d+))?/(?P<kind>sent|void)")


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


Step = Entry | Shown | Answered


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
    """Commits, migrations and replies in the order in which they were recorded; it depends on timing between islands,
    but not within one."""
    consumption: Mapping[int, Consumption]
    """By island."""
    stops: Mapping[int, str]
    """Island to reason, for islands that have stopped."""

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
    for island, kind, name, record in _island_records(journal):
        key = _key(island, kind, name)
        with record_of(key):
            consumption[island] = consumption.get(island, Consumption()) + _consumed(key, kind, name, record)
            if kind == "stop":
                stops[island] = str(record["reason"])
            step = _step(island, kind, name, record, journal)
            if isinstance(step, Entry):
                check_known((*step.candidate.parents, step.duplicate_of), known)
                known.add(check_entry(step, header).id)
            elif isinstance(step, Shown):
                check_known(step.ids, known)
            steps += [] if step is None else [step]
    for island, lost in _lost(journal).items():
        consumption[island] = consumption.get(island, Consumption()) + lost
    return History(
        header=header,
        initial=first,
        steps=steps,
        consumption=dict(sorted(consumption.items())),
        stops=dict(sorted(stops.items())),
    )


def _island_records(journal: Journal) -> Iterator[tuple[int, str, str, Mapping[str, Any]]]:
    """(island, kind, name, record) of every island's records; what announces or retracts requests is among them."""
    for key, record in journal.records("i"):
        if match := _STEP_KEY.fullmatch(key):
            yield int(match["island"]), match["kind"], match["name"] or "", record


def _key(island: int, kind: str, name: str) -> str:
    return f"i{island}/{kind}/{name}" if name else f"i{island}/{kind}"


def _step(island: int, kind: str, name: str, record: Mapping[str, Any], journal: Journal) -> Step | None:
    match kind:
        case "commit":
            return entry_from_record(commit_id(island, int(name.removeprefix("c"))), record, journal)
        case "migration":
            return Shown(island=island, migration=int(name), ids=tuple(_SHOWN.validate_python(record["shown"])))
        case "request" if name.isdigit():
            reply = reply_in(_key(island, kind, name), record)
            return None if reply is None else Answered(island=island, number=int(name), reply=reply)
        case "analysis":
            from_record(AnalysisResult, record["result"])
            return None
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


def _lost(journal: Journal) -> dict[int, Consumption]:
    """Announced requests of each island that were neither answered nor retracted, at their reservation."""
    announced: dict[tuple[int, int], dict[int, Usage]] = {}
    ended: set[tuple[int, int]] = set()
    for island, kind, name, record in _island_records(journal):
        if kind != "request":
            continue
        with record_of(_key(island, kind, name)):
            match = _MARK.fullmatch(name)
            if match is None:
                ended.add((island, int(name)))
                continue
            attempts = announced.setdefault((island, int(match["number"])), {})
            is_sent = match["kind"] == "sent"
            reserved = checked_usage(from_record(Usage, record["reserved"])) if is_sent else Usage()
            attempts[int(match["attempt"] or 1)] = reserved  # what is retracted comes to nothing
    lost: dict[int, Consumption] = {}
    for (island, number), attempts in announced.items():
        unknown = [attempts[attempt] for attempt in sorted(attempts)]
        for usage in unknown[:-1] if (island, number) in ended else unknown:
            if usage != Usage():  # nothing could be lost: of a repeatable model, or retracted
                lost[island] = lost.get(island, Consumption()) + Consumption(usage=usage, lost=1)
    return lost
