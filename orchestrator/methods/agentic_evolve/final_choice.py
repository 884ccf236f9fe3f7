"""The candidate that a run ends with, by the rule of its task or by another one."""

from __future__ import annotations

from typing import Any

from orchestrator.errors import InputError, RunStateError
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.history import History
from orchestrator.search.final_choice import Measured, Rule, choose


def rule_of(history: History) -> Rule:
    """The rule that the task had when the run began.

    Raises:
        RunStateError: The record is damaged.
    """
    declared = _declared(history)
    return Rule.FITNESS if declared is None else Rule(declared["rule"])


def named_entry(history: History, run_id: str, entry_id: str) -> Entry:
    """A candidate by id.

    Raises:
        RunStateError: The run has none of this id; the message names its last ones.
    """
    every = {entry.id: entry for entry in (history.initial, *history.commits) if entry is not None}
    if entry_id not in every:
        known = ", ".join(list(every)[-5:]) or "none yet"
        msg = f"run {run_id!r} has no candidate {entry_id!r}; its last ones are: {known}"
        raise RunStateError(msg)
    return every[entry_id]


def final_entry(history: History, rule: Rule | None = None) -> Entry | None:
    """The candidate that a rule takes.

    Args:
        history: Complete or not.
        rule: None: the task's.

    Returns:
        None: no candidate has a score.

    Raises:
        InputError: The task declares no error and no size, which the rule needs.
        RunStateError: The record is damaged.
    """
    chosen = rule or rule_of(history)
    if chosen is Rule.FITNESS:
        return history.best
    declared = _declared(history)
    if declared is None:
        msg = (
            f"task {history.header['task']['name']!r} declares no error and no size, which the rule {chosen.value!r} "
            "chooses by; leave out --choice"
        )
        raise InputError(msg)
    scored = [(entry, entry.verdict.metrics) for entry in history.candidates if entry.verdict.metrics is not None]
    try:
        measured = [Measured(error=m[declared["error"]], size=m[declared["size"]]) for _, m in scored]
    except KeyError as error:
        msg = f"a verdict lacks the metric {error.args[0]!r}; restore the run from a copy, or remove it"
        raise RunStateError(msg) from error
    place = choose(chosen, measured)
    return None if place is None else scored[place][0]


def _declared(history: History) -> dict[str, Any] | None:
    declared = history.header["task"].get("final_choice")
    if declared is None:
        return None
    parts = [declared.get(part) for part in ("rule", "error", "size")] if isinstance(declared, dict) else [None]
    if not all(isinstance(part, str) for part in parts) or parts[0] not in {rule.value for rule in Rule}:
        msg = "the record of 'run' is damaged (task.final_choice); restore the run from a copy, or remove it"
        raise RunStateError(msg)
    return dict(declared)
