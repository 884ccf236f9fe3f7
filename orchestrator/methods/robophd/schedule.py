"""What an iteration is before it begins: its round, its strategy and its questions, by the run's seed alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.search.sampling import sample_contest
from orchestrator.search.streams import stream
from orchestrator.search.tournament import RoundKind, round_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One iteration."""

    kind: RoundKind
    strategy: Strategy | None
    """None: nothing is made, since it is the first iteration or its round has no evolution."""
    sample: Mapping[str, tuple[QuestionView, ...]]
    """Database to the questions of the contest."""
    slots: int
    """How many packages take part."""

    @property
    def record(self) -> dict[str, Any]:
        """What the journal keeps of it; `questions` holds id and group of each."""
        return {
            "kind": self.kind.value,
            "strategy": None if self.strategy is None else self.strategy.value,
            "questions": {
                name: [[question.id, question.group] for question in questions]
                for name, questions in self.sample.items()
            },
        }


def plan_iteration(settings: Settings, evolve: Mapping[str, tuple[QuestionView, ...]], iteration: int) -> Plan:
    """Draw everything about an iteration that does not depend on how packages have done.

    Args:
        settings: That count in this iteration.
        evolve: Database to its questions, of those that contests are held on.
        iteration: From 1.

    Raises:
        ValueError: There is no question at all.
    """
    schedule = settings.schedule
    kind = round_kind(
        settings.seed, iteration, late_stage=schedule.late_stage, challenger=schedule.challenger, none=schedule.none
    )
    sample = sample_contest(
        evolve,
        settings.seed,
        iteration,
        databases=settings.databases_per_contest,
        per_database=settings.questions_per_database,
    )
    return Plan(
        kind=kind,
        strategy=draw_strategy(settings, iteration) if kind.has_evolution and iteration > 1 else None,
        sample=sample,
        slots=schedule.agents if kind is RoundKind.STANDARD else schedule.exploration_agents,
    )


def draw_strategy(settings: Settings, iteration: int) -> Strategy:
    """The strategy of an iteration, by the stream (seed, "strategy", iteration), each by its weight."""
    weights = settings.schedule.strategies
    names = sorted(strategy for strategy, weight in weights.items() if weight > 0)
    drawn = stream(settings.seed, "strategy", iteration).random() * sum(weights[name] for name in names)
    for name in names:
        drawn -= weights[name]
        if drawn < 0:
            return name
    return names[-1]  # where rounding has used up less than the whole
