"""What the journal of a batch holds (`bootstrap/batches.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.runs import BATCH, header_of, in_words, kind_of
from orchestrator.errors import RunStateError
from orchestrator.ports import Journal

END_KEY = "run/end"
BEGUN_KEY, ENDED_KEY = "m{:02d}/begun/", "m{:02d}/end"
"""Of a member by its number; the first is a prefix."""


class BatchHeader(BaseModel):
    """The record `run`."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["batch"] = "batch"
    format: Literal[1] = 1
    family: str
    """Its folder's name."""
    members: tuple[str, ...]
    """Names or folders of tasks, in the order in which they are run."""
    choices: Choices
    """Of the whole batch, whose spending limits they hold; `task` is the family."""
    settings: dict[str, Any]
    """Of the method, as they were asked for; null stands for the task's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One task of a batch."""

    number: int
    """From 1."""
    task: str
    """Name or folder."""
    run_id: str | None
    """None: it has not begun."""
    end: str | None
    """`done` or `budget-spent`; None: it has not ended."""


def read_header(run_id: str, journal: Journal) -> BatchHeader:
    """The record `run` of a batch.

    Raises:
        RunStateError: It is no batch, or was made by another version.
    """
    header = header_of(run_id, journal)
    if (kind := kind_of(journal)) != BATCH:
        msg = f"run {run_id} is {in_words(kind)} and no batch; `evolvarium show {run_id}` shows it"
        raise RunStateError(msg)
    try:
        return BatchHeader.model_validate(dict(header))
    except ValidationError as error:
        msg = f"the record of batch {run_id} was made by another version; continue it with that one"
        raise RunStateError(msg) from error


def read_members(header: BatchHeader, journal: Journal) -> list[Member]:
    """Every member, as far as the batch's own journal tells.

    Raises:
        RunStateError: A record is damaged.
    """
    found = []
    for number, task in enumerate(header.members, 1):
        begun = [record.get("run") for _, record in journal.records(BEGUN_KEY.format(number))]
        run_id, end = begun[-1] if begun else None, (journal.get(ENDED_KEY.format(number)) or {}).get("state")
        if not isinstance(run_id, str | None) or not isinstance(end, str | None):
            msg = f"the record of member {number} is damaged; restore the batch from a copy, or remove it"
            raise RunStateError(msg)
        found.append(Member(number=number, task=task, run_id=run_id, end=end))
    return found
