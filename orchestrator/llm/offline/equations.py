"""Symbolic regression: sums of terms from a grammar, searched for and fitted in analyses.

An island runs the analysis of `templates/equations_*.py.txt` with one family of terms after another, with errors as
they are or relative to an input, until a model is as exact as the rounding of the data allows. What it commits lies on
the front of error against size: the smallest exact equation first, then smaller ones; while nothing is exact, the best
so far. Without analyses it draws structures from the same grammar. Islands differ in the order of families and in their
draws.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from orchestrator.llm.offline.equations_blind import blind_step
from orchestrator.llm.offline.equations_programs import read_equation, render, summary, written
from orchestrator.llm.offline.equations_terms import Equation, EquationTask
from orchestrator.llm.offline.families import Step, commit, rewrite_script, write
from orchestrator.llm.offline.notebook import Analysis, Notebook

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "terms without adjustable values": (),
    "rates and shifts": ("rates", "shifts"),
    "waves": ("waves",),
    "powers": ("powers",),
    "products of adjustable factors": ("compounds",),
    "all factors": ("powers", "rates", "shifts", "waves"),
}
"""What an analysis draws terms from beside those without adjustable values, as `equations_search.py.txt` names it."""
_IMPROVEMENTS = 2  # analyses that start from the best equations, after all families had their turn
_ANALYSES_PER_COMMIT = 3  # while nothing is exact
_SMALLER_COMMITS = 3  # of the front below the exact equation
_MAX_COMMITS, _MAX_BLIND_COMMITS = 10, 30
_WORST = 1e6  # NMSE; more is no result
_PARTS = ("forms", "search", "finish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An equation that an analysis found."""

    equation: Equation
    nmse: float
    is_exact: bool
    nodes: int


class EquationFamily:
    """See the module."""

    def recognises(self, notebook: Notebook) -> bool:
        """The task looks for an equation, and the best program known is the initial one or one of ours."""
        task = _task_of(notebook)
        if task is None:
            return False
        best = notebook.best
        return best is None or best[0] == notebook.initial_program or read_equation(best[0], task) is not None

    def next_step(self, notebook: Notebook, chance: random.Random) -> Step:
        """Search, and commit what lies on the front."""
        task = _task_of(notebook)
        if task is None:
            msg = "the notebook is of another kind of task"
            raise ValueError(msg)
        made = _carried(notebook, "commits") + len(notebook.commits)
        if made >= (_MAX_COMMITS if "run_analysis" in notebook.tools else _MAX_BLIND_COMMITS):
            return Step(text=f"{made} commits are enough: what there is to find for me is found. I end my turn.")
        if "run_analysis" not in notebook.tools:
            return blind_step(notebook, task, chance)
        found = _found(notebook, task)
        waiting = _waiting(notebook, found)
        plan_length = 2 * len(FAMILIES) + _IMPROVEMENTS
        is_over = any(model.is_exact for model in found) or _analyses_made(notebook) >= plan_length
        if waiting and (is_over or len(notebook.analyses) >= _ANALYSES_PER_COMMIT or not notebook.can_analyse):
            return _commit(notebook, task, waiting[0])
        if is_over:
            return Step(text="The front of error against size is committed, and my families are tried. I end my turn.")
        if not notebook.can_analyse:
            return blind_step(notebook, task, chance)
        return _analysis(notebook, task, found, chance)

    def figures(self, notebook: Notebook) -> dict[str, Any]:
        """The best equations found, what is committed of them, and how many analyses and commits there were."""
        task = _task_of(notebook)
        found = [] if task is None else _found(notebook, task)
        return {
            "analyses": _analyses_made(notebook),
            "commits": _carried(notebook, "commits") + len(notebook.commits),
            "effort": _effort(notebook),
            "models": [
                {"terms": model.equation.as_json(), "nmse": model.nmse, "exact": model.is_exact}
                for model in _front(found)
            ],
            "written": sorted(_written(notebook)),
        }


def _task_of(notebook: Notebook) -> EquationTask | None:
    return EquationTask.read(notebook.task, notebook.initial_program)


def _carried(notebook: Notebook, name: str) -> int:
    value = notebook.handoff.get(name)
    return value if type(value) is int and value >= 0 else 0


def _all_analyses(notebook: Notebook) -> list[Analysis]:
    return [*notebook.earlier_analyses, *notebook.analyses]


def _analyses_made(notebook: Notebook) -> int:
    return _carried(notebook, "analyses") + len(_all_analyses(notebook))


def _effort(notebook: Notebook) -> float:
    """Share of the usual beam: halved by every analysis that did not end."""
    carried = notebook.handoff.get("effort")
    effort = float(carried) if isinstance(carried, int | float) and 0 < carried <= 1 else notebook.effort
    unfinished = sum(analysis.ending not in {"ok", "error"} for analysis in _all_analyses(notebook))
    return float(max(effort * 0.5**unfinished, 1 / 64))


