"""What a draft becomes after Deep Focus: what made errors of its own goes, and something against the others' comes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE, REASONING_FILE
from orchestrator.llm.offline.evolver.cues import evidence
from orchestrator.llm.offline.evolver.drawing import Drawing
from orchestrator.llm.offline.evolver.mending import COSTLY
from orchestrator.llm.offline.evolver.notebook import TOOL_FILE, Notebook
from orchestrator.llm.offline.evolver.parents import read_parents
from orchestrator.llm.offline.evolver.planning import swapped
from orchestrator.llm.offline.evolver.plans import (
    DRAFT,
    LEAST_BYTES,
    LIBRARY,
    Plan,
    SectionChoice,
    default_plan,
    read_plan,
    usual_bytes,
)
from orchestrator.llm.offline.evolver.reports import Focus
from orchestrator.llm.offline.evolver.rules import Rule, guide, read_rules
from orchestrator.llm.offline.evolver.sections import cut_sections, library, written_bytes
from orchestrator.llm.offline.evolver.symptoms import CONVENTIONS, counted

_RULE_SHARE = 0.6
"""How often a rule is added, rather than a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """Another plan, and why."""

    plan: Plan
    reasons: tuple[str, ...]


def revise(notebook: Notebook, chance: random.Random) -> Revision | None:
    """A revision of the draft after the last Deep Focus message; None: it is to stay as it is."""
    if not notebook.focus:
        return None
    focus = notebook.focus[-1]
    current = _current(notebook)
    if focus.failures:
        return _mended(current, focus, notebook)
    is_worse = _is_worse(focus)
    if not is_worse and not focus.consensus_errors and not focus.unique_errors:
        return None
    loses = is_worse or len(focus.unique_errors) > len(focus.unique_successes)
    undone = _undone(current, focus, notebook) if loses else None
    return _extended(undone or Revision(plan=current, reasons=()), notebook, focus, chance)


def _current(notebook: Notebook) -> Plan:
    """A plan whose package is the draft as it is."""
    before = read_plan(notebook.draft.get(REASONING_FILE, "")) or default_plan(notebook)
    tool = notebook.draft.get(TOOL_FILE, "")
    sections = tuple(
        SectionChoice(name=section.name, source=DRAFT, parameters=section.parameters)
        for section in cut_sections(tool).values()
    )
    return replace(
        before,
        sections=sections or before.sections,
        base=DRAFT,
        dropped=(),
        rules=(),
        max_bytes=written_bytes(tool) or usual_bytes(notebook),
    )


def _is_worse(focus: Focus) -> bool:
    """Whether somebody else did better on the same questions."""
    own, other = focus.own, focus.best_other
    if own is not None and other is not None and own != other:
        return own < other
    return len(focus.unique_errors) > len(focus.unique_successes)


