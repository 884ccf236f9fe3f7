"""Online placement: which bin takes an item. Rules by the cost of what stays open, fitted on sequences of its own.

A cycle ends with a commit. With analyses it is: change the structure of the best known rule by one operator, fit its
values on sequences drawn from the distribution that the task describes, accept what holds up on a fresh set, write it
as a program, check the program itself, commit. Without, it is: the same operators and a random step of all values,
whose size follows from which commits were improvements. Islands differ in their knots, in the order of operators and
in their draws.
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

from orchestrator.llm.offline.families import Step, commit, rewrite_script, write
from orchestrator.llm.offline.notebook import Analysis, Notebook
from orchestrator.llm.offline.pacing import cycles_so_far, effort_left
from orchestrator.llm.offline.placement_blind import blind_size, blind_step
from orchestrator.llm.offline.placement_choices import diagnosis, next_operator, summary, task_of
from orchestrator.llm.offline.placement_operators import OPERATORS, applicable
from orchestrator.llm.offline.placement_programs import read_rule, render
from orchestrator.llm.offline.placement_rules import PlacementTask, Rule

_FITS_PER_COMMIT = 2
_ROWS_PER_FIT = 60_000  # sequences packed, over all offspring and generations, in a first fit: about 5 CPU seconds
_FIRST_STEP_SIZE, _LEAST_STEP_SIZE = 0.06, 0.008  # of a fit's evolution strategy, for values that span 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a fitting analysis found."""

    rule: Rule
    before: float
    """Excess in percent on the fresh set, at the start."""
    after: float
    error: float
    """Standard error of the difference."""
    operator: str

    @property
    def holds_up(self) -> bool:
        """Whether the improvement on the fresh set is beyond chance."""
        return self.after < self.before - 2 * self.error


class PlacementFamily:
    """See the module."""

    def recognises(self, notebook: Notebook) -> bool:
        """The task describes online placement, and the best program known is the initial one or one of ours."""
        task = task_of(notebook)
        if task is None:
            return False
        best = notebook.best
        return best is None or best[0] == notebook.initial_program or read_rule(best[0], task) is not None

    def next_step(self, notebook: Notebook, chance: random.Random) -> Step:
        """Diagnose once, then fit, check and commit in turn."""
        task = task_of(notebook)
        if task is None:
            msg = "the notebook is of another kind of task"
            raise ValueError(msg)
        if "run_analysis" not in notebook.tools:
            return blind_step(notebook, task, chance)
        if diagnosis(notebook) is None and not notebook.analyses and notebook.can_analyse:
            settings = {"purpose": "diagnose", "sequences": 60}
            return _analysis("Where does the program at hand lose capacity?", notebook, task, settings, [], chance)
        last = notebook.analyses[-1] if notebook.analyses else None
        if last is not None and last.setting("purpose") == "check" and last.program == notebook.program:
            return _after_check(notebook, task, last, chance)
        return _after_fits(notebook, task, chance)

    def figures(self, notebook: Notebook) -> dict[str, Any]:
        """The diagnosis, how much an analysis may do, and the size of blind steps."""
        return {
            "diagnosis": diagnosis(notebook),
            "effort": effort_left(notebook),
            "step": blind_size(notebook),
            "cycles": cycles_so_far(notebook),
        }


def _fits(notebook: Notebook, task: PlacementTask) -> list[Fit]:
    """Results of this cycle's fits."""
    fits = []
    for analysis in notebook.analyses:
        result = (analysis.result() or {}) if analysis.setting("purpose") == "fit" else {}
        rule = Rule.from_json(result.get("rule"), task)
        figures = [result.get(name) for name in ("before", "after", "error")]
        if rule is not None and all(isinstance(value, int | float) and math.isfinite(value) for value in figures):
            before, after, error = (float(str(value)) for value in figures)
            operator = str(analysis.setting("operator"))
            fits.append(Fit(rule=rule, before=before, after=after, error=error, operator=operator))
    return fits


def _after_check(notebook: Notebook, task: PlacementTask, checked: Analysis, chance: random.Random) -> Step:
    result = checked.result()
    if result is None and notebook.can_analyse and len(notebook.analyses) < 2 * _FITS_PER_COMMIT:
        return _plan(
            notebook, task, chance, reason="The program did not pack the sequences as it should; I start over."
        )
    fits = _fits(notebook, task)
    if not fits or result is None:
        return Step(text="The check failed; its evaluation will show why.", calls=(commit("Unchecked rule"),))
    fit = min(fits, key=lambda fit: fit.after)
    excess, simulated = result.get("excess"), result.get("simulated")
    text = f"The program itself has {excess} % on fresh sequences, its simulation {simulated} %. I commit it."
    return Step(text=text, calls=(commit(f"{summary(fit.rule)}; {fit.after:.2f} % on own fresh sequences"),))


