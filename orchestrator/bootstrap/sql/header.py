"""The record `run` of a bench: everything that must be the same when it is resumed."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.bootstrap.header import program_version
from orchestrator.bootstrap.runs import SQL_BENCH, header_of, in_words, kind_of
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.data import BenchData, view_of
from orchestrator.errors import RunStateError
from orchestrator.methods.evosql import Settings
from orchestrator.ports import Journal

FORMAT = 1
_PARTS = ("dataset", "policy", "images", "databases", "prompts", "models")
_WAYS_OUT = {
    "dataset": "the data set",
    "policy": "the policy",
    "images": "an image",
    "databases": "a database",
    "prompts": "what requests are made of",
    "models": "a model",
}


class _Recorded(BaseModel):
    """What is read from any part of a record; it may hold more."""

    model_config = ConfigDict(strict=True)


class _Dataset(_Recorded):
    name: str
    digest: str


class _Database(_Recorded):
    source: str
    volume: str
    sqlite: str
    tables: int
    hidden: int


class _Models(_Recorded):
    model_config = ConfigDict(strict=True, extra="allow")
    __pydantic_extra__: dict[str, str]

    generator: str


class _Header(_Recorded):
    """The record, as far as a bench is shown from it; its digest does not say that this version wrote it."""

    dataset: _Dataset
    policy: dict[str, str]
    images: dict[str, str]
    databases: dict[str, _Database]
    prompts: dict[str, Any]
    models: _Models
    versions: dict[str, str]
    questions: list[Annotated[list[str], Field(min_length=3, max_length=3)]]
    texts: str | None = None
    context_tokens: dict[str, int] = {}


def bench_header(
    choices: BenchChoices, settings: Settings, data: BenchData, conditions: Mapping[str, Any], texts: str
) -> dict[str, Any]:
    """The whole record.

    Args:
        choices: What was asked for.
        settings: Of the method.
        data: What is measured.
        conditions: From `conditions_of`.
        texts: Digest of the blob with what the questions say.
    """
    return {
        "format": FORMAT,
        "kind": SQL_BENCH,
        "choices": choices.model_dump(mode="json"),
        "settings": settings.model_dump(mode="json"),
        "questions": [[view_of(q).key, q.id, q.database] for q in data.questions],
        "texts": texts,
        "versions": {"evolvarium": program_version(), "python": platform.python_version()},
        **conditions,
    }


def conditions_of(
    data: BenchData,
    *,
    databases: Mapping[str, Any],
    in_force: Mapping[str, Any],
    prompts: Mapping[str, Any],
    models: Mapping[str, str],
    context_tokens: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """What a resumed bench must find as it was.

    Args:
        data: What is measured.
        databases: From `examine`.
        in_force: From `policy_record`.
        prompts: From `prompts_record`.
        models: Role to name.
        context_tokens: Of the models, by name: a resumed run goes on with it, whatever is said of them then.
    """
    ids = [[question.id, question.database] for question in data.questions]
    return {
        "dataset": {
            "name": data.dataset.name,
            "digest": data.dataset.digest,
            "questions": len(ids),
            "chosen": f"sha256:{hashlib.sha256(json.dumps(ids).encode()).hexdigest()}",
            "orphans": list(data.dataset.orphans),
        },
        "databases": dict(databases),
        "prompts": dict(prompts),
        "models": dict(models),
        "context_tokens": dict(context_tokens),
        **in_force,
    }


def read_header(run_id: str, journal: Journal) -> tuple[Mapping[str, Any], BenchChoices, Settings]:
    """The record, and what was asked for.

    Raises:
        RunStateError: The run is no bench, or its record is missing or of another version.
    """
    header = header_of(run_id, journal)
    if (kind := kind_of(journal)) != SQL_BENCH:
        msg = f"run {run_id} is {in_words(kind)}, and no Text-to-SQL bench; `evolvarium runs list` lists them all"
        raise RunStateError(msg)
    try:
        choices = BenchChoices.model_validate(header["choices"])
        settings = Settings.model_validate(header["settings"])
        _Header.model_validate(dict(header))
        complete = header["format"] == FORMAT
    except (KeyError, TypeError, ValidationError):
        complete = False
    if not complete:
        msg = f"the record of run {run_id} was made by another version; continue it with that one"
        raise RunStateError(msg)
    return header, choices, settings


def require_same(header: Mapping[str, Any], now: Mapping[str, Any], command: str = "sql bench") -> None:
    """Refuse to continue under other conditions than a bench has had so far: its figures are one measurement.

    Args:
        header: Of the run.
        now: From `conditions_of`.
        command: Starts a new one.

    Raises:
        RunStateError: Something has changed; the message names it.
    """
    for part in _PARTS:
        if header[part] != now[part]:
            changed = ", ".join(_differences(header[part], now[part]))
            msg = (
                f"{_WAYS_OUT[part]} has changed since the run began ({changed}); restore it, or start a new run with "
                f"`evolvarium {command}`"
            )
            raise RunStateError(msg)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name}: {_short(before.get(name))}, now {_short(now.get(name))}" for name in names[:3]]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"
