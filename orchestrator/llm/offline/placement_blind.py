"""Placement without analyses: nothing can be measured, so steps are random and evaluation decides."""

from __future__ import annotations

import math
import random

from orchestrator.llm.offline.families import Step, commit, write
from orchestrator.llm.offline.notebook import Notebook
from orchestrator.llm.offline.pacing import blind_step_size
from orchestrator.llm.offline.placement_choices import next_operator, summary
from orchestrator.llm.offline.placement_operators import OPERATORS, applicable
from orchestrator.llm.offline.placement_programs import read_rule, render
from orchestrator.llm.offline.placement_rules import PlacementTask, Rule

_FIRST_STEP_SIZE = 0.05  # of values that span 1


def blind_step(notebook: Notebook, task: PlacementTask, chance: random.Random) -> Step:
    """Change the best rule known at random and commit it: there is nothing to measure with."""
    ranked = sorted(notebook.programs, key=lambda id_: -notebook.scores.get(id_, -math.inf))
    rules = [rule for id_ in ranked if (rule := read_rule(notebook.programs[id_], task)) is not None]
    base = rules[0] if rules else None
    operator = next_operator(notebook, base, chance)
    rule = base or Rule.best_fit(task, chance)
    if len(rules) > 1 and chance.random() < 0.2:
        rule = rule.mixed_with(rules[1])
    if operator in applicable(rule):
        rule = OPERATORS[operator](rule, task, chance)
    size = blind_size(notebook)
    rule = rule.with_values(lambda value: round(value + size * chance.gauss(0, 1), 4))
    program = render(rule, task, "varied at random and chosen by formal evaluation")
    text = f"From the best rule known: {operator}, and a random step of {size:.3f}."
    return Step(text=text, calls=(write(notebook.entry, program), commit(f"{summary(rule)}; step {size:.3f}")))


def blind_size(notebook: Notebook) -> float:
    """Of the next random step."""
    return blind_step_size(notebook, first=_FIRST_STEP_SIZE, least=0.002, most=0.5)
