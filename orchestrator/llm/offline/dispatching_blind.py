"""Dispatching without analyses: nothing can be measured, so steps are random and evaluation decides."""

from __future__ import annotations

import random

from orchestrator.llm.offline.dispatching_choices import known_rules, next_operator, summary
from orchestrator.llm.offline.dispatching_operators import changed
from orchestrator.llm.offline.dispatching_programs import render
from orchestrator.llm.offline.dispatching_rules import DispatchingTask, Rule, Term
from orchestrator.llm.offline.families import Step, commit, write
from orchestrator.llm.offline.notebook import Notebook
from orchestrator.llm.offline.pacing import blind_step_size

_FIRST_STEP_SIZE = 0.2  # of weights whose largest is 1


def blind_step(notebook: Notebook, task: DispatchingTask, chance: random.Random) -> Step:
    """Change the best rule known at random and commit it: there is nothing to measure with."""
    rules = known_rules(notebook, task)
    rule = rules[0] if rules else Rule.shortest()
    operator = next_operator(rule, chance)
    if len(rules) > 1 and chance.random() < 0.2:
        rule = rule.mixed_with(rules[1])
    size = blind_size(notebook)
    rule = changed(operator, rule, chance, size)
    terms = (Term(term.weight + size / 2 * chance.gauss(0, 1), term.factors) for term in rule.terms)
    rule = Rule(tuple(terms)).scaled()
    program = render(rule, task, "varied at random and chosen by formal evaluation")
    text = f"From the best rule known: {operator}, and a random step of {size:.3f}."
    return Step(text=text, calls=(write(notebook.entry, program), commit(f"{summary(rule)}; step {size:.3f}")))


def blind_size(notebook: Notebook) -> float:
    """Of the next random step."""
    return blind_step_size(notebook, first=_FIRST_STEP_SIZE, least=0.01, most=0.8)
