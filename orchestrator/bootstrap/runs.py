"""Runs by what people type."""

from __future__ import annotations

from orchestrator.bootstrap.places import Places
from orchestrator.errors import RunStateError
from orchestrator.storage.runs import RunStore

NEWEST = ("latest", "previous")
"""Names of the newest runs, from the newest on."""


def run_store(places: Places) -> RunStore:
    """All runs of the home."""
    return RunStore(places.home)


def find_run(store: RunStore, name: str) -> str:
    """A run's id from `latest` or `previous`, its id, or the beginning of it if no other begins so.

    Raises:
        RunStateError: There is none, or several.
    """
    infos = store.list()
    if name in NEWEST:
        readable = [info.id for info in reversed(infos) if info.created_at is not None]
        damaged = [info for info in infos if info.problem is not None]
        if len(readable) <= NEWEST.index(name):
            if damaged:
                msg = f"there is no {name} run that can be read; run {damaged[-1].id} cannot be: {damaged[-1].problem}"
                raise RunStateError(msg)
            msg = f"there is no {name} run yet; `evolvarium run TASK` makes one"
            raise RunStateError(msg)
        return readable[NEWEST.index(name)]
    matches = [info.id for info in infos if name and info.id.startswith(name)]
    if len(matches) > 1:
        msg = f"{name!r} begins the ids of several runs: {', '.join(matches)}; give more of it"
        raise RunStateError(msg)
    return matches[0] if matches else store.folder(name).name