def _mended(plan: Plan, focus: Focus, notebook: Notebook) -> Revision:
    """Shorter, or without what is new or costly; foreign sections give way to the library's."""
    is_long = any("over-budget" in failure for failure in focus.failures.values())
    size = max(LEAST_BYTES, min(plan.max_bytes, usual_bytes(notebook)) // 2) if is_long else plan.max_bytes
    own = {choice.name: choice for choice in plan.sections}
    if not is_long:
        new = plan.new_sections or tuple(name for name in COSTLY if name in own)[:1]
        own = {n: replace(c, source=LIBRARY) for n, c in own.items() if n in library() and n not in new}
    own.setdefault("size_adaptation", _library_choice("size_adaptation"))
    own.setdefault("ddl", _library_choice("ddl"))
    listed = ", ".join(sorted(focus.failures))
    change = "it becomes shorter" if is_long else "what was new in it goes, or else what costs most"
    reason = f"The analysis was of no use on {listed}: {change}."
    return Revision(plan=replace(plan, sections=tuple(own.values()), max_bytes=size), reasons=(reason,))


def _undone(plan: Plan, focus: Focus, notebook: Notebook) -> Revision | None:
    """Without the new rules that the draft's own errors can come from, or without all of them if it only did worse.

    Rules that had made room for them come back.
    """
    new = [rule for text in plan.new_rules for rule in read_rules(text)]
    found = counted(focus.unique_errors)
    blamed = [rule for rule in new if any(rule.conventions & set(CONVENTIONS.get(symptom, ())) for symptom in found)]
    if not blamed and _is_worse(focus):
        blamed = new
    if not blamed:
        return None
    kinds = ", ".join(f"{symptom.value} ({count})" for symptom, count in sorted(found.items())) or "none of its own"
    reasons = [f"Its own errors: {kinds}. Therefore this goes: {rule.text.lstrip('-* ')}" for rule in blamed]
    gone = tuple(rule.text for rule in blamed)
    left = tuple(text for text in plan.new_rules if text not in gone)
    before = read_plan(notebook.draft.get(REASONING_FILE, ""))
    room_made = [rule for text in (before.dropped if before else ()) for rule in read_rules(text)]
    back = tuple(rule.text for rule in swapped(room_made, blamed))
    return Revision(plan=replace(plan, dropped=gone, rules=back, new_rules=left), reasons=tuple(reasons))


def _extended(before: Revision, notebook: Notebook, focus: Focus, chance: random.Random) -> Revision:
    """With one rule or one section against what is still wrong."""
    plan = before.plan
    rules = read_rules(notebook.draft.get(INSTRUCTIONS_FILE, ""))
    refused = frozenset(rule.key for rule in _tried(notebook) if rule.key not in {other.key for other in rules})
    gone = frozenset(rule.key for text in plan.dropped for rule in read_rules(text))
    errors = [*focus.consensus_errors, *focus.unique_errors]
    counts = counted(errors)
    drawing = Drawing(
        chance=chance,
        parents=read_parents(notebook),
        counts=counts,
        evidence=evidence(errors),
        refused=refused | gone,
    )
    back = [rule for text in plan.rules for rule in read_rules(text)]
    kept = [*(rule for rule in rules if rule.text not in plan.dropped), *back]
    new_rules = drawing.new_rules(kept, 1)
    added = drawing.new_sections(plan.sections, 1)
    if new_rules and (not added or chance.random() < _RULE_SHARE):
        added = []
    else:
        new_rules = []
    kinds = ", ".join(f"{symptom.value} ({count})" for symptom, count in counts.most_common(3)) or "none"
    comes = [*(rule.text.lstrip("-* ") for rule in new_rules), *(f"section {choice.name}" for choice in added)]
    reasons = [*before.reasons, *(f"Errors that remain: {kinds}. Therefore this comes: {text}" for text in comes)]
    guides = [found for choice in added if (found := guide(choice.name)) is not None]
    return Revision(
        plan=replace(
            plan,
            sections=(*plan.sections, *added),
            dropped=(*plan.dropped, *(rule.text for rule in swapped(kept, new_rules))),
            rules=(*plan.rules, *(rule.text for rule in _unknown([*guides, *new_rules], kept))),
            new_sections=(*plan.new_sections, *(choice.name for choice in added)),
            new_rules=(*plan.new_rules, *(rule.text for rule in new_rules)),
        ),
        reasons=tuple(reasons),
    )


def _unknown(rules: Sequence[Rule], known: Sequence[Rule]) -> list[Rule]:
    keys = {rule.key for rule in known}
    return [rule for rule in rules if rule.key not in keys]


def _tried(notebook: Notebook) -> list[Rule]:
    """Rules of the revisions that were not kept."""
    return [rule for files in notebook.rejected for rule in read_rules(files.get(INSTRUCTIONS_FILE, ""))]


def _library_choice(name: str) -> SectionChoice:
    return SectionChoice(name=name, source=LIBRARY, parameters=library()[name].parameters)
