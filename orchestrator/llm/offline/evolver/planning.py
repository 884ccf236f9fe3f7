"""From what was read to the plan of a new package, by the strategies of RoboPhD (3.2.4, appendix C)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE
from orchestrator.llm.offline.evolver.cues import evidence
from orchestrator.llm.offline.evolver.drawing import Drawing
from orchestrator.llm.offline.evolver.notebook import TOOL_FILE, Notebook
from orchestrator.llm.offline.evolver.parents import (
    Parent,
    read_parents,
    rule_effect,
    section_effect,
)
from orchestrator.llm.offline.evolver.plans import (
    LIBRARY,
    Plan,
    SectionChoice,
    default_plan,
    instructions_text,
    tool_text,
    usual_bytes,
)
from orchestrator.llm.offline.evolver.rules import Rule, guide, without_conflicts
from orchestrator.llm.offline.evolver.sections import BASIC, library
from orchestrator.llm.offline.evolver.symptoms import (
    CONVENTIONS,
    SECTIONS,
    Symptom,
    commonest,
    counted,
    symptoms_of,
    tool_troubles,
)

CROSS_POLLINATION, REFINEMENT = "cross-pollination", "refinement"
ERROR_FOCUSED, RESEARCH_DRIVEN = "error-focused", "research-driven"
_HARM = -8.0
"""Effect, in rating points, from which on something is left out."""
_COMBINED = 3
"""Packages at most."""
_ATTEMPTS = 8
_REMOVAL = 0.3
"""How often a rule of the base goes: what everybody has is otherwise never put to the test."""
_VARIATION = 0.5
"""How often one parameter is varied beside what is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stock:
    """What is taken over from packages."""

    sections: tuple[SectionChoice, ...]
    base: Parent
    rules: tuple[Rule, ...] = ()
    """Of other packages than the base."""
    dropped: tuple[Rule, ...] = ()
    """Of the base."""

    @property
    def all_rules(self) -> list[Rule]:
        """The base's and the others'."""
        gone = {rule.text for rule in self.dropped}
        return [rule for rule in (*self.base.rules, *self.rules) if rule.text not in gone]


