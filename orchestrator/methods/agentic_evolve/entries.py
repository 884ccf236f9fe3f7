"""Candidates with their verdicts, as the journal keeps them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.candidates import Candidate, FileTree
from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.tasks import TaskView
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import EvaluatorError, RunStateError
from orchestrator.ports import Journal

INITIAL = "initial"
_COMMIT_ID = re.compile(r"i(?P<island>\d{1,9})-c(?P<number>\d{1,9})")
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""Of files, or of one file's content."""
EntryId = Annotated[str, Field(pattern=rf"^(?:{INITIAL}|i[0-9]{{1,9}}-c[0-9]{{1,9}})$")]
"""Of a candidate within its run."""


class _Stored(BaseModel):
    """What the journal keeps of a candidate; whoever wrote it may have added to it."""

    model_config = ConfigDict(strict=True)

    payload: Digest
    files: dict[str, Digest]
    verdict: dict[str, Any]
    description: str = "the initial program"
    parents: list[EntryId] = []
    duplicate_of: EntryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One candidate of the archive; failed ones have a verdict without metrics."""

    candidate: Candidate
    verdict: Verdict
    island: int | None
    """None: the initial program, which belongs to every island."""
    number: int
    """Of the commit within its island, from 1; 0 for the initial program."""
    duplicate_of: str | None = None
    """The earlier candidate of the island with the same files, whose verdict this is."""

    @property
    def id(self) -> str:
        """Within the run."""
        return self.candidate.id

    @property
    def age(self) -> tuple[int, int]:
        """Sorts candidates from early to late, in a way that does not depend on timing."""
        return self.number, -1 if self.island is None else self.island


def commit_id(island: int, number: int) -> str:
    """For instance `i1-c07`."""
    return f"i{island}-c{number:02d}"


def commit_key(island: int, number: int) -> str:
    """The journal key of a commit, for instance `i1/commit/c07`."""
    return f"i{island}/commit/c{number:02d}"


def stop_key(island: int) -> str:
    """The journal key of an island's end."""
    return f"i{island}/stop"


def entry_key(entry_id: str) -> str:
    """The journal key of a candidate.

    Raises:
        RunStateError: It is no candidate's id.
    """
    return INITIAL if entry_id == INITIAL else commit_key(*_parts(entry_id))


def files_record(tree: FileTree, journal: Journal) -> dict[str, Any]:
    """`{payload, files}` of a tree, its files stored as blobs."""
    return {"payload": tree.digest, "files": {path: journal.put_blob(content) for path, content in tree.items()}}


def entry_record(entry: Entry, journal: Journal) -> dict[str, Any]:
    """What the journal keeps of a candidate."""
    record = files_record(entry.candidate.payload, journal) | {"verdict": to_record(entry.verdict)}
    if entry.island is not None:
        record |= {
            "description": entry.candidate.description,
            "parents": list(entry.candidate.parents),
            "duplicate_of": entry.duplicate_of,
        }
    return record


def load_entry(entry_id: str, journal: Journal) -> Entry:
    """A candidate by id.

    Raises:
        RunStateError: The journal has no such candidate, or is damaged.
    """
    record = journal.get(entry_key(entry_id))
    if record is None:
        msg = f"the journal has no candidate {entry_id!r}"
        raise RunStateError(msg)
    return entry_from_record(entry_id, record, journal)


def entry_from_record(entry_id: str, record: Mapping[str, Any], journal: Journal) -> Entry:
    """The inverse of `entry_record`.

    Raises:
        RunStateError: The record is none of a candidate, or the journal lacks its files.
    """
    island, number = (None, 0) if entry_id == INITIAL else _parts(entry_id)
    stored = _stored(entry_id, record)
    candidate = Candidate(
        id=entry_id,
        payload=_tree(stored, journal),
        parents=tuple(stored.parents),
        description=stored.description,
    )
    return Entry(
        candidate=candidate,
        verdict=from_record(Verdict, stored.verdict),
        island=island,
        number=number,
        duplicate_of=stored.duplicate_of,
    )


def fitness_of(entry: Entry, task: TaskView) -> float | None:
    """What selection maximises; None: the candidate failed."""
    return None if entry.verdict.metrics is None else entry.verdict.metrics[task.fitness]


def features_of(entry: Entry, task: TaskView) -> tuple[float, ...]:
    """Where a scored candidate belongs in the grid; each in [0, 1]."""
    metrics = entry.verdict.metrics or {}
    return tuple(metrics[feature] for feature in task.features)


def check_verdict(verdict: Verdict, task: TaskView, entry_id: str) -> Verdict:
    """Return a verdict that the archive can hold.

    Raises:
        EvaluatorError: A scored verdict lacks the fitness or a feature, a number is not finite, or a feature is
            outside [0, 1]; the candidate stays unscored.
    """
    if verdict.metrics is None:
        return verdict
    for name in (task.fitness, *task.features):
        value = verdict.metrics.get(name, math.nan)
        if not math.isfinite(value) or (name != task.fitness and not 0 <= value <= 1):
            msg = (
                f"the evaluator of {task.name!r} gave {entry_id} the {name} {value}; "
                "fitness and features must be finite, features in [0, 1]"
            )
            raise EvaluatorError(msg)
    return verdict


def _stored(entry_id: str, record: Mapping[str, Any]) -> _Stored:
    try:
        return _Stored.model_validate(dict(record))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        key = entry_key(entry_id)
        msg = f"the record of {key!r} is damaged ({reason}); restore the run from a copy, or remove it"
        raise RunStateError(msg) from error


def _tree(stored: _Stored, journal: Journal) -> FileTree:
    tree = FileTree({path: journal.get_blob(digest) for path, digest in stored.files.items()})
    if tree.digest != stored.payload:
        msg = f"the journal names files with digest {stored.payload}, its blobs give {tree.digest}; it is damaged"
        raise RunStateError(msg)
    return tree


def _parts(entry_id: str) -> tuple[int, int]:
    match = _COMMIT_ID.fullmatch(entry_id)
    if match is None:
        msg = f"{entry_id!r} is no candidate id; ids look like 'i1-c07'"
        raise RunStateError(msg)
    return int(match["island"]), int(match["number"])
