"""`sql sweep`: many settings of EvoSQL on the same questions, resumable at any moment.

What settings have in common is done once: gold queries, first rounds, queries that run, and rounds that one of them
makes on the way to a later one (`methods/evosql/grid.py`). The figures are computed from the journal alone
(`sweep_results.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.sql.bench import END_KEY, Opened, opened_all, run_gold
from orchestrator.bootstrap.sql.configurations import Configuration
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.databases import Place, compare_digests
from orchestrator.bootstrap.sql.outcomes import RECORD, Method, Outcome, outcome_of
from orchestrator.bootstrap.sql.questions import Follow, evaluate_all
from orchestrator.bootstrap.sql.sweep_choices import METHODS, SweepChoices, load_all
from orchestrator.bootstrap.sql.sweep_file import SweepFile
from orchestrator.bootstrap.sql.sweep_header import (
    SweepHeader,
    dataset_scope,
    read_sweep_header,
    require_same_sweep,
    sweep_header,
)
from orchestrator.domain.budgets import Budget
from orchestrator.domain.sql import Question
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.evosql import Ending
from orchestrator.methods.evosql.grid import Trial, trials_of
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.scoped_journal import ScopedJournal

_BEFORE = "before-run"
"""Labels what is done before a run has an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBegun:
    """A sweep that has its journal."""

    run_id: str
    questions: int
    """Of all data sets."""
    variants: int
    trials: int
    """Evolutions of each question, which answer for all variants."""


