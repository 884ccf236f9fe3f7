"""How `sql bench` and `sql sweep` end: what went wrong in words, and the exit code of what did not."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from orchestrator.cli.terminal import Terminal
from orchestrator.errors import BudgetExhausted, Cancelled, EvolvariumError, RunStateError


def exit_as(terminal: Terminal, *, gold_disagreeing: Sequence[str], state: str) -> None:
    """End the command with another exit code than 0, where its figures ask for it.

    Args:
        terminal: Told why.
        gold_disagreeing: Ids of questions whose gold query is not right when it is judged like a prediction.
        state: Of the run.
    """
    if gold_disagreeing:
        few = ", ".join(gold_disagreeing[:5])
        terminal.note(
            f"the gold queries of {len(gold_disagreeing)} questions ({few}) are not right when they are "
            "judged like predictions; the figures cannot be trusted until you know why, or leave them out"
        )
        raise typer.Exit(1)
    if state == "budget-spent":
        terminal.note("the budget did not cover every step of every question (it is divided equally among them)")
        raise typer.Exit(BudgetExhausted.exit_code)


def explained(error: EvolvariumError, started: Sequence[str]) -> EvolvariumError:
    """The error as it concerns the run, with what to do now.

    Args:
        error: That ended the work.
        started: Id of the run, once it can be resumed.
    """
    if isinstance(error, Cancelled):
        if not started:
            return Cancelled("stopped before the run began or went on; nothing was lost")
        return Cancelled(f"run {started[0]} was stopped and is kept; continue it with `evolvarium resume {started[0]}`")
    if not started or isinstance(error, RunStateError):
        return error
    return type(error)(f"{error}; the run is kept: continue it with `evolvarium resume {started[0]}`")
