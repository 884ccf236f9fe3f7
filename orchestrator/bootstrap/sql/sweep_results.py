"""A sweep as its journal tells it: read only, so it needs no engine, no model and no lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.bootstrap.pauses import pause_of
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.bootstrap.sql.outcomes import outcome_of
from orchestrator.bootstrap.sql.running import END_KEY
from orchestrator.bootstrap.sql.scores import Share
from orchestrator.bootstrap.sql.sweep_header import Listed, SweepHeader, dataset_scope, read_sweep_header
from orchestrator.bootstrap.sql.sweep_tallies import Best, Tally, best_of, outcome_key
from orchestrator.domain.conversation import Usage
from orchestrator.evaluation.sql_judge import GOLD, Gold, Metric, Standing, read_gold
from orchestrator.methods.evosql.calls import read_calls
from orchestrator.methods.evosql.grid import Trial, Variant, trials_of
from orchestrator.ports import Journal
from orchestrator.search.spending import Spending
from orchestrator.storage.scoped_journal import ScopedJournal

State = Literal["done", "unfinished", "paused", "budget-spent"]


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
    ledger: Sequence[Spending]
    """The same by role and model."""
    state: State
    pause: str | None
    """Why it is paused; None: it is not."""

    @property
    def best(self) -> Best | None:
        """The best variant in strict accuracy; None: not all have answered the same questions."""
        return best_of({one.id: [swept.tallies[one.id] for swept in self.datasets] for one in self.header.variants})


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
        ledger=read_ledger(journal),
        state=sweep_state(journal),
        pause=pause_of(journal),
    )


def sweep_state(journal: Journal) -> State:
    """Where a sweep stands."""
    end = journal.get(END_KEY)
    if end is None:
        return "unfinished" if pause_of(journal) is None else "paused"
    return "budget-spent" if end["budget_spent"] else "done"


def recorded_best(journal: Journal) -> Best | None:
    """The best variant as a sweep recorded it at its end, which is cheaper than counting; None: it did not."""
    best = (journal.get(END_KEY) or {}).get("best")
    if best is None:
        return None
    return Best(variant=str(best["variant"]), strict=Share(right=int(best["right"]), of=int(best["of"])))


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
