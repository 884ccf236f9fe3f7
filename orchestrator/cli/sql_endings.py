"""How `sql bench` and `sql sweep` end: what went wrong in words, and the exit code of what did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

from orchestrator.bootstrap.pauses import ways_on
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import exists, run_store
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import (
    BudgetExhausted,
    Cancelled,
    EvolvariumError,
    LostReply,
    ModelUnavailable,
    RunStateError,
)


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
        is_kept = bool(started) and exists(run_store(places), started[0])
        ways = ways_to_go_on(error, places, started[0]) if is_kept else ()
        told = explained(error, started, is_kept=is_kept, ways=ways)
        if told is error:
            raise
        raise told from error


@contextmanager
def telling_way_on(way_on: str) -> Iterator[None]:
    """Within the block, a model that is not to be had is told with what to do now, where no run goes on by `resume`.

    Args:
        way_on: Ends the message.

    Raises:
        ModelError: That of the block, with the way on.
    """
    try:
        yield
    except (ModelUnavailable, LostReply) as error:
        raise type(error)(f"{error}; {way_on}") from error


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
            "a run does not raise its budget: start a new one with more (`evolvarium estimate bench` says how much it "
            "may take), or ask fewer with --limit"
        )
        raise typer.Exit(BudgetExhausted.exit_code)


def explained(
    error: EvolvariumError, started: Sequence[str], *, is_kept: bool, ways: Sequence[str] = ()
) -> EvolvariumError:
    """The error as it concerns the run, with what to do now.

    Args:
        error: That ended the work.
        started: Id of the run, once it can be resumed.
        is_kept: Whether it is still there.
        ways: As `kept`.
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
    return kept(error, started[0], ways)


def ways_to_go_on(error: EvolvariumError, places: Places, run_id: str) -> Sequence[str]:
    """The options by which a run that was paused may reach its models otherwise; none where it was not paused.

    Args:
        error: That ended it.
        places: Hold it.
        run_id: Of the run.
    """
    if not isinstance(error, ModelUnavailable):
        return ()
    try:
        with run_store(places).open(run_id, read_only=True) as journal:
            return ways_on(journal)
    except EvolvariumError:  # what is wrong with its record is said when somebody resumes it
        return ()


def kept(error: EvolvariumError, run_id: str, ways: Sequence[str] = ()) -> EvolvariumError:
    """The error with what there is to do about a run that is kept.

    Args:
        error: That ended it.
        run_id: Of the run.
        ways: As `ways_to_go_on` gives them.
    """
    if isinstance(error, ModelUnavailable):
        also = f", also with other {_listed(ways)}" if ways else ""
        way_out = f"run {run_id} is paused and what it has is kept: `evolvarium resume {run_id}` goes on{also}"
        return ModelUnavailable(f"{error}; {way_out}")
    return type(error)(f"{error}; the run is kept: continue it with `evolvarium resume {run_id}`")


def _listed(options: Sequence[str]) -> str:
    """`--a`, or `--a, --b or --c`."""
    return " or ".join(filter(None, [", ".join(options[:-1]), options[-1]]))
