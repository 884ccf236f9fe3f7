"""How far a search has come, and how large its next step is; what families that fit rules have in common."""

from __future__ import annotations

import math

from orchestrator.llm.offline.notebook import Notebook

_MOST_CARRIED_CYCLES = 1000


def effort_left(notebook: Notebook) -> float:
    """Share of the usual iterations that an analysis may spend: halved by every fit that did not end."""
    carried = notebook.handoff.get("effort")
    effort = float(carried) if isinstance(carried, int | float) and 0 < carried <= 1 else notebook.effort
    for analysis in [*notebook.earlier_analyses, *notebook.analyses]:
        if analysis.setting("purpose") == "fit" and analysis.ending not in {"ok", "error"}:
            effort /= 2
    return max(effort, 1 / 64)


def cycles_so_far(notebook: Notebook) -> int:
    """Own commits, those of predecessors included; a handoff that says what cannot be counts as none."""
    carried = notebook.handoff.get("cycles")
    return len(notebook.commits) + (carried if type(carried) is int and 0 <= carried < _MOST_CARRIED_CYCLES else 0)


def blind_step_size(notebook: Notebook, *, first: float, least: float, most: float) -> float:
    """Step size by the 1/5 rule (Rechenberg 1973): larger after an improvement, a little smaller otherwise.

    Args:
        notebook: With the commits that decide.
        first: Size of the first step; positive.
        least: The result is not below this.
        most: Nor above this.
    """
    carried = notebook.handoff.get("step")
    size = float(carried) if isinstance(carried, int | float) and 0 < carried < 1 else first
    best = -math.inf if notebook.initial_fitness is None else notebook.initial_fitness
    for made in notebook.commits:
        is_better = made.fitness is not None and made.fitness > best
        size *= 1.5 if is_better else 1.5**-0.25
        best = max(best, made.fitness) if made.fitness is not None else best
    return min(most, max(least, size))