def make_plan(notebook: Notebook, chance: random.Random) -> Plan:
    """A plan for a package unlike any that was read; without any, the library as it is."""
    parents = read_parents(notebook)
    if not parents:
        return default_plan(notebook)
    reports = [report for listed in notebook.errors.values() for report in listed]
    counts = counted(reports)
    if troubles := tool_troubles(notebook.contest):
        counts[Symptom.TOOL] += troubles
    drawing = Drawing(chance=chance, parents=parents, counts=counts, evidence=evidence(reports))
    plan = default_plan(notebook)
    for _ in range(_ATTEMPTS):
        plan = _drawn(notebook, parents, drawing)
        if not _is_known(plan, notebook):
            return plan
    return replace(plan, max_bytes=plan.max_bytes * 3 // 4)


def swapped(rules: Sequence[Rule], new: Sequence[Rule]) -> list[Rule]:
    """Which of the rules go because a new one excludes them."""
    against = frozenset[str]().union(*(rule.opposites for rule in new))
    return [rule for rule in rules if rule.conventions & against]


def _drawn(notebook: Notebook, parents: Sequence[Parent], drawing: Drawing) -> Plan:
    match notebook.strategy:
        case "refinement":
            return _refined(notebook, _taken(parents[:1], parents), drawing)
        case "error-focused":
            return _against_errors(notebook, _taken(_good(parents), parents), drawing)
        case "research-driven" if notebook.papers.strip():
            drawing = replace(drawing, papers=notebook.papers.lower())
            return _extended(notebook, _taken(_good(parents), parents), drawing, sections=2, rules=2)
        case _:
            number = drawing.chance.choice((1, 2))
            return _extended(notebook, _taken(_good(parents), parents), drawing, sections=3 - number, rules=number)


def _good(parents: Sequence[Parent]) -> list[Parent]:
    """The best, and those that do no worse than the mean."""
    mean = fmean(parent.standing for parent in parents)
    return [parent for parent in parents if parent is parents[0] or parent.standing >= mean][:_COMBINED]


def _taken(chosen: Sequence[Parent], parents: Sequence[Parent]) -> _Stock:
    """The union of what packages have, each section as the best of them has it, without what does harm."""
    base = chosen[0]
    sections: dict[str, SectionChoice] = {}
    for parent in chosen:
        for name, section in parent.sections.items():
            if parent is base or section_effect(parents, name) > _HARM:
                choice = SectionChoice(name=name, source=parent.id, parameters=section.parameters)
                sections.setdefault(name, choice)
    if not sections:
        sections[BASIC] = SectionChoice(name=BASIC, source=LIBRARY, parameters=library()[BASIC].parameters)
    harmful = [rule for rule in base.rules if rule.conventions and rule_effect(parents, rule) < _HARM]
    dropped = sorted(harmful, key=lambda rule: rule_effect(parents, rule))[: 1 if len(chosen) > 1 else 0]
    kept = [rule for rule in base.rules if rule not in dropped]
    gone = {rule.key for rule in dropped}
    others = [
        rule
        for parent in chosen[1:]
        for rule in parent.rules
        if rule.key not in gone and rule_effect(parents, rule) > _HARM
    ]
    combined = without_conflicts([*kept, *others])
    return _Stock(
        sections=tuple(sections.values()),
        base=base,
        rules=tuple(rule for rule in combined if rule not in kept),
        dropped=tuple(dropped),
    )


def _extended(notebook: Notebook, stock: _Stock, drawing: Drawing, *, sections: int, rules: int) -> Plan:
    """What was taken over, and something of our own."""
    is_first = not stock.base.is_marked
    if not drawing.papers and drawing.chance.random() < _REMOVAL:
        doubted = drawing.doubted([rule for rule in stock.base.rules if rule not in stock.dropped])
        stock = replace(stock, dropped=(*stock.dropped, *([] if doubted is None else [doubted])))
        drawing = replace(drawing, refused=frozenset() if doubted is None else doubted.conventions)
    added = drawing.new_sections(stock.sections, 4 if is_first else sections)
    new_rules = drawing.new_rules(stock.all_rules, rules)
    present = stock.sections
    if (not added and not new_rules) or drawing.chance.random() < _VARIATION:
        present = _with(present, drawing.varied(present, shrinks=_is_overlong(notebook)))
    return _plan(notebook, stock, present, added, new_rules)


def _against_errors(notebook: Notebook, stock: _Stock, drawing: Drawing) -> Plan:
    """Everything that is added is for the most frequent kind of error."""
    target = commonest(drawing.counts)
    if target is None:
        return _extended(notebook, stock, drawing, sections=1, rules=1)
    names = SECTIONS.get(target, ())
    focused = replace(
        drawing,
        counts=Counter({target: drawing.counts[target]}),
        evidence=evidence(r for listed in notebook.errors.values() for r in listed if target in symptoms_of(r)),
        among=frozenset({*names, *CONVENTIONS.get(target, ())}),
    )
    added = focused.new_sections(stock.sections, 2)
    new_rules = focused.new_rules(stock.all_rules, 2)
    relevant = [choice for choice in stock.sections if choice.name in names]
    present = _with(stock.sections, focused.varied(relevant, shrinks=target is Symptom.TOOL))
    if not added and not new_rules and present == stock.sections:
        return _extended(notebook, stock, drawing, sections=1, rules=1)
    return _plan(notebook, stock, present, added, new_rules)


def _refined(notebook: Notebook, stock: _Stock, drawing: Drawing) -> Plan:
    """The best package with one thing changed."""
    added = drawing.new_sections(stock.sections, 1)
    new_rules = drawing.new_rules(stock.all_rules, 1)
    varied = drawing.varied(stock.sections, shrinks=_is_overlong(notebook))
    removable = [rule for rule in stock.base.rules if rule.conventions]
    kinds = {"section": 1.0 * bool(added), "rule": 1.5 * bool(new_rules), "parameter": 0.7 * (varied is not None),
             "removal": 0.3 * bool(removable)}  # fmt: skip
    if not any(kinds.values()):
        return _plan(notebook, stock, stock.sections, [], [])
    (kind,) = drawing.chance.choices(list(kinds), weights=list(kinds.values()))
    if kind == "section":
        return _plan(notebook, stock, stock.sections, added, [])
    if kind == "rule":
        return _plan(notebook, stock, stock.sections, [], new_rules)
    if kind == "parameter":
        return _plan(notebook, stock, _with(stock.sections, varied), [], [])
    worst = drawing.doubted(removable)
    return _plan(
        notebook, replace(stock, dropped=(*stock.dropped, *([worst] if worst else []))), stock.sections, [], []
    )


def _plan(
    notebook: Notebook,
    stock: _Stock,
    present: Sequence[SectionChoice],
    added: Sequence[SectionChoice],
    new_rules: Sequence[Rule],
) -> Plan:
    """The plan, with the guides to new sections, and without the rules that new ones exclude."""
    gone = [*stock.dropped, *swapped(stock.all_rules, new_rules)]
    guides = [found for choice in added if (found := guide(choice.name)) is not None]
    known = {rule.key for rule in stock.all_rules}
    rules = [
        *(rule for rule in stock.rules if rule not in gone),
        *(g for g in guides if g.key not in known),
        *new_rules,
    ]
    before = {choice.name: choice.parameters for choice in stock.sections}
    changed = [choice.name for choice in present if before.get(choice.name) != choice.parameters]
    own_size = stock.base.max_bytes or usual_bytes(notebook)
    return Plan(
        sections=(*present, *added),
        base=stock.base.id,
        dropped=tuple(rule.text for rule in gone if rule in stock.base.rules),
        rules=tuple(rule.text for rule in rules),
        new_sections=(*changed, *(choice.name for choice in added)),
        new_rules=tuple(rule.text for rule in new_rules),
        max_bytes=min(own_size, usual_bytes(notebook)),
    )


def _with(sections: Sequence[SectionChoice], changed: SectionChoice | None) -> tuple[SectionChoice, ...]:
    """The sections, one of them in another form."""
    if changed is None:
        return tuple(sections)
    return tuple(changed if choice.name == changed.name else choice for choice in sections)


def _is_overlong(notebook: Notebook) -> bool:
    """Whether an analysis of the last contest took more than half of the budget."""
    budget = notebook.token_budget
    return budget is not None and any(entry.tokens > budget / 2 for entry in notebook.contest)


def _is_known(plan: Plan, notebook: Notebook) -> bool:
    """Whether a package that was read is the same."""
    tool, instructions = tool_text(plan, notebook), instructions_text(plan, notebook)
    return any(
        files.get(TOOL_FILE) == tool and files.get(INSTRUCTIONS_FILE) == instructions
        for files in notebook.packages.values()
    )
