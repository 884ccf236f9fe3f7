"""Choices of the dispatching family that do not depend on whether it can measure."""

from __future__ import annotations

import math
import random

from orchestrator.llm.offline.dispatching_operators import FURTHER, applicable
from orchestrator.llm.offline.dispatching_programs import read_rule
from orchestrator.llm.offline.dispatching_rules import DispatchingTask, Rule
from orchestrator.llm.offline.notebook import Notebook

_ATTRIBUTES_AT_FIRST = 3


def task_of(notebook: Notebook) -> DispatchingTask | None:
    """The task's figures; None: it is another kind of task."""
    return DispatchingTask.read(notebook.task, notebook.initial_program)


def known_rules(notebook: Notebook, task: DispatchingTask) -> list[Rule]:
    """Rules of the programs whose text and score are known, best first."""
    ranked = sorted(notebook.programs, key=lambda id_: -notebook.scores.get(id_, -math.inf))
    rules = [read_rule(notebook.programs[id_], task) for id_ in ranked if id_ in notebook.scores]
    return list(dict.fromkeys(rule for rule in rules if rule is not None))


def next_operator(rule: Rule, chance: random.Random) -> str:
    """A structural change: single attributes while there are few, then any."""
    if sum(len(term.factors) == 1 for term in rule.terms) <= _ATTRIBUTES_AT_FIRST:
        return FURTHER
    return chance.choice(applicable(rule))


def summary(rule: Rule) -> str:
    """A rule in one line."""
    return "cost: " + " ".join(f"{term.weight:+.3g} {' x '.join(term.factors)}" for term in rule.terms)