def _after_fits(notebook: Notebook, task: PlacementTask, chance: random.Random) -> Step:
    fits = _fits(notebook, task)
    tried = sum(analysis.setting("purpose") == "fit" for analysis in notebook.analyses)
    may_fit = tried < _FITS_PER_COMMIT and (notebook.analyses_left is None or notebook.analyses_left >= 2)
    if not any(fit.holds_up for fit in fits) and may_fit:
        reason = "That did not hold up on fresh sequences." if fits else "I change the rule's structure and fit it."
        return _plan(notebook, task, chance, reason=reason)
    if not fits:  # no analysis came to an end: nothing is known, so a blind step is as good as any
        return blind_step(notebook, task, chance)
    best = min(fits, key=lambda fit: fit.after)
    program = render(best.rule, task, "fitted by simulation on sequences drawn from the task's distribution")
    text = f"After {best.operator}: {best.before:.3f} % before, {best.after:.3f} % after on a fresh set."
    if not notebook.can_analyse:
        return Step(text=text, calls=(write(notebook.entry, program), commit(summary(best.rule))))
    settings = {"purpose": "check", "sequences": 100}
    step = _analysis(text + " I write it down and check it.", notebook, task, settings, [best.rule], chance)
    return Step(text=step.text, calls=(write(notebook.entry, program), *step.calls))


def _plan(notebook: Notebook, task: PlacementTask, chance: random.Random, *, reason: str) -> Step:
    bases = _bases(notebook, task, chance)
    operator = next_operator(notebook, bases[0] if bases else None, chance)
    starts = bases or [Rule.best_fit(task, chance)]
    starts = [OPERATORS[operator](rule, task, chance) if operator in applicable(rule) else rule for rule in starts]
    if len(starts) > 1:
        starts.append(starts[0].mixed_with(starts[1]))
    starts = [rule.with_values(lambda value: round(value, 6)) for rule in starts]
    size = max(rule.size for rule in starts)
    offspring = 4 + int(3 * math.log(size))
    depth = min(4.0, 1 + cycles_so_far(notebook) / 4)  # the better the rule, the finer the differences that matter
    sequences = int(60 * depth)
    rows = _ROWS_PER_FIT * effort_left(notebook) * min(1.5, depth)
    settings = {
        "purpose": "fit",
        "operator": operator,
        "step": round(_step_size(notebook) * chance.uniform(0.7, 1.2), 4),
        "offspring": offspring,
        "generations": max(2, int(rows / (1.5 * offspring * sequences))),
        "sequences": sequences,
        "trial": 400,
        "fresh": 2000,
    }
    return _analysis(f"{reason} Next: {settings['operator']}.", notebook, task, settings, starts, chance)


def _step_size(notebook: Notebook) -> float:
    """Where the last fit of this conversation ended; of values that span 1."""
    for analysis in reversed([*notebook.earlier_analyses, *notebook.analyses]):
        step = (analysis.result() or {}).get("step")
        if isinstance(step, int | float) and 0 < step < 1:
            return min(_FIRST_STEP_SIZE, max(_LEAST_STEP_SIZE, float(step)))
    return _FIRST_STEP_SIZE


def _bases(notebook: Notebook, task: PlacementTask, chance: random.Random) -> list[Rule]:
    """Rules to continue from: the one at hand, the best by evaluation, and one of the other good ones."""
    ranked = sorted(notebook.programs, key=lambda id_: -notebook.scores.get(id_, -math.inf))
    texts = [notebook.program, *(notebook.programs[id_] for id_ in ranked[:1])]
    if len(ranked) > 2:
        texts.append(notebook.programs[chance.choice(ranked[1:5])])
    rules = [read_rule(text, task) for text in texts]
    return list(dict.fromkeys(rule for rule in rules if rule is not None))


def _analysis(
    text: str,
    notebook: Notebook,
    task: PlacementTask,
    settings: Mapping[str, Any],
    starts: Sequence[Rule],
    chance: random.Random,
) -> Step:
    script = Template(_template()).substitute(
        task=json.dumps(task.as_json()),
        settings=json.dumps({**settings, "seed": chance.getrandbits(48)}),
        starts=json.dumps([rule.as_json() for rule in starts]),
        function=task.function,
        module=notebook.entry.removesuffix(".py").replace("/", "."),
    )
    return Step(text=text, calls=(*rewrite_script(notebook, script), ("run_analysis", {})))


@cache
def _template() -> str:
    return files(__package__).joinpath("templates", "placement_analysis.py.txt").read_text("utf-8")
