"""Equations without analyses: nothing can be measured, so structures are random and evaluation decides."""

from __future__ import annotations

import math
import random

from orchestrator.llm.offline.equations_programs import read_equation, render, summary, written
from orchestrator.llm.offline.equations_terms import MAX_FACTORS, Equation, EquationTask, Factor, Term
from orchestrator.llm.offline.families import Step, commit, write
from orchestrator.llm.offline.notebook import Notebook

_ATTEMPTS = 200
_SIMPLE = ("sin", "cos", "tanh", "exp", "exp_abs", "exp_square", "log_abs", "ratio_abs", "abs_power")
_FREE = (*_SIMPLE, "wave")


def blind_step(notebook: Notebook, task: EquationTask, chance: random.Random) -> Step:
    """Change the structure of one of the best equations known and commit it."""
    ranked = sorted(notebook.programs, key=lambda id_: -notebook.scores.get(id_, -math.inf))
    known = [e for id_ in ranked if (e := read_equation(notebook.programs[id_], task)) is not None]
    base = None if not known else known[0] if chance.random() < 0.8 else chance.choice(known[:4])
    equation, change = new_structure(base, task, chance, {other.structure for other in known})
    origin = "drawn at random and chosen by formal evaluation"
    program = render(equation, task, origin, frees_values=True)
    text = f"I write down another equation: {change}."
    return Step(text=text, calls=(write(notebook.entry, program), commit(f"{summary(equation)}; {change}")))


def new_structure(
    base: Equation | None, task: EquationTask, chance: random.Random, known: set[frozenset[object]]
) -> tuple[Equation, str]:
    """An equation that the task allows, and what was done, in words.

    Args:
        base: What to change; None: draw all terms anew.
        task: Bounds nodes and constants.
        chance: Draws.
        known: Structures not to come back with, unless many draws give nothing else.
    """
    equation, change = Equation.of([random_term(task, chance)]), "one term"
    for _ in range(_ATTEMPTS):
        if base is None:
            changed, done = Equation.of([random_term(task, chance) for _ in range(chance.randint(2, 4))]), "new terms"
        else:
            changed, done = varied(base, task, chance)
        if changed.terms and written(changed, task, frees_values=True).fits(task):
            equation, change = changed, done
            if equation.structure not in known:
                break
    return equation, change


def varied(base: Equation, task: EquationTask, chance: random.Random) -> tuple[Equation, str]:
    """The equation with one structural change; it may be too large."""
    terms, place = list(base.terms), chance.randrange(len(base.terms))
    change = chance.choice(("another term", "a term replaced", "a term less", "a factor more", "a factor less"))
    if change == "another term":
        terms.append(random_term(task, chance))
    elif change == "a term replaced":
        terms[place] = random_term(task, chance)
    elif change == "a term less":
        terms.pop(place)
    elif change == "a factor more":
        terms[place] = _merged((*terms[place], random_factor(task, chance)))
    elif terms[place]:
        terms[place] = tuple(chance.sample(terms[place], k=len(terms[place]) - 1))
    return Equation.of(terms), change


def random_term(task: EquationTask, chance: random.Random) -> Term:
    """A constant now and then, else a product of one to three factors, shorter ones more often."""
    count = chance.choices((0, 1, 2, 3), weights=(1, 10, 8, 1))[0]
    return _merged(tuple(random_factor(task, chance) for _ in range(count)))


def random_factor(task: EquationTask, chance: random.Random) -> Factor:
    """Half of the time an integer power, else another form; its values are simple more often than not."""
    number = chance.randrange(len(task.inputs))
    if chance.random() < 0.5:
        exponent = chance.choices((1, 2, 3, 4), weights=(6, 3, 3, 1))[0]
        return Factor(form="power", input=number, values=(float(exponent),))
    if chance.random() < 0.65:
        form = chance.choice(_SIMPLE)
        value = chance.choice((0.5, 1 / 3, 1)) if form == "abs_power" else -1 if form.startswith("exp_") else 1
        return Factor(form=form, input=number, values=(float(value),))
    form = chance.choice(_FREE)
    value = round(math.exp(chance.uniform(math.log(0.05), math.log(5))), 4)
    value = -value if form.startswith("exp") else value
    return Factor(form=form, input=number, values=(value, 0.5) if form == "wave" else (value,))


def _merged(factors: tuple[Factor, ...]) -> Term:
    """Integer powers of an input as one of them; of other forms the first per input stays."""
    exponents: dict[int, float] = {}
    others: dict[tuple[str, int], Factor] = {}
    for factor in factors:
        if factor.form == "power" and factor.values[0] == int(factor.values[0]):
            exponents[factor.input] = exponents.get(factor.input, 0) + factor.values[0]
        else:
            others.setdefault((factor.form, factor.input), factor)
    powers = [Factor(form="power", input=number, values=(e,)) for number, e in exponents.items() if e]
    return tuple([*powers, *others.values()][:MAX_FACTORS])
