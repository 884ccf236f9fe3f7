"""The record `run` of a sweep: everything that must be the same when it is resumed."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.bootstrap.header import program_version
from orchestrator.bootstrap.runs import SQL_SWEEP, header_of, in_words, kind_of
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.header import require_same
from orchestrator.bootstrap.sql.running import Opened
from orchestrator.bootstrap.sql.sweep_choices import SweepChoices
from orchestrator.bootstrap.sql.sweep_file import SweepFile
from orchestrator.errors import RunStateError
from orchestrator.methods.evosql import Settings
from orchestrator.methods.evosql.grid import Variant
from orchestrator.ports import Journal

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One question of a sweep."""

    key: str
    """In the journal of its data set, for instance `q/17`."""
    id: str
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepHeader:
    """The record, read."""

    file: SweepFile
    choices: SweepChoices
    variants: tuple[Variant, ...]
    conditions: tuple[Mapping[str, Any], ...]
    """Of each data set, from `conditions_of`."""
    questions: tuple[tuple[Listed, ...], ...]
    """Of each data set."""
    versions: Mapping[str, str]


def dataset_scope(number: int) -> str:
    """Where a data set's records stand in the journal.

    Args:
        number: From 0 on.
    """
    return f"d{number + 1}/"


def sweep_header(file: SweepFile, choices: SweepChoices, opened: Sequence[Opened]) -> dict[str, Any]:
    """The whole record."""
    variants = [
        {"id": one.id, "label": one.label, "settings": one.settings.model_dump(mode="json")} for one in file.expanded()
    ]
    datasets = [
        {
            "questions": [[view_of(q).key, q.id, q.database] for q in one.data.questions],
            "conditions": dict(one.conditions),
        }
        for one in opened
    ]
    return {
        "format": FORMAT,
        "kind": SQL_SWEEP,
        "file": file.model_dump(mode="json"),
        "choices": choices.model_dump(mode="json"),
        "variants": variants,
        "datasets": datasets,
        "versions": {"evolvarium": program_version(), "python": platform.python_version()},
    }


def read_sweep_header(run_id: str, journal: Journal) -> SweepHeader:
    """The record.

    Raises:
        RunStateError: The run is no sweep, or its record is missing or of another version.
    """
    header = header_of(run_id, journal)
    if (kind := kind_of(journal)) != SQL_SWEEP:
        msg = f"run {run_id} is {in_words(kind)}, and no Text-to-SQL sweep; `evolvarium runs list` lists them all"
        raise RunStateError(msg)
    try:
        if header["format"] == FORMAT:
            return SweepHeader(
                file=SweepFile.model_validate(header["file"]),
                choices=SweepChoices.model_validate(header["choices"]),
                variants=tuple(_variant(one) for one in header["variants"]),
                conditions=tuple(dict(one["conditions"]) for one in header["datasets"]),
                questions=tuple(
                    tuple(Listed(key=str(key), id=str(name), database=str(database)) for key, name, database in listed)
                    for listed in (one["questions"] for one in header["datasets"])
                ),
                versions=dict(header["versions"]),
            )
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise RunStateError(_other_version(run_id)) from error
    raise RunStateError(_other_version(run_id))


def require_same_sweep(header: SweepHeader, opened: Sequence[Opened]) -> None:
    """Refuse to continue under other conditions than a sweep has had so far.

    Raises:
        RunStateError: Something has changed; the message names it.
    """
    for before, now in zip(header.conditions, opened, strict=True):
        require_same(before, now.conditions, "sql sweep")


def _variant(record: Mapping[str, Any]) -> Variant:
    return Variant(
        id=str(record["id"]), label=str(record["label"]), settings=Settings.model_validate(record["settings"])
    )


def _other_version(run_id: str) -> str:
    return f"the record of run {run_id} was made by another version; continue it with that one"
