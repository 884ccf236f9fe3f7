"""Choices of the placement family that do not depend on whether it can measure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.llm.offline.notebook import Analysis, Notebook
from orchestrator.llm.offline.placement_operators import applicable
from orchestrator.llm.offline.placement_rules import PlacementTask, Rule


def task_of(notebook: Notebook) -> PlacementTask | None:
    """The task's figures; None: it is another kind of task."""
    return PlacementTask.read(notebook.task, notebook.initial_program)


def last_with(analyses: Sequence[Analysis], purpose: str) -> Analysis | None:
    """The latest analysis of a purpose."""
    found = [analysis for analysis in analyses if analysis.setting("purpose") == purpose]
    return found[-1] if found else None


def diagnosis(notebook: Notebook) -> Mapping[str, Any] | None:
    """Result of the island's first look at the initial program; None: there was none."""
    carried = notebook.handoff.get("diagnosis")
    if isinstance(carried, Mapping):
        return carried
    analysis = last_with([*notebook.earlier_analyses, *notebook.analyses], "diagnose")
    return None if analysis is None else analysis.result()


def next_operator(notebook: Notebook, base: Rule | None, chance: random.Random) -> str:
    """A structural change: what is missing yet, in the order that the diagnosis suggests; then any.

    Args:
        notebook: Of the island; islands begin differently.
        base: The rule to change; None: there is none yet but Best Fit.
        chance: Draws among equals.
    """
    suggested = _suggested(diagnosis(notebook) or {})
    if base is None:
        return ("the values alone", *suggested)[notebook.island % 3]
    there = {"a change with time": base.has_fading, "a cost of crowding": bool(base.crowding)}
    missing = [name for name in suggested if not there[name]]
    return missing[0] if missing else chance.choice(applicable(base))


def _suggested(figures: Mapping[str, Any]) -> tuple[str, str]:
    """The first two changes: time first where most capacity is lost in bins that are still open at the end."""
    unfinished = figures.get("unfinished")
    is_about_the_end = isinstance(unfinished, int | float) and unfinished > 0.5
    first, second = "a change with time", "a cost of crowding"
    return (first, second) if is_about_the_end else (second, first)


def summary(rule: Rule) -> str:
    """A rule's structure in words."""
    parts = [f"cost of open room at {len(rule.rooms)} knots"]
    if rule.has_fading:
        parts.append(f"changing with time at {len(rule.shares)} knots")
    if rule.crowding:
        parts.append(f"crowding within {rule.reach} at {len(rule.crowding_rooms)} knots")
    return ", ".join(parts)
