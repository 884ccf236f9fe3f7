"""Dispatching in a shop: which waiting operation starts. Weighted sums of features, fitted in simulations of its own.

A cycle ends with a commit. With analyses it is: let one operator propose terms, try each of them in simulated shops,
fit the weights of the rule with the best ones, accept what holds up on fresh jobs, write it as a program, run the
program itself, commit. Without, it is: the same operators and a random step of all weights, whose size follows from
which commits were improvements. Islands differ in their draws.
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

from orchestrator.llm.offline.dispatching_blind import blind_size, blind_step
from orchestrator.llm.offline.dispatching_choices import known_rules, next_operator, summary, task_of
from orchestrator.llm.offline.dispatching_features import ATTRIBUTES, FEATURES, SHIFTING
from orchestrator.llm.offline.dispatching_operators import FEWER, additions
from orchestrator.llm.offline.dispatching_programs import read_rule, render
from orchestrator.llm.offline.dispatching_rules import MAX_TERMS, DispatchingTask, Rule
from orchestrator.llm.offline.families import Step, commit, rewrite_script, write
from orchestrator.llm.offline.notebook import Analysis, Notebook
from orchestrator.llm.offline.pacing import cycles_so_far, effort_left

_FITS_PER_COMMIT = 2
_GENERATIONS = 4  # of a fit at the first horizon; with all its comparisons 30 to 45 CPU seconds
_OFFSPRING = 24  # that many shops in lock step cost little more than a few
_FIRST_HORIZON, _LAST_HORIZON = 0.4, 0.8  # share of the task's jobs that a simulation has
_RUSH = 0.25  # how much faster the first jobs arrive at the first horizon, so that short simulations are as crowded
_FIRST_STEP_SIZE, _LEAST_STEP_SIZE = 0.2, 0.03  # of a fit's evolution strategy, for weights whose largest is 1
_STEP_SHRINKS = 0.7  # from fit to fit
_ADDITIONS_KEPT = 3
_HOPELESS = 100.0  # of a change of a logarithm: no experiment of ours says that


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a fitting analysis found."""

    rule: Rule
    change: float
    """Of the logarithm of tardiness on fresh jobs, in the mean over the scenarios; negative is better."""
    error: float
    """Its standard error."""
    operator: str

    @property
    def holds_up(self) -> bool:
        """Whether the improvement on fresh jobs is beyond chance."""
        return self.change < -2 * self.error


class DispatchingFamily:
    """See the module."""

    def recognises(self, notebook: Notebook) -> bool:
        """The task describes dispatching, and the best program known is the initial one or one of ours."""
        task = task_of(notebook)
        if task is None:
            return False
        best = notebook.best
        return best is None or best[0] == notebook.initial_program or read_rule(best[0], task) is not None

    def next_step(self, notebook: Notebook, chance: random.Random) -> Step:
        """Fit, check and commit in turn."""
        task = task_of(notebook)
        if task is None:
            msg = "the notebook is of another kind of task"
            raise ValueError(msg)
        if "run_analysis" not in notebook.tools:
            return blind_step(notebook, task, chance)
        last = notebook.analyses[-1] if notebook.analyses else None
        if last is not None and last.setting("purpose") == "check" and last.program == notebook.program:
            return _after_check(notebook, task, last, chance)
        return _after_fits(notebook, task, chance)

    def figures(self, notebook: Notebook) -> dict[str, Any]:
        """How much an analysis may do, the number of cycles, and the size of steps."""
        return {
            "effort": effort_left(notebook),
            "step": blind_size(notebook),
            "fit_step": _step_size(notebook),
            "cycles": cycles_so_far(notebook),
        }


def _fits(notebook: Notebook) -> list[Fit]:
    """Results of this cycle's fits."""
    fits = []
    for analysis in notebook.analyses:
        result = (analysis.result() or {}) if analysis.setting("purpose") == "fit" else {}
        rule = Rule.from_json(result.get("rule"))
        change, error = (_number(result.get(name)) for name in ("change", "error"))
        if rule is not None and change is not None and error is not None:
            fits.append(Fit(rule=rule, change=change, error=error, operator=str(analysis.setting("operator"))))
    return fits


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < _HOPELESS else None


def _after_check(notebook: Notebook, task: DispatchingTask, checked: Analysis, chance: random.Random) -> Step:
    result = checked.result()
    if result is None and notebook.can_analyse and len(notebook.analyses) < 2 * _FITS_PER_COMMIT:
        return _plan(notebook, task, chance, reason="The program did not run the shop as it should; I start over.")
    fits = _fits(notebook)
    if not fits or result is None:
        return Step(text="The check failed; its evaluation will show why.", calls=(commit("Unchecked rule"),))
    fit = min(fits, key=lambda fit: fit.change)
    text = f"The program's tardiness is {result.get('ratio')} of its simulation's on the same jobs. I commit it."
    return Step(text=text, calls=(commit(f"{summary(fit.rule)}; {_in_percent(fit)} on own fresh jobs"),))


