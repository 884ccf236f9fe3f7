"""The record `run` of an evolution: everything that must be the same when it is resumed."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.bootstrap.header import program_version
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.data import EvolveData
from orchestrator.bootstrap.runs import EVOLUTION, header_of, in_words, kind_of
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import Journal
from orchestrator.search.sampling import DatabaseSplit

FORMAT = 1
Earlier = Sequence[tuple[int, Settings]]
"""Of a branch: (last iteration, settings) of the runs it comes from, the earliest first; otherwise empty."""
_PARTS = ("data", "policy", "images", "databases")
_WAYS_OUT = {
    "data": "the data",
    "policy": "the policy",
    "images": "an image",
    "databases": "a database",
}


class _Recorded(BaseModel):
    """What is read from any part of a record; it may hold more."""

    model_config = ConfigDict(strict=True)


class _Data(_Recorded):
    names: Annotated[list[str], Field(min_length=1)]
    digest: str
    questions: int
    evolve: list[str]
    select: list[str]
    final: list[str]


class _Database(_Recorded):
    source: str
    volume: str


class _Models(_Recorded):
    evolver: str
    answerer: str


class _Header(_Recorded):
    """The record, as far as a run is shown and replayed from it; its digest does not say that this version wrote it."""

    format: int
    initial: Annotated[dict[str, str], Field(min_length=1)]
    models: _Models
    data: _Data
    policy: dict[str, str]
    images: dict[str, str]
    databases: dict[str, _Database]
    questions: list[Annotated[list[str], Field(min_length=3, max_length=3)]]
    context_tokens: dict[str, int] = {}


def conditions_of(
    data: EvolveData, split: DatabaseSplit, *, databases: Mapping[str, Any], in_force: Mapping[str, Any]
) -> dict[str, Any]:
    """What a resumed run must find as it was.

    Args:
        data: All of it.
        split: Of its databases.
        databases: From `examine`.
        in_force: From `policy_record`.
    """
    return {
        "data": data_record(data, split),
        "databases": dict(databases),
        **in_force,
    }


def data_record(data: EvolveData, split: DatabaseSplit) -> dict[str, Any]:
    """What the record says of the data: lists, databases by what they are for, and what was left out."""
    return {
        "names": list(data.names),
        "digest": data.digest,
        "questions": len(data.questions),
        "evolve": list(split.evolve),
        "select": list(split.select),
        "final": list(split.final),
        "orphans": list(data.orphans),
    }


def evolution_header(
    method: Mapping[str, Any],
    choices: EvolveChoices,
    data: EvolveData,
    conditions: Mapping[str, Any],
    earlier: Earlier,
) -> dict[str, Any]:
    """The whole record.

    Args:
        method: From `robophd.run.run_record`.
        choices: What was asked for.
        data: All of it.
        conditions: From `conditions_of`.
        earlier: Of a branch.
    """
    return {
        **method,
        "format": FORMAT,
        "kind": EVOLUTION,
        "choices": choices.model_dump(mode="json"),
        "questions": [[view_of(question).key, question.id, question.database] for question in data.questions],
        "earlier": [[last, settings.model_dump(mode="json")] for last, settings in earlier],
        "versions": {"evolvarium": program_version(), "python": platform.python_version()},
        **conditions,
    }


def read_header(
    run_id: str, journal: Journal
) -> tuple[Mapping[str, Any], EvolveChoices, Settings, list[tuple[int, Settings]]]:
    """The record, what was asked for, the settings, and those of earlier iterations where it is a branch.

    Raises:
        RunStateError: The run is no evolution, or its record is missing, damaged or of another version.
    """
    header = header_of(run_id, journal)
    if (kind := kind_of(journal)) != EVOLUTION:
        msg = f"run {run_id} is {in_words(kind)}, and no evolution of packages; `evolvarium runs list` lists them all"
        raise RunStateError(msg)
    try:
        choices = EvolveChoices.model_validate(header["choices"])
        settings = Settings.model_validate(header["settings"])
        earlier = [(int(last), Settings.model_validate(one)) for last, one in header["earlier"]]
        complete = _Header.model_validate(dict(header)).format == FORMAT
    except (KeyError, TypeError, ValueError):
        complete = False
    if not complete:
        msg = f"the record of run {run_id} was made by another version; continue it with that one"
        raise RunStateError(msg)
    return header, choices, settings, earlier


def split_seed(settings: Settings, earlier: Earlier) -> int:
    """The seed that dealt out the databases: of a branch, that of the first run it comes from."""
    return earlier[0][1].seed if earlier else settings.seed


def require_same(header: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to continue under other conditions than a run has had so far.

    Args:
        header: Of the run.
        now: From `conditions_of`.

    Raises:
        RunStateError: Something has changed; the message names it.
    """
    for part in _PARTS:
        before, after = header[part], now[part]
        if before != after:
            changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            details = ", ".join(_change(name, before.get(name), after.get(name)) for name in changed[:3])
            msg = (
                f"{_WAYS_OUT[part]} has changed since the run began ({details}); restore it, or start a new run with "
                "`evolvarium sql evolve`"
            )
            raise RunStateError(msg)


def _change(name: str, before: object, after: object) -> str:
    return f"{name}: {_short(before)}, now {_short(after)}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"
