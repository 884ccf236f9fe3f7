"""How `run` and `resume` end: what went wrong, or what the budget did not cover, in words."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import exists, run_store
from orchestrator.cli.documents import RunDocument
from orchestrator.cli.history import RunView
from orchestrator.cli.sql_endings import kept, ways_to_go_on
from orchestrator.errors import Cancelled, EvaluatorError, EvolvariumError, RunStateError


def refusal_in_words(refusal: str, view: RunView, document: RunDocument) -> str:
    """What the budget did not cover; a budget too small for any request at all is called that."""
    first = "the first request must reserve the most it can take; " if document.requests == 0 else ""
    islands = view.history.header["settings"]["islands"]
    return (
        f"{first}{refusal} (a budget is divided equally among the islands, here {islands}). A spent budget is final, "
        "for other islands may have gone on from what a stopped one left: `resume` does not raise it. For a new run, "
        f"choose it with `evolvarium estimate run {document.task}`"
    )


def explained_search(error: EvolvariumError, started: Sequence[str], places: Places) -> EvolvariumError:
    """The error as it concerns the run, with what to do now.

    Args:
        error: That ended the search.
        started: Id of the run, once it can be resumed.
        places: Hold it.
    """
    if isinstance(error, Cancelled):
        if not started:
            return Cancelled("stopped before the run began; nothing is kept of it")
        return Cancelled(f"run {started[0]} was stopped and is kept; continue it with `evolvarium resume {started[0]}`")
    if not started or isinstance(error, RunStateError):
        return error
    run_id = started[0]
    if not exists(run_store(places), run_id):
        return type(error)(f"{error}; nothing was recorded of the run, so none is kept: start it again")
    if isinstance(error, EvaluatorError):
        way_out = (
            f"if the cause lies outside of the task's folder, `evolvarium resume {run_id}` goes on; if you change the "
            "evaluator, start a new run, for this one cannot go on with it"
        )
        return EvaluatorError(f"{error}; the run is kept: {way_out}")
    return kept(error, run_id, ways_to_go_on(error, places, run_id))
