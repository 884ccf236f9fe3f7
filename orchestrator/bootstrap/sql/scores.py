"""What a bench says of a data set, computed from the outcomes of its questions; pure functions.

Every share is of the questions that could be evaluated. Differences between two methods are paired by question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.bootstrap.sql.outcomes import Method, Outcome, Right
from orchestrator.evaluation.sql_judge import Metric
from orchestrator.search.repeated_sampling import average_at_k, pass_at_k, pass_hat_k

RESAMPLES = 10_000
LEVEL = 0.95
HEADLINE = Metric.STRICT
"""The metric of the one figure that stands for a measurement, and of what counts as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many of so many."""

    right: int
    of: int

    @property
    def value(self) -> float | None:
        """From 0 to 1; None: of nothing."""
        return self.right / self.of if self.of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """One metric over the candidates of the first round (the paper's Table 8)."""

    average: float | None
    """Avg@K: the mean over questions of the share of right candidates; None: there is no question."""
    all_right: Share
    """pass^K."""
    any_right: Share
    """Pass@K."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much more often one method is right than another, in shares from -1 to 1."""

    first: Method
    other: Method
    metric: Metric
    value: float
    low: float
    """Ends of the interval in which 95 % of the resampled differences lie."""
    high: float


def final_scores(outcomes: Sequence[Outcome], method: Method) -> dict[Metric, Share]:
    """How often a method's final answer is right."""
    return _shares(outcome.answers.get(method, frozenset()) for outcome in outcomes)


def round_scores(outcomes: Sequence[Outcome], method: Method, rounds: int) -> list[dict[Metric, Share]]:
    """How often a method's answer was right after each round (T1 is the first); after an early end it stays.

    Args:
        outcomes: One for each question.
        method: One that makes rounds.
        rounds: T.
    """
    return [_shares(_answer_at(outcome, method, number) for outcome in outcomes) for number in range(rounds)]


def sampling_scores(outcomes: Sequence[Outcome]) -> dict[Metric, Sampling]:
    """Avg@K, pass^K and Pass@K of the first round; a question without candidates counts as wrong in all three."""
    scores = {}
    for metric in Metric:
        rights = [[metric in right for right in outcome.first] for outcome in outcomes]
        averages = [average_at_k(right) if right else 0.0 for right in rights]
        scores[metric] = Sampling(
            average=sum(averages) / len(averages) if averages else None,
            all_right=Share(right=sum(map(pass_hat_k, rights)), of=len(rights)),
            any_right=Share(right=sum(map(pass_at_k, rights)), of=len(rights)),
        )
    return scores


def pass_scores(outcomes: Sequence[Outcome], method: Method) -> dict[Metric, Share]:
    """How often any candidate of any of a method's rounds is right: what a perfect choice would come to."""
    return _shares(_union([*outcome.first, *_later(outcome, method)]) for outcome in outcomes)


def repaired(outcomes: Sequence[Outcome], method: Method) -> dict[Metric, int]:
    """How many questions without a right candidate in the first round a method gets right in the end."""
    gained = [outcome.answers.get(method, frozenset()) - _union(outcome.first) for outcome in outcomes]
    return {metric: sum(metric in right for right in gained) for metric in Metric}


def ending_counts(outcomes: Sequence[Outcome], method: Method) -> dict[str, int]:
    """How many questions ended how under a method that makes rounds; those that the budget did not reach are there."""
    endings = Counter(
        outcome.evolutions[method].ending if method in outcome.evolutions else "budget" for outcome in outcomes
    )
    return dict(sorted(endings.items()))


def difference(
    outcomes: Sequence[Outcome], first: Method, other: Method, metric: Metric, rng: np.random.Generator
) -> Difference | None:
    """The difference of two methods with a paired bootstrap interval (Efron & Tibshirani 1993, percentiles).

    A question counts as 1, 0 or -1, so drawing n of them with replacement is one multinomial draw over three values.

    Args:
        outcomes: One for each question.
        first: Whose advantage counts as positive.
        other: With what it is compared.
        metric: In which.
        rng: Draws the resamples.

    Returns:
        None: there is no question.
    """
    count = len(outcomes)
    if not count:
        return None
    pairs = [
        (metric in outcome.answers.get(first, frozenset()), metric in outcome.answers.get(other, frozenset()))
        for outcome in outcomes
    ]
    better, worse = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    shares = np.array([better, worse, count - better - worse]) / count
    drawn = rng.multinomial(count, shares, size=RESAMPLES)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / count, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(
        first=first, other=other, metric=metric, value=(better - worse) / count, low=float(low), high=float(high)
    )


def not_reached(outcomes: Sequence[Outcome], method: Method) -> int:
    """How many questions the budget did not reach under a method: they count as wrong in every share."""
    return sum(method not in outcome.answers for outcome in outcomes)


def rounds_made(outcomes: Sequence[Outcome], method: Method) -> tuple[int, ...]:
    """How many rounds each question made that began at all."""
    return tuple(len(outcome.evolutions[method].answers) for outcome in outcomes if method in outcome.evolutions)


def flag_counts(outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    """How many questions have each flag."""
    return dict(sorted(Counter(flag.value for outcome in outcomes for flag in outcome.flags).items()))


def _answer_at(outcome: Outcome, method: Method, number: int) -> Right:
    if method not in outcome.evolutions:
        return frozenset()
    answers = outcome.evolutions[method].answers
    return answers[min(number, len(answers) - 1)]


def _later(outcome: Outcome, method: Method) -> Sequence[Right]:
    return outcome.evolutions[method].later if method in outcome.evolutions else ()


def _union(rights: Iterable[Right]) -> Right:
    return frozenset[Metric]().union(*rights)


def _shares(rights: Iterable[Right]) -> dict[Metric, Share]:
    listed = list(rights)
    return {metric: Share(right=sum(metric in right for right in listed), of=len(listed)) for metric in Metric}