def _found(notebook: Notebook, task: EquationTask) -> list[Found]:
    """Equations of all analyses that the task allows, the best first."""
    documents: list[object] = [notebook.handoff.get("models")]
    documents += [(analysis.result() or {}).get("models") for analysis in _all_analyses(notebook)]
    entries = [entry for rows in documents if isinstance(rows, list) for entry in rows if isinstance(entry, Mapping)]
    found = {}
    for entry in entries:
        equation, nmse = Equation.from_json(entry.get("terms"), task), entry.get("nmse")
        if equation is None or not isinstance(nmse, int | float) or not 0 <= nmse < _WORST:
            continue
        text = written(equation, task)
        if text.fits(task):
            is_exact = entry.get("exact") is True
            found[equation] = Found(equation=equation, nmse=float(nmse), is_exact=is_exact, nodes=text.nodes)
    return sorted(found.values(), key=lambda model: (model.nmse, model.nodes, str(model.equation)))


def _front(found: Sequence[Found]) -> list[Found]:
    """Those that are better than all that are no larger, the best first; exact ones are equally good."""
    exact = [model for model in found if model.is_exact]
    smallest = min(exact, key=lambda model: model.nodes, default=None)
    front: list[Found] = []
    for model in sorted(found, key=lambda model: (model.nodes, model.nmse)):
        is_needless = smallest is not None and model.nodes >= smallest.nodes and model != smallest
        if not is_needless and (not front or model.nmse < front[-1].nmse):
            front.append(model)
    return front[::-1]


def _written(notebook: Notebook) -> set[str]:
    """Equations that were committed, by their text."""
    task = _task_of(notebook)
    carried = notebook.handoff.get("written")
    texts = {text for text in carried if isinstance(text, str)} if isinstance(carried, list) else set()
    equations = [] if task is None else [read_equation(made.program, task) for made in notebook.commits]
    return texts | {json.dumps(equation.as_json()) for equation in equations if equation is not None}


def _waiting(notebook: Notebook, found: Sequence[Found]) -> list[Found]:
    """What is worth a commit now: of the front, the best and a few smaller ones."""
    done = _written(notebook)
    return [m for m in _front(found)[: 1 + _SMALLER_COMMITS] if json.dumps(m.equation.as_json()) not in done]


def _commit(notebook: Notebook, task: EquationTask, model: Found) -> Step:
    error = f"{model.nmse:.3g}"
    kind = "exact up to the rounding of the data" if model.is_exact else f"NMSE {error}"
    text = f"{model.nodes} nodes, NMSE {error} on the training data{', which is exact' * model.is_exact}. I commit it."
    program = render(model.equation, task, f"found by sparse regression, NMSE {error} in the analysis")
    calls = (write(notebook.entry, program), commit(f"{summary(model.equation)}; {model.nodes} nodes, {kind}"))
    return Step(text=text, calls=calls)


def _analysis(notebook: Notebook, task: EquationTask, found: Sequence[Found], chance: random.Random) -> Step:
    made, effort = _analyses_made(notebook), _effort(notebook)
    names = list(FAMILIES)
    improves = made >= 2 * len(names)
    name = names[-1] if improves else names[(made + 2 * notebook.island) % len(names)]
    is_relative = (made + notebook.island + made // len(names)) % 2 == 1
    settings = {
        "purpose": "search",
        "families": FAMILIES[name],
        "relative_to": chance.randrange(len(task.inputs)) if is_relative else -1,
        "seed": chance.getrandbits(48),
        "rows": 500,
        "depth": 5,
        "width": max(10, int(200 * effort)),
        "branch": max(8, int(30 * effort)),
        "fits": max(5, int(60 * effort)),
        "evaluations": 15,
        "frequencies": max(40, int(160 * effort)),
        "draws": max(100, int(3000 * effort)),
        "nodes": task.max_nodes + 3,
        "price": 0.12,
        "kept": 6,
    }
    starts = _starts(notebook, task, found) if improves else []
    script = "\n\n".join(_template(part) for part in _PARTS)
    script = Template(script).substitute(
        settings=json.dumps(settings),
        starts=json.dumps([equation.as_json() for equation in starts]),
        data=task.data,
    )
    text = f"I search among {name}{', starting from the best equations' * bool(starts)}."
    return Step(text=text, calls=(*rewrite_script(notebook, script), ("run_analysis", {})))


def _starts(notebook: Notebook, task: EquationTask, found: Sequence[Found]) -> list[Equation]:
    """The best equations of the analyses, and the best of all programs known."""
    ranked = sorted(notebook.programs, key=lambda id_: -notebook.scores.get(id_, -math.inf))
    known = [read_equation(notebook.programs[id_], task) for id_ in ranked[:2]]
    models = [model.equation for model in found[:2]] + [equation for equation in known if equation is not None]
    return list(dict.fromkeys(models))


@cache
def _template(part: str) -> str:
    return files(__package__).joinpath("templates", f"equations_{part}.py.txt").read_text("utf-8")