@dataclass(frozen=True, kw_only=True)
class SweepWatch:
    """How a sweep is followed and stopped from outside."""

    token: CancelToken
    note: Callable[[str], None]
    """Told what takes a while."""
    on_start: Callable[[SweepBegun], object]
    """Told once the run can be resumed."""
    on_trials: Callable[[int, int], object]
    """Told how many evolutions all questions make together, and how many of them are recorded already."""
    on_outcome: Callable[[Outcome], object]
    """Told what an evolution came to; from several threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnded:
    """A sweep that came to its end."""

    run_id: str
    containers_left: int | None
    """None: no engine was needed."""


def begin_sweep(places: Places, file: SweepFile, choices: SweepChoices, watch: SweepWatch) -> SweepEnded:
    """Make a sweep from the beginning.

    Raises:
        EvolvariumError: See the exception tree; once `on_start` was called, the run is kept and can be resumed.
    """
    measured = load_all(file, choices)
    with opened_all(places, measured, file.settings, token=watch.token, note=watch.note, run_id=_BEFORE) as opened:
        run_id, journal = run_store(places).create()
        with journal:
            journal.put("run", sweep_header(file, choices, opened))
            return _perform(read_sweep_header(run_id, journal), opened, run_id, journal, watch)


def resume_sweep(places: Places, name: str, watch: SweepWatch) -> SweepEnded:
    """Continue a sweep where its journal ends; one that has ended needs nothing.

    Raises:
        RunStateError: There is no such run, it is in use, or the data, policy, images, prompts or models have changed.
        EvolvariumError: Otherwise as `begin_sweep`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        header = read_sweep_header(run_id, journal)
        if journal.get(END_KEY) is not None:
            return SweepEnded(run_id=run_id, containers_left=None)
        measured = load_all(header.file, header.choices)
        settings = header.file.settings
        with opened_all(places, measured, settings, token=watch.token, note=watch.note, run_id=run_id) as opened:
            require_same_sweep(header, opened)
            return _perform(header, opened, run_id, journal, watch)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One data set of a sweep."""

    opened: Opened
    place: Place
    journal: Journal
    judge: SqlJudge
    evaluable: Sequence[Question]


def configuration_of(trial: Trial, opened: Opened, budget: Budget) -> Configuration:
    """A trial as it is measured.

    Args:
        trial: Of the sweep.
        opened: The data set.
        budget: Of each question.
    """
    return Configuration(
        settings=trial.settings,
        methods=METHODS,
        generator=opened.generator,
        critic=opened.critic,
        budget=budget,
        names={Method.EVOSQL: trial.name},
        record=_record_of(trial),
        scope=trial.scope,
    )


def outcome_key(question: str, trial: Trial) -> str:
    """The key, in the journal of a data set, of what a trial came to, for instance `f1/q/17/outcome/e003`.

    Args:
        question: Its key, for instance `q/17`.
        trial: Of the sweep.
    """
    return f"{trial.scope}{question}{_record_of(trial)}"


def _record_of(trial: Trial) -> str:
    return f"{RECORD}/{trial.name}"


def measure(
    header: SweepHeader, opened: Sequence[Opened], run_id: str, journal: Journal, watch: SweepWatch
) -> list[Part]:
    """Run the gold queries, then every evolution that is not recorded yet.

    Args:
        header: Of the run.
        opened: Its data sets.
        run_id: On every container.
        journal: Of the run.
        watch: Of the caller.

    Raises:
        EvolvariumError: As `run_gold` and `evaluate_all`; what was recorded stays.
    """
    trials = trials_of(header.variants)
    count = sum(map(len, header.questions))
    watch.on_start(SweepBegun(run_id=run_id, questions=count, variants=len(header.variants), trials=len(trials)))
    parts = [_part(one, number, run_id, journal, watch) for number, one in enumerate(opened)]
    evolutions = len(trials) * sum(len(part.evaluable) for part in parts)
    budget = header.choices.budget.share(max(1, evolutions))
    watch.on_trials(evolutions, sum(1 for _ in _outcomes(parts, trials)))
    for part in parts:
        evaluate_all(
            part.evaluable,
            [configuration_of(trial, part.opened, budget) for trial in trials],
            place=part.place,
            texts=part.opened.texts,
            judge=part.judge,
            journal=part.journal,
            follow=Follow(token=watch.token, on_outcome=watch.on_outcome),
        )
    return parts


def end_record(header: SweepHeader, parts: Sequence[Part]) -> dict[str, Any]:
    """What a sweep keeps of its end, once the digests of its databases have been compared."""
    outcomes = _outcomes(parts, trials_of(header.variants))
    return {
        "unchanged": [sorted(part.place.paths) for part in parts],
        "budget_spent": any(_is_cut_off(outcome) for outcome in outcomes),
    }


def _perform(
    header: SweepHeader, opened: Sequence[Opened], run_id: str, journal: Journal, watch: SweepWatch
) -> SweepEnded:
    parts = measure(header, opened, run_id, journal, watch)
    watch.note("comparing the databases with what they were")
    for part in parts:
        compare_digests(part.place, part.opened.conditions["databases"])
    journal.put(END_KEY, end_record(header, parts))
    sandbox = parts[0].place.sandbox
    sandbox.close()
    return SweepEnded(run_id=run_id, containers_left=sandbox.live_containers(run_id))


def _part(opened: Opened, number: int, run_id: str, journal: Journal, watch: SweepWatch) -> Part:
    """A data set with its gold queries run."""
    scoped = ScopedJournal(journal, dataset_scope(number))
    place = replace(opened.place, run_id=run_id)
    judge = SqlJudge(scoped, dataset=opened.data.dataset.digest)
    evaluable = run_gold(place, opened.data.questions, judge, watch.note)
    return Part(opened=opened, place=place, journal=scoped, judge=judge, evaluable=evaluable)


def _outcomes(parts: Sequence[Part], trials: Sequence[Trial]) -> Iterator[Outcome]:
    """Those that are recorded, one at a time: all together may be large."""
    for part in parts:
        for trial in trials:
            for question in part.evaluable:
                outcome = outcome_of(part.journal, outcome_key(view_of(question).key, trial))
                if outcome is not None:
                    yield outcome


def _is_cut_off(outcome: Outcome) -> bool:
    evolution = outcome.evolutions.get(Method.EVOSQL)
    return evolution is None or evolution.ending == Ending.BUDGET
