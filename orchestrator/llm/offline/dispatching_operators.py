"""How the structure of a dispatching rule may change: which terms may be added, and which may go."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.llm.offline.dispatching_features import FEATURES
from orchestrator.llm.offline.dispatching_rules import MAX_TERMS, Rule, Term, product

FURTHER = "further attributes"
PRODUCTS = "products of two"
FEWER = "fewer terms"
VALUES = "the weights alone"
OPERATORS = (FURTHER, PRODUCTS, FEWER, VALUES)

_PRODUCTS_TRIED = 16


def applicable(rule: Rule) -> list[str]:
    """Names of the operators that may change this rule; its size stays bounded."""
    allowed = {
        FURTHER: len(rule.terms) < MAX_TERMS and bool(additions(FURTHER, rule, random.Random(0))),  # noqa: S311 - search
        PRODUCTS: len(rule.terms) < MAX_TERMS,
        FEWER: len(rule.terms) > 2,
        VALUES: True,
    }
    return [name for name in OPERATORS if allowed[name]]


def additions(operator: str, rule: Rule, chance: random.Random) -> list[tuple[str, ...]]:
    """Factors of the terms that an operator could add to a rule; none are there already."""
    found: list[tuple[str, ...]] = []
    if operator == FURTHER:
        found = [(name,) for name, feature in FEATURES.items() if feature.stands_alone and not rule.has((name,))]
    elif operator == PRODUCTS:
        drawn = [_drawn_product(rule, chance) for _ in range(4 * _PRODUCTS_TRIED)]
        found = [pair for pair in dict.fromkeys(drawn) if not rule.has(pair) and Term(1.0, pair).is_sound]
    return found[:_PRODUCTS_TRIED]


def changed(operator: str, rule: Rule, chance: random.Random, weight: float) -> Rule:
    """The rule after a random change of structure; what is added gets a weight of either sign."""
    if operator == FEWER and len(rule.terms) > 1:
        gone = chance.randrange(len(rule.terms))
        return replace(rule, terms=rule.terms[:gone] + rule.terms[gone + 1 :])
    found = additions(operator, rule, chance) if len(rule.terms) < MAX_TERMS else []
    if not found:
        return rule
    return replace(rule, terms=(*rule.terms, Term(round(chance.choice((-1, 1)) * weight, 4), chance.choice(found))))


def _drawn_product(rule: Rule, chance: random.Random) -> tuple[str, ...]:
    """A feature of the rule and any other; one in three has nothing to do with the rule."""
    names = list(FEATURES)
    there: Sequence[str] = sorted({name for term in rule.terms for name in term.factors})
    first = chance.choice(names if chance.random() < 1 / 3 else there)
    return product(first, chance.choice(names))
