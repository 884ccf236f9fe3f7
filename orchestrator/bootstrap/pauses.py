"""Pauses of a run: why it ended without an end, while its models' provider serves nobody, as its journal tells it.

Also by which options its models can be reached otherwise, so that it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from orchestrator.bootstrap.model_choices import access_in_force
from orchestrator.bootstrap.model_names import is_plain, models_behind
from orchestrator.domain.model_access import ModelAccess, Provider
from orchestrator.errors import ModelUnavailable, RunStateError
from orchestrator.ports import Journal

_NAMES = ("model", "critic_model", "evolver", "answerer")
"""Where the choices of a run, of whatever kind, hold the names of its models."""
_PREFIX = "run/paused/"
_KEY = "run/paused/{:04d}"


def ways_on(journal: Journal) -> tuple[str, ...]:
    """The options that say anew how a run's models are reached, of those that this run accepts.

    Args:
        journal: Of the run, of any kind.

    Raises:
        RunStateError: A record is damaged.
    """
    choices = (journal.get("run") or {}).get("choices", {})
    try:
        access = access_in_force(journal, ModelAccess.model_validate(choices.get("access", {})))
    except ValidationError as error:
        msg = "the record of 'run' was made by another version; continue the run with that one"
        raise RunStateError(msg) from error
    named = [choices[field] for field in _NAMES if choices.get(field) is not None]
    asked = [one for name in named for one in models_behind(name, access)]
    has_plain = any(is_plain(name, access) and name.startswith(f"{Provider.OPENAI}/") for name in asked)
    return ("--models", "--base-url", "--key-env") if has_plain else ("--models",)


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
