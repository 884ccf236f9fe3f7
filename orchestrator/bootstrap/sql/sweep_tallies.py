"""What the variants of a sweep come to, counted from the outcomes of its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.bootstrap.sql.outcomes import RECORD, Method, Outcome
from orchestrator.bootstrap.sql.scores import HEADLINE, Share
from orchestrator.evaluation.sql_judge import Metric
from orchestrator.methods.evosql import Ending
from orchestrator.methods.evosql.accounting import Tokens, tokens_of
from orchestrator.methods.evosql.grid import Trial


@dataclass(kw_only=True)
class Tally:
    """What one variant came to on one data set, question by question."""

    answered: int = 0
    not_reached: int = 0
    """Questions of these of which the budget did not cover the first round; they count as wrong."""
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
            self.not_reached += 1
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The variant that is right most often, over all data sets."""

    variant: str
    """Its id."""
    strict: Share


def best_of(tallies: Mapping[str, Sequence[Tally]]) -> Best | None:
    """The best variant in strict accuracy, of equal ones the first.

    Args:
        tallies: Id of a variant to what it came to on each data set, in the order of the variants.

    Returns:
        None: they have not answered equally many questions, or none at all.
    """
    found = [
        Best(
            variant=name,
            strict=Share(right=sum(one.right[HEADLINE] for one in mine), of=sum(one.answered for one in mine)),
        )
        for name, mine in tallies.items()
    ]
    if len({one.strict.of for one in found}) != 1 or not found[0].strict.of:
        return None
    return max(found, key=lambda one: one.strict.right)


def is_cut_off(outcome: Outcome) -> bool:
    """Whether the budget did not cover every step of an evolution."""
    evolution = outcome.evolutions.get(Method.EVOSQL)
    return evolution is None or evolution.ending == Ending.BUDGET


def record_of(trial: Trial) -> str:
    """End of the key of what a trial came to on a question, after the question's key."""
    return f"{RECORD}/{trial.name}"


def outcome_key(question: str, trial: Trial) -> str:
    """The key, in the journal of a data set, of what a trial came to, for instance `f1/q/17/outcome/e003`.

    Args:
        question: Its key, for instance `q/17`.
        trial: Of the sweep.
    """
    return f"{trial.scope}{question}{record_of(trial)}"
