"""A bench as its journal tells it: read only, so it needs no engine, no model and no lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.bootstrap.pauses import pause_of
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.header import read_header
from orchestrator.bootstrap.sql.outcomes import RECORD, Method, Outcome, outcome_of
from orchestrator.bootstrap.sql.running import END_KEY
from orchestrator.bootstrap.sql.scores import Difference, Share, difference
from orchestrator.domain.conversation import Usage
from orchestrator.errors import RunStateError
from orchestrator.evaluation.sql_judge import GOLD, Gold, Metric, Standing, read_gold
from orchestrator.methods.evosql import Settings
from orchestrator.methods.evosql.calls import Call
from orchestrator.ports import Journal
from orchestrator.search.streams import stream

COMPARED = ((Method.EVOSQL, Method.SELF_EVOLUTION), (Method.EVOSQL, Method.MAJORITY))
COMPARED_IN = (Metric.STRICT, Metric.BIRD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One question, as far as it has come."""

    key: str
    """In the journal, for instance `q/17`."""
    id: str
    database: str
    gold: Gold | None
    """None: its gold query has not been run yet."""
    outcome: Outcome | None
    """None: it cannot be evaluated, or has not been answered yet."""


@dataclass(frozen=True, kw_only=True)
class BenchView:
    """A bench and all that is recorded of its questions."""

    run_id: str
    header: Mapping[str, Any]
    choices: BenchChoices
    settings: Settings
    questions: Sequence[Measured]
    has_ended: bool
    pause: str | None
    """Why it is paused; None: it is not."""

    @property
    def evaluable(self) -> list[Measured]:
        """The denominator of every share."""
        return [one for one in self.questions if one.gold is not None and one.gold.standing is Standing.EVALUABLE]

    @property
    def outcomes(self) -> list[Outcome]:
        """Of the questions that have been answered."""
        return [one.outcome for one in self.questions if one.outcome is not None]

    @property
    def standings(self) -> dict[str, int]:
        """How many questions stand how; what is not `evaluable` has left the denominator."""
        counts = Counter("pending" if one.gold is None else one.gold.standing.value for one in self.questions)
        return dict(sorted(counts.items()))

    @property
    def nondeterministic(self) -> int:
        """Questions whose gold query gives something else in another order of reading."""
        return sum(one.gold is not None and one.gold.nondeterministic for one in self.evaluable)

    def gold_as_prediction(self) -> dict[Metric, Share]:
        """How often gold is right when it is run and judged like a prediction; always, if all is well."""
        golds = [one.gold for one in self.evaluable if one.gold is not None]
        return {
            metric: Share(right=sum(metric in gold.as_prediction for gold in golds), of=len(golds)) for metric in Metric
        }

    def disagreeing(self) -> list[str]:
        """Ids of the questions whose gold query is wrong when it is judged like a prediction."""
        return [one.id for one in self.evaluable if one.gold is not None and len(one.gold.as_prediction) < len(Metric)]

    def differences(self) -> list[Difference]:
        """EvoSQL against the methods it builds on, as far as they were run."""
        found = [
            difference(
                self.outcomes, first, other, metric, stream(self.settings.seed, "bootstrap", first, other, metric)
            )
            for first, other in COMPARED
            if {first, other} <= set(self.choices.methods)
            for metric in COMPARED_IN
        ]
        return [one for one in found if one is not None]

    def calls(self, method: Method) -> list[tuple[Call, ...]]:
        """The calls of every question under a method that makes rounds, those of the first round with them."""
        return [
            tuple(
                record.call()
                for record in (*outcome.first_calls, *getattr(outcome.evolutions.get(method), "calls", ()))
            )
            for outcome in self.outcomes
        ]

    def spent(self) -> tuple[Usage, int, int]:
        """(usage, requests, calls lost in crashes) of all methods on all questions together."""
        spent = [outcome.spent for outcome in self.outcomes]
        return (
            sum((one.usage for one in spent), Usage()),
            sum(one.requests for one in spent),
            sum(one.lost for one in spent),
        )


def read_bench(run_id: str, journal: Journal) -> BenchView:
    """Read a journal, also of a bench that is going on.

    Raises:
        RunStateError: It holds no bench, or is damaged.
    """
    header, choices, settings = read_header(run_id, journal)
    try:
        listed = [(str(key), str(name), str(database)) for key, name, database in header["questions"]]
    except (KeyError, TypeError, ValueError) as error:
        msg = f"the record of run {run_id} is damaged (questions); restore it from a copy, or remove it"
        raise RunStateError(msg) from error
    return BenchView(
        run_id=run_id,
        header=header,
        choices=choices,
        settings=settings,
        questions=[
            Measured(
                key=key,
                id=name,
                database=database,
                gold=read_gold(journal, key + GOLD),
                outcome=outcome_of(journal, key + RECORD),
            )
            for key, name, database in listed
        ],
        has_ended=journal.get(END_KEY) is not None,
        pause=pause_of(journal),
    )