def _after_fits(notebook: Notebook, task: DispatchingTask, chance: random.Random) -> Step:
    fits = _fits(notebook)
    tried = sum(analysis.setting("purpose") == "fit" for analysis in notebook.analyses)
    may_fit = tried < _FITS_PER_COMMIT and (notebook.analyses_left is None or notebook.analyses_left >= 2)
    if not any(fit.holds_up for fit in fits) and may_fit:
        reason = "That did not hold up on fresh jobs." if fits else "I change the rule's structure and fit it."
        return _plan(notebook, task, chance, reason=reason)
    if not fits:  # no analysis came to an end: nothing is known, so a blind step is as good as any
        return blind_step(notebook, task, chance)
    best = min(fits, key=lambda fit: fit.change)
    program = render(best.rule, task, "fitted by simulation on jobs drawn from the task's distribution")
    text = f"After {best.operator}: {_in_percent(best)} on fresh jobs."
    if not notebook.can_analyse:
        return Step(text=text, calls=(write(notebook.entry, program), commit(summary(best.rule))))
    settings = {"purpose": "check", "seeds": 1, "size": 0.2}
    text += " I write it down and check it."
    step = _analysis(text, notebook, task, settings, starts=[best.rule], tried=(), chance=chance)
    return Step(text=step.text, calls=(write(notebook.entry, program), *step.calls))


def _in_percent(fit: Fit) -> str:
    change = 100 * math.expm1(fit.change)
    return f"{change:+.2f} % tardiness (standard error {100 * fit.error:.2f})"


def _plan(notebook: Notebook, task: DispatchingTask, chance: random.Random, *, reason: str) -> Step:
    starts = _bases(notebook, task, chance)
    operator = next_operator(starts[0], chance)
    if len(starts) > 1:
        starts.append(starts[0].mixed_with(starts[1]))
    tried = additions(operator, starts[0], chance)
    horizon = min(_LAST_HORIZON, _FIRST_HORIZON + 0.05 * cycles_so_far(notebook))
    step = _step_size(notebook) * chance.uniform(0.7, 1.2)
    settings = {
        "purpose": "fit",
        "operator": operator,
        "step": round(step, 4),
        "offspring": _OFFSPRING,
        "generations": max(2, round(_GENERATIONS * effort_left(notebook) * _FIRST_HORIZON / horizon)),
        "seeds": 2,
        "trial": 1,
        "fresh": 8,
        "size": round(horizon, 2),
        "rush": round(1 + _RUSH * (_LAST_HORIZON - horizon) / (_LAST_HORIZON - _FIRST_HORIZON), 3),
        "additions": min(_ADDITIONS_KEPT, MAX_TERMS - len(starts[0].terms)),
        "drop": int(operator == FEWER),  # the settings are JSON and Python at once
    }
    text = f"{reason} Next: {operator}."
    return _analysis(text, notebook, task, settings, starts=starts, tried=tried, chance=chance)


def _step_size(notebook: Notebook) -> float:
    """Smaller with every fit, as the rules get better; of weights whose largest is 1."""
    carried = notebook.handoff.get("fit_step")
    step = float(carried) if isinstance(carried, int | float) and 0 < carried < 1 else _FIRST_STEP_SIZE
    made = [*notebook.earlier_analyses, *notebook.analyses]
    step *= _STEP_SHRINKS ** sum(analysis.setting("purpose") == "fit" for analysis in made)
    return max(_LEAST_STEP_SIZE, step)


def _bases(notebook: Notebook, task: DispatchingTask, chance: random.Random) -> list[Rule]:
    """Rules to continue from: the best by evaluation, the one at hand, and one of the other good ones."""
    known = known_rules(notebook, task)
    at_hand = read_rule(notebook.program, task)
    rules = [*known[:1], *([] if at_hand is None else [at_hand])]
    if len(known) > 2:
        rules.append(chance.choice(known[1:5]))
    return list(dict.fromkeys(rules)) or [Rule.shortest()]


def _analysis(
    text: str,
    notebook: Notebook,
    task: DispatchingTask,
    settings: Mapping[str, Any],
    *,
    starts: Sequence[Rule],
    tried: Sequence[tuple[str, ...]],
    chance: random.Random,
) -> Step:
    weight = settings.get("step")
    script = Template(_template()).substitute(
        task=json.dumps(task.as_json()),
        settings=json.dumps({**settings, "seed": chance.getrandbits(48)}),
        starts=json.dumps([rule.as_json() for rule in starts]),
        additions=json.dumps([[weight, *factors] for factors in tried]),
        features=_features(),
        names=json.dumps(list(FEATURES)),
        shifting=json.dumps(SHIFTING),
        attributes=json.dumps(ATTRIBUTES),
        function=task.function,
        module=notebook.entry.removesuffix(".py").replace("/", "."),
    )
    return Step(text=text, calls=(*rewrite_script(notebook, script), ("run_analysis", {})))


@cache
def _features() -> str:
    """The features as functions of what they are computed from."""
    parts = [
        f"def {name}({', '.join(feature.inputs)}):\n    return {feature.expression}\n\n"
        for name, feature in FEATURES.items()
    ]
    return "\n".join(parts)


@cache
def _template() -> str:
    shops, experiments = (
        files(__package__).joinpath("templates", f"dispatching_{name}.py.txt").read_text("utf-8")
        for name in ("shops", "analysis")
    )
    return experiments.replace("$shops\n", shops)
