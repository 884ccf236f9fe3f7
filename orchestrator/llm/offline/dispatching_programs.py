"""Dispatching rules as programs, and back.

Programs may come from other models: they are searched for lines of one form, bounded in size, and never parsed. A rule
is believed only if it gives the very same program again.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from string import Template

from orchestrator.llm.offline.dispatching_features import FEATURES, needed
from orchestrator.llm.offline.dispatching_rules import DispatchingTask, Rule, Term

_MAX_CHARACTERS = 20_000
_TERM = r"        (?:[+-] )?\d[\d.e-]{0,24}(?: \* [a-z_]{1,30}){1,2}\n"
_COST = re.compile(rf"^    cost = \(\n(?P<terms>(?:{_TERM}){{1,20}})    \)\n", re.MULTILINE)
_ORIGIN = re.compile(r"^The weights were (?P<origin>[\w ,.'-]{1,120})\.$", re.MULTILINE)


def render(rule: Rule, task: DispatchingTask, origin: str) -> str:
    """The rule as a program."""
    names = needed(frozenset(name for term in rule.terms for name in term.factors))
    expressions = {name: FEATURES[name].expression for name in names}
    figures = {
        "OPERATION": f"{task.mean_time}  # mean processing time",
        "JOB": f"{task.mean_work}  # mean total processing time of a job",
    }
    used = [name for name in figures if any(name in expression for expression in expressions.values())]
    return Template(_template()).substitute(
        origin=origin,
        function=task.function,
        constants="".join(f"{name} = {figures[name]}\n" for name in used),
        features="\n".join(f"    {name} = {expression}" for name, expression in expressions.items()),
        terms="\n".join(_line(term, is_first=term is rule.terms[0]) for term in rule.terms),
    )


def read_rule(program: str, task: DispatchingTask) -> Rule | None:
    """The rule of a program that `render` wrote; None: it was written by somebody else."""
    if len(program) > _MAX_CHARACTERS:
        return None
    cost, origin = _COST.search(program), _ORIGIN.search(program)
    if cost is None or origin is None:
        return None
    document: list[list[object]] = []
    for line in cost["terms"].splitlines():
        weight, *factors = line.strip().split(" * ")
        try:
            document.append([float(weight.replace(" ", "")), *factors])
        except ValueError:
            return None
    rule = Rule.from_json(document)
    return rule if rule is not None and render(rule, task, origin["origin"]) == program else None


def _line(term: Term, *, is_first: bool) -> str:
    sign = "- " if term.weight < 0 else "" if is_first else "+ "
    return f"        {sign}{abs(term.weight)!r} * {' * '.join(term.factors)}"


@cache
def _template() -> str:
    return files(__package__).joinpath("templates", "dispatching_program.py.txt").read_text("utf-8")
