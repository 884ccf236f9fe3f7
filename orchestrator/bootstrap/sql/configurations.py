"""What is measured on a question, and how several configurations share what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.bootstrap.sql.outcomes import RECORD, Method
from orchestrator.bootstrap.sql.replies import RememberingModel
from orchestrator.domain.budgets import Budget
from orchestrator.methods.evosql import EVOSQL, SELF_EVOLUTION, Settings
from orchestrator.ports import LanguageModel

_NAMES = {Method.EVOSQL: EVOSQL, Method.SELF_EVOLUTION: SELF_EVOLUTION}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What is measured, and with what; the same for all questions."""

    settings: Settings
    methods: tuple[Method, ...]
    generator: LanguageModel
    critic: LanguageModel
    budget: Budget
    """Of each question."""
    names: Mapping[Method, str] = field(default_factory=lambda: dict(_NAMES))
    """Of the evolutions, in journal keys; configurations that share first rounds need different ones."""
    record: str = RECORD
    """Where outcomes stand in the journal, after the question's key; likewise."""
    scope: str = ""
    """Before every journal key but those of gold; configurations with the same one share first rounds."""


def shared_replies(configurations: Sequence[Configuration]) -> list[Configuration]:
    """The same with models that remember their replies, where that changes nothing but how long it takes."""
    if len(configurations) == 1:
        return list(configurations)
    models = {id(model): model for one in configurations for model in (one.generator, one.critic)}
    remembering = {key: RememberingModel(model) if model.is_repeatable else model for key, model in models.items()}
    return [
        replace(one, generator=remembering[id(one.generator)], critic=remembering[id(one.critic)])
        for one in configurations
    ]
