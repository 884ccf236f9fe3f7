"""`sql sweep`: many settings of EvoSQL on the same questions, resumable at any moment.

What settings have in common is done once: gold queries, first rounds, queries that run, and rounds that one of them
makes on the way to a later one (`methods/evosql/grid.py`). The figures are computed from the journal alone
(`sweep_results.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.sql.configurations import Configuration
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.first_rounds import require_first_round
from orchestrator.bootstrap.sql.gold import run_gold
from orchestrator.bootstrap.sql.outcomes import Method, Outcome, outcome_of
from orchestrator.bootstrap.sql.questions import Follow, evaluate_all
from orchestrator.bootstrap.sql.running import Ended, Opened, Perform, Recorded, Watch, begin, go_on
from orchestrator.bootstrap.sql.sweep_choices import METHODS, SweepChoices, load_all
from orchestrator.bootstrap.sql.sweep_file import SweepFile
from orchestrator.bootstrap.sql.sweep_header import (
    SweepHeader,
    dataset_scope,
    read_sweep_header,
    require_same_sweep,
    sweep_header,
)
from orchestrator.bootstrap.sql.sweep_tallies import Tally, best_of, is_cut_off, outcome_key, record_of
from orchestrator.domain.budgets import Budget
from orchestrator.domain.sql import Question
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.evosql.grid import Trial, trials_of
from orchestrator.ports import Journal
from orchestrator.storage.scoped_journal import ScopedJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBegun:
    """A sweep that has its journal."""

    run_id: str
    choices: SweepChoices
    """Those it began with."""
    questions: Mapping[str, int]
    """How many, by name of the data set."""
    variants: int
    trials: int
    """Evolutions of each question, which answer for all variants."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One data set of a sweep."""

    opened: Opened
    journal: Journal
    judge: SqlJudge
    evaluable: Sequence[Question]


def begin_sweep(places: Places, file: SweepFile, choices: SweepChoices, watch: Watch[SweepBegun]) -> Ended:
    """Make a sweep from the beginning.

    Raises:
        BudgetExhausted: The budget covers no evolution's first round; nothing is kept.
        EvolvariumError: As `running.begin`.
    """

    def header(opened: Sequence[Opened], _: Journal) -> Mapping[str, Any]:
        trials = trials_of(file.expanded())
        require_first_round(choices.budget, opened, [trial.settings for trial in trials])
        return sweep_header(file, choices, opened)

    def perform(opened: Sequence[Opened], run_id: str, journal: Journal) -> Mapping[str, Any]:
        return _performer(read_sweep_header(run_id, journal), watch)(opened, run_id, journal)

    return begin(places, load_all(file, choices), file.settings, watch, header=header, perform=perform)


def resume_sweep(places: Places, name: str, watch: Watch[SweepBegun], given: GivenAccess = NOTHING_GIVEN) -> Ended:
    """Continue a sweep where its journal ends; one that has ended needs nothing.

    Args:
        places: Hold the home.
        name: Of the run.
        watch: Of the caller.
        given: What is said anew about its models.

    Raises:
        EvolvariumError: As `running.go_on`.
    """

    def read(run_id: str, journal: Journal) -> Recorded:
        header = read_sweep_header(run_id, journal)
        return Recorded(
            measured=lambda: load_all(header.file, header.choices),
            settings=header.file.settings,
            choices=header.choices,
            context_tokens=header.conditions[0].get("context_tokens", {}),
            require_same=lambda opened: require_same_sweep(header, opened),
            perform=_performer(header, watch),
        )

    return go_on(places, name, watch, read, given)


def _performer(header: SweepHeader, watch: Watch[SweepBegun]) -> Perform:
    return lambda opened, run_id, journal: end_record(header, measure(header, opened, run_id, journal, watch))


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
        record=record_of(trial),
        scope=trial.scope,
    )


def measure(
    header: SweepHeader, opened: Sequence[Opened], run_id: str, journal: Journal, watch: Watch[SweepBegun]
) -> list[Part]:
    """Run the gold queries, then every evolution that is not recorded yet.

    Args:
        header: Of the run.
        opened: Its data sets.
        run_id: Of the run.
        journal: Of the run.
        watch: Of the caller.

    Raises:
        EvolvariumError: As `run_gold` and `evaluate_all`; what was recorded stays.
    """
    trials = trials_of(header.variants)
    labels = [dataset.label for dataset in header.file.datasets]
    begun = SweepBegun(
        run_id=run_id,
        choices=header.choices,
        questions=dict(zip(labels, map(len, header.questions), strict=True)),
        variants=len(header.variants),
        trials=len(trials),
    )
    watch.on_start(begun)
    parts = [_part(one, number, labels[number], journal, watch) for number, one in enumerate(opened)]
    evolutions = len(trials) * sum(len(part.evaluable) for part in parts)
    budget = header.choices.budget.share(evolutions)
    watch.on_total(evolutions, (outcome for _, outcome in _outcomes(parts, trials)))
    for label, part in zip(labels, parts, strict=True):
        watch.note(f"answering {len(part.evaluable)} questions of {label}, {len(trials)} evolutions of each")
        evaluate_all(
            part.evaluable,
            [configuration_of(trial, part.opened, budget) for trial in trials],
            place=part.opened.place,
            texts=part.opened.texts,
            judge=part.judge,
            journal=part.journal,
            follow=Follow(token=watch.token, on_outcome=watch.on_outcome),
        )
    return parts


def end_record(header: SweepHeader, parts: Sequence[Part]) -> dict[str, Any]:
    """What a sweep keeps of its end, once the digests of its databases have been compared."""
    tallies = {variant.id: Tally() for variant in header.variants}
    budget_spent = False
    for trial, outcome in _outcomes(parts, trials_of(header.variants)):
        budget_spent |= is_cut_off(outcome)
        for variant in trial.variants:
            tallies[variant.id].add(outcome, variant.settings.rounds)
    best = best_of({name: [tally] for name, tally in tallies.items()})
    return {
        "unchanged": [sorted(part.opened.place.paths) for part in parts],
        "budget_spent": budget_spent,
        "best": None if best is None else {"variant": best.variant, "right": best.strict.right, "of": best.strict.of},
    }


def _part(opened: Opened, number: int, label: str, journal: Journal, watch: Watch[SweepBegun]) -> Part:
    """A data set with its gold queries run."""
    scoped = ScopedJournal(journal, dataset_scope(number))
    judge = SqlJudge(scoped, dataset=opened.data.dataset.digest)
    evaluable = run_gold(opened.place, opened.data.questions, judge, label=label, note=watch.note)
    return Part(opened=opened, journal=scoped, judge=judge, evaluable=evaluable)


def _outcomes(parts: Sequence[Part], trials: Sequence[Trial]) -> Iterator[tuple[Trial, Outcome]]:
    """Those that are recorded, one at a time: all together may be large."""
    for part in parts:
        for trial in trials:
            for question in part.evaluable:
                outcome = outcome_of(part.journal, outcome_key(view_of(question).key, trial))
                if outcome is not None:
                    yield trial, outcome
