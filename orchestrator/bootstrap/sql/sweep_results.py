"""A sweep as its journal tells it: read only, so it needs no engine, no model and no lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.bootstrap.sql.bench import END_KEY
from orchestrator.bootstrap.sql.outcomes import Method, Outcome, outcome_of
from orchestrator.bootstrap.sql.scores import Share
from orchestrator.bootstrap.sql.sweep import outcome_key
from orchestrator.bootstrap.sql.sweep_header import Listed, SweepHeader, dataset_scope, read_sweep_header
from orchestrator.domain.conversation import Usage
from orchestrator.evaluation.sql_judge import GOLD, Gold, Metric, Standing, read_gold
from orchestrator.methods.evosql import Ending
from orchestrator.methods.evosql.accounting import Tokens, tokens_of
from orchestrator.methods.evosql.calls import read_calls
from orchestrator.methods.evosql.grid import Trial, Variant, trials_of
from orchestrator.ports import Journal
from orchestrator.storage.scoped_journal import ScopedJournal

State = Literal["done", "unfinished", "budget-spent"]


@dataclass(kw_only=True)
class Tally:
    """What one variant came to on one data set, question by question."""

    answered: int = 0
    right: Counter[Metric] = field(default_factory=Counter)
    """Questions whose answer is right."""
    passed: Counter[Metric] = field(default_factory=Counter)
    """Questions of which any of the K best candidates at the end is right."""
    majority: Counter[Metric] = field(default_factory=Counter)
    """Questions whose first round's majority is right."""
    endings: Counter[str] = field(default_factory=Counter)
    tokens: Tokens = field(default_factory=Tokens)
    """Of all requests of generator and critic, the first round's included."""

    def add(self, outcome: Outcome, rounds: int) -> None:
        """Count a question as if there had been so many rounds at most.

        Args:
            outcome: Of an evolution of at least as many.
            rounds: T.
        """
        self.answered += 1
        self.majority.update(outcome.answers.get(Method.MAJORITY, ()))
        calls = outcome.first_calls
        evolution = outcome.evolutions.get(Method.EVOSQL)
        if evolution is None:
            self.endings[Ending.BUDGET.value] += 1
        else:
            made = len(evolution.answers)
            last = min(rounds, made) - 1
            self.right.update(evolution.answers[last])
            self.passed.update(evolution.passed[last])
            self.endings[evolution.ending if made <= rounds else Ending.ROUNDS.value] += 1
            calls += tuple(call for call in evolution.calls if call.round < rounds)
        self.tokens = sum((tokens_of(call.call().usage) for call in calls), self.tokens)

    def shares(self, counted: Mapping[Metric, int]) -> dict[Metric, Share]:
        """One of its counts as shares of what is answered."""
        return {metric: Share(right=counted.get(metric, 0), of=self.answered) for metric in Metric}


@dataclass(frozen=True, kw_only=True)
class Swept:
    """One data set of a sweep."""

    label: str
    questions: Sequence[Listed]
    golds: Mapping[str, Gold]
    """By id, of those that have been run."""
    tallies: Mapping[str, Tally]
    """By id of the variant."""

    @property
    def evaluable(self) -> int:
        """The denominator at the end."""
        return sum(gold.standing is Standing.EVALUABLE for gold in self.golds.values())

    @property
    def standings(self) -> dict[str, int]:
        """How many questions stand how; what is not `evaluable` has left the denominator."""
        counts = Counter(gold.standing.value for gold in self.golds.values())
        counts["pending"] = len(self.questions) - len(self.golds)
        return dict(sorted((+counts).items()))

    def gold_as_prediction(self) -> dict[Metric, Share]:
        """How often gold is right when it is run and judged like a prediction; always, if all is well."""
        golds = [gold for gold in self.golds.values() if gold.standing is Standing.EVALUABLE]
        return {
            metric: Share(right=sum(metric in gold.as_prediction for gold in golds), of=len(golds)) for metric in Metric
        }

    def disagreeing(self) -> list[str]:
        """Ids of the questions whose gold query is wrong when it is judged like a prediction."""
        return [
            name
            for name, gold in self.golds.items()
            if gold.standing is Standing.EVALUABLE and len(gold.as_prediction) < len(Metric)
        ]


@dataclass(frozen=True, kw_only=True)
class SweepView:
    """A sweep and all that is recorded of its variants."""

    run_id: str
    header: SweepHeader
    trials: Sequence[Trial]
    datasets: Sequence[Swept]
    usage: Usage
    """Of all answered requests, each counted once however many variants it serves."""
    requests: int
    state: State


def read_sweep(run_id: str, journal: Journal) -> SweepView:
    """Read a journal, also of a sweep that is going on.

    Raises:
        RunStateError: It holds no sweep, or is damaged.
    """
    header = read_sweep_header(run_id, journal)
    trials = trials_of(header.variants)
    scopes = [dataset_scope(number) for number in range(len(header.questions))]
    usages = [usage for scope in scopes for usage in _usages(ScopedJournal(journal, scope), trials)]
    return SweepView(
        run_id=run_id,
        header=header,
        trials=trials,
        datasets=[
            _swept(dataset.label, listed, ScopedJournal(journal, scope), trials)
            for dataset, listed, scope in zip(header.file.datasets, header.questions, scopes, strict=True)
        ],
        usage=sum(usages, Usage()),
        requests=len(usages),
        state=sweep_state(journal),
    )


def sweep_state(journal: Journal) -> State:
    """Where a sweep stands."""
    end = journal.get(END_KEY)
    if end is None:
        return "unfinished"
    return "budget-spent" if end["budget_spent"] else "done"


def _swept(label: str, questions: Sequence[Listed], journal: Journal, trials: Sequence[Trial]) -> Swept:
    found = {question.id: read_gold(journal, question.key + GOLD) for question in questions}
    tallies = {variant.id: Tally() for variant in _ordered(trials)}
    for trial in trials:
        for question in questions:
            outcome = outcome_of(journal, outcome_key(question.key, trial))
            if outcome is not None:  # one at a time, for all of them together may be large
                for variant in trial.variants:
                    tallies[variant.id].add(outcome, variant.settings.rounds)
    golds = {name: gold for name, gold in found.items() if gold is not None}
    return Swept(label=label, questions=questions, golds=golds, tallies=tallies)


def _ordered(trials: Sequence[Trial]) -> list[Variant]:
    return sorted((variant for trial in trials for variant in trial.variants), key=lambda variant: variant.id)


def _usages(journal: Journal, trials: Sequence[Trial]) -> Iterator[Usage]:
    for scope in dict.fromkeys(trial.scope for trial in trials):
        for methods in read_calls(ScopedJournal(journal, scope)).values():
            for calls in methods.values():
                yield from (call.usage for call in calls)
