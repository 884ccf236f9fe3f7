"""Runs by what people type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from orchestrator.bootstrap.places import Places
from orchestrator.errors import Cancelled, EvolvariumError, RunStateError
from orchestrator.ports import Journal
from orchestrator.storage.runs import RunStore

NEWEST = ("latest", "previous")
"""Names of the newest runs, from the newest on."""
SEARCH = "search"
BATCH = "batch"
SQL_BENCH = "sql-bench"
SQL_SWEEP = "sql-sweep"
EVOLUTION = "robophd"
_IN_WORDS = {
    BATCH: "a batch of searches",
    SQL_BENCH: "a Text-to-SQL bench",
    SQL_SWEEP: "a Text-to-SQL sweep",
    EVOLUTION: "an evolution of packages",
}


def run_store(places: Places) -> RunStore:
    """All runs of the home."""
    return RunStore(places.home)


@contextmanager
def new_run(store: RunStore) -> Iterator[tuple[str, Journal]]:
    """A new run's id and journal; where the block fails and only the run's header is recorded, nothing is left of it.

    An operator's stop is no failure: what was asked for is kept, to be resumed.

    Raises:
        PrerequisiteError: It cannot be made.
    """
    run_id, journal = store.create()
    is_empty = False
    try:
        with journal:
            try:
                yield run_id, journal
            except EvolvariumError as error:
                is_empty = not isinstance(error, Cancelled) and all(key == "run" for key, _ in journal.records())
                raise
    finally:
        if is_empty:
            store.remove(run_id)


def exists(store: RunStore, run_id: str) -> bool:
    """Whether a run with this id is kept."""
    try:
        store.folder(run_id)
    except RunStateError:
        return False
    return True


def find_run(store: RunStore, name: str) -> str:
    """A run's id from `latest` or `previous`, its id, or the beginning of it if no other begins so.

    The members of a batch, which are newer than itself, are not the newest runs; it is.

    Raises:
        RunStateError: There is none, or several.
    """
    infos = store.list()
    if name in NEWEST:
        newest = (info.id for info in reversed(infos) if info.created_at is not None)
        readable = list(islice((run_id for run_id in newest if not _is_member(store, run_id)), len(NEWEST)))
        damaged = [info for info in infos if info.problem is not None]
        if len(readable) <= NEWEST.index(name):
            if damaged:
                msg = f"there is no {name} run that can be read; run {damaged[-1].id} cannot be: {damaged[-1].problem}"
                raise RunStateError(msg)
            msg = f"there is no {name} run yet; `evolvarium run TASK` or `evolvarium sql bench` makes one"
            raise RunStateError(msg)
        return readable[NEWEST.index(name)]
    matches = [info.id for info in infos if name and info.id.startswith(name)]
    if len(matches) > 1:
        msg = f"{name!r} begins the ids of several runs: {', '.join(matches)}; give more of it"
        raise RunStateError(msg)
    return matches[0] if matches else store.folder(name).name


def _is_member(store: RunStore, run_id: str) -> bool:
    try:
        with store.open(run_id, read_only=True) as journal:
            choices = (journal.get("run") or {}).get("choices")
    except EvolvariumError:
        return False
    return isinstance(choices, Mapping) and choices.get("batch") is not None


def header_of(run_id: str, journal: Journal) -> Mapping[str, Any]:
    """The record of what was asked for.

    Raises:
        RunStateError: The run ended before it was written.
    """
    header = journal.get("run")
    if header is None:
        msg = f"run {run_id} ended before it began; remove it with `evolvarium runs remove {run_id}`"
        raise RunStateError(msg)
    return header


def kind_of(journal: Journal) -> str:
    """What a run is; one that ended before it began counts as a search."""
    return str((journal.get("run") or {}).get("kind", SEARCH))


def in_words(kind: str) -> str:
    """What a run is, with its article.

    Args:
        kind: From `kind_of`.
    """
    return _IN_WORDS.get(kind, "a search")
