"""Pauses of a run: why it ended without an end, while its models' provider serves nobody, as its journal tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from orchestrator.errors import ModelUnavailable
from orchestrator.ports import Journal

_PREFIX = "run/paused/"
_KEY = "run/paused/{:04d}"


@contextmanager
def pausing(journal: Journal) -> Iterator[None]:
    """Within the block, a model that is not to be had is recorded as a pause of the run, and raised on.

    A run of which nothing but its header is recorded has not come far enough to be paused.

    Args:
        journal: Of the run.

    Raises:
        ModelUnavailable: As in the block.
    """
    try:
        yield
    except ModelUnavailable as error:
        if any(key != "run" for key, _ in journal.records()):
            number = 1 + sum(1 for _ in journal.records(_PREFIX))
            journal.put(_KEY.format(number), {"reason": " ".join(str(error).split())})
        raise


def pause_of(journal: Journal) -> str | None:
    """Why a run is paused; None: it is not, for it was never or has gone on since.

    Args:
        journal: Of the run.

    Raises:
        RunStateError: A record is damaged.
    """
    if not any(True for _ in journal.records(_PREFIX)):
        return None
    last: tuple[str, Mapping[str, Any]] = ("", {})
    for last in journal.records():  # noqa: B007 - what was recorded after a pause ends it
        pass
    key, record = last
    return str(record.get("reason", "")) if key.startswith(_PREFIX) else None
