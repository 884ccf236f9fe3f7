"""How `sql bench` and `sql sweep` end: what went wrong in words, and the exit code of what did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import exists, run_store
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import BudgetExhausted, Cancelled, EvolvariumError, ModelUnavailable, RunStateError


@contextmanager
def explaining(places: Places) -> Iterator[Callable[[str], None]]:
    """Within the block, an error says what became of the run and what to do now.

    Args:
        places: Hold the run.

    Yields:
        Takes the run's id, once it can be resumed.

    Raises:
        EvolvariumError: That of the block, explained.
    """
    started: list[str] = []
    try:
        yield started.append
    except EvolvariumError as error:
        told = explained(error, started, is_kept=bool(started) and exists(run_store(places), started[0]))
        if told is error:
            raise
        raise told from error


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
        terminal.note(
            "the budget did not cover every step of every question (it is divided equally among them): what it did not "
            "reach counts as wrong, so these figures say little of the methods. They are final, for resuming "
            "a run does not raise its budget: start a new one with more, or ask fewer with --limit"
        )
        raise typer.Exit(BudgetExhausted.exit_code)


def explained(error: EvolvariumError, started: Sequence[str], *, is_kept: bool) -> EvolvariumError:
    """The error as it concerns the run, with what to do now.

    Args:
        error: That ended the work.
        started: Id of the run, once it can be resumed.
        is_kept: Whether it is still there.
    """
    if isinstance(error, Cancelled):
        if not started:
            return Cancelled("stopped before the run began or went on; nothing was lost")
        return Cancelled(f"run {started[0]} was stopped and is kept; continue it with `evolvarium resume {started[0]}`")
    if not started or isinstance(error, RunStateError):
        return error
    if not is_kept:
        return type(error)(f"{error}; nothing was recorded of the run, so none is kept: start it again")
    if started[0] in str(error):  # it says already what there is to do
        return error
    return kept(error, started[0])


def kept(error: EvolvariumError, run_id: str) -> EvolvariumError:
    """The error with what there is to do about a run that is kept.

    Args:
        error: That ended it.
        run_id: Of the run.
    """
    if isinstance(error, ModelUnavailable):
        way_out = (
            f"run {run_id} is paused and nothing of it is lost: `evolvarium resume {run_id}` goes on, also with other "
            "--models, --base-url or --key-env"
        )
        return ModelUnavailable(f"{error}; {way_out}")
    return type(error)(f"{error}; the run is kept: continue it with `evolvarium resume {run_id}`")
