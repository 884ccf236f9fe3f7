"""What is measured once a search has ended, on splits that played no part in it: `final/<split>/<candidate>`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import InputError, PrerequisiteError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.task_spec import FilesSplit
from orchestrator.evaluation.tasks import Task
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.final_choice import final_entry
from orchestrator.methods.agentic_evolve.history_records import record_of
from orchestrator.ports import Evaluator, Journal, Sandbox

PREFIX = "final/"


def read_finals(journal: Journal) -> list[tuple[str, Verdict]]:
    """(candidate id, verdict) of all final verdicts, in the order of writing.

    Raises:
        RunStateError: A record is damaged.
    """
    finals = []
    for key, record in journal.records(PREFIX):
        with record_of(key):
            finals.append((key.rpartition("/")[2], from_record(Verdict, record["verdict"])))
    return finals


def final_splits(
    task: Task, store: SplitStore, sandbox: Sandbox, asked: Sequence[str] | None, note: Callable[[str], object]
) -> list[str]:
    """The splits to measure at the end; looks now whether their data can be had, not after hours of search.

    Args:
        task: Declares them.
        store: Finds the files of those that come from files.
        sandbox: As `store` asks for.
        asked: By the user, each of which must be available; None: all that are.
        note: Told which split is left out although the user named a place for its files.

    Raises:
        InputError: The task has no such split.
        PrerequisiteError: Files of a split that was asked for are missing.
    """
    wanted = [name for name in task.spec.splits if name != task.spec.search_split] if asked is None else list(asked)
    if task.spec.search_split in wanted:
        msg = f"split {task.spec.search_split!r} guides the search, so it is measured anyway; leave it out"
        raise InputError(msg)
    available = []
    for name in dict.fromkeys(wanted):
        try:
            if isinstance(task.split(name), FilesSplit):
                store.load(sandbox, task, name, run_id="")
        except PrerequisiteError as error:
            if asked is not None:
                raise
            if store.has_data_roots:
                note(f"split {name!r} will not be measured: {error}")
            continue
        available.append(name)
    return available


def require_readable(task: Task, splits: Sequence[str], run_id: str, evaluator_of: Callable[[str], Evaluator]) -> None:
    """Evaluate the initial program on splits from files now: what they hold is only found out by the task's own code.

    Args:
        task: Declares the splits.
        splits: Of `final_splits`.
        run_id: Labels the containers.
        evaluator_of: The evaluator of a split.

    Raises:
        InputError: The task's code cannot read a file.
        EvolvariumError: Otherwise as `Evaluator.evaluate`.
    """
    for split in splits:
        if isinstance(task.split(split), FilesSplit):
            evaluator_of(split).evaluate(task.initial, run_id=run_id, attempt_id=f"read-{split}")


def measure_finals(
    journal: Journal, run_id: str, splits: Sequence[str], evaluator_of: Callable[[str], Evaluator]
) -> None:
    """Evaluate the initial program and the final candidate on every split, unless the journal has it.

    Args:
        journal: Of a run whose search has ended.
        run_id: Labels the containers.
        splits: Of `final_splits`.
        evaluator_of: The evaluator of a split.

    Raises:
        EvolvariumError: As `Evaluator.evaluate`; what was measured before is kept.
    """
    for key, split, entry in pending(journal, splits):
        payload = entry.candidate.payload
        verdict = evaluator_of(split).evaluate(payload, run_id=run_id, attempt_id=f"final-{split}-{entry.id}")
        journal.put(key, {"payload": payload.digest, "verdict": to_record(verdict)})


def pending(journal: Journal, splits: Sequence[str]) -> list[tuple[str, str, Entry]]:
    """(key, split, candidate) of every final measurement that the journal of an ended search lacks."""
    history = read_history(journal)
    candidates = {entry.id: entry for entry in (history.initial, final_entry(history)) if entry is not None}
    wanted = [
        (f"{PREFIX}{split}/{candidate_id}", split, entry)
        for split in splits
        for candidate_id, entry in candidates.items()
    ]
    return [(key, split, entry) for key, split, entry in wanted if journal.get(key) is None]


def copy_finals(recorded: Journal, replayed: Journal) -> None:
    """Take over the final verdicts of candidates that came out the same, file by file, in a replay."""
    history = read_history(replayed)
    payloads = {entry.id: entry.candidate.payload.digest for entry in (history.initial, final_entry(history)) if entry}
    for key, record in recorded.records(PREFIX):
        if payloads.get(key.rpartition("/")[2]) == record.get("payload"):
            replayed.put(key, record)
