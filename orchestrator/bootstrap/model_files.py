"""A file of models, `--models FILE`: strict YAML, refused with the file, the field, the value and the way out.

A value that may be a key, put where its name belongs, is never shown.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.domain.model_access import (
    KeySource,
    Member,
    Members,
    ModelAccess,
    ModelEntry,
    Patience,
    Price,
    PriceTier,
)
from orchestrator.domain.model_options import secret_options
from orchestrator.domain.written_settings import WrittenSettings
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import complaint, reason
from orchestrator.runtime.strict_yaml import MAX_BYTES, load_yaml
from orchestrator.runtime.user_files import read_file

_TOLD = 5
"""Complaints in one message."""
_SECRET_FIELDS = frozenset({"key", "key_env", "env", "base_url", "options"})
"""Where somebody may have written a key itself."""
_PARTS: Mapping[str, type[BaseModel]] = {
    "key": KeySource,
    "price": Price,
    "above": PriceTier,
    "patience": Patience,
}


_OF_ANOTHER_SHAPE = frozenset({"model_type", "model_attributes_type", "dict_type", "tuple_type", "list_type"})
"""What pydantic calls it where a mapping or a list is written in another way."""
_FORMS = {
    "key": "{env: NAME} or {file: PATH}",
    "price": "{input: 1, output: 2}, in US dollars for a million tokens",
    "above": "{input: 1, output: 2}, in US dollars for a million tokens",
    "patience": "{chunk_seconds: 300}",
    "models": "{NAME: {provider: openai, model: MODEL}}",
    "ensembles": "{NAME: [{model: NAME, weight: 1}]}",
    "without": "[temperature]",
    "options": "{reasoning_effort: high}",
}


class ModelFile(WrittenSettings):
    """What a file of models holds."""

    models: dict[str, ModelEntry] = Field(default_factory=dict)
    """Models under names of one's own, or under `PROVIDER/NAME`."""
    ensembles: dict[str, Members] = Field(default_factory=dict)
    """Weighted models under one name, for the model that improves programs."""
    patience: Patience | None = None
    """How long a run waits for its models; null: as options say."""


def load_models(path: Path) -> ModelFile:
    """The models in a file; the paths of key files are made absolute, so that they mean the same wherever it goes on.

    Args:
        path: Of a YAML file.

    Raises:
        InputError: It cannot be read, is not strict YAML, or is no such file; the message says where and why.
    """
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        way_out = "make it smaller" if error.errno == errno.EFBIG else "give the path of a YAML file"
        msg = f"cannot read the models {str(path)!r}: {error.strerror}; {way_out}"
        raise InputError(msg) from error
    document = load_yaml(raw, str(path))
    if not isinstance(document, dict) or not document:
        msg = f"{path}: a file of models is a mapping with `models`, `ensembles` or `patience`"
        raise InputError(msg)
    file = _validated(document, str(path))
    require_no_keys(file.models, str(path))
    return file.model_copy(update={"models": {name: with_whole_path(one) for name, one in file.models.items()}})


def _validated(document: Mapping[str, object], source: str) -> ModelFile:
    try:
        file = ModelFile.model_validate(document)
        ModelAccess(models=file.models, ensembles=file.ensembles)  # whose names must not clash
    except ValidationError as error:
        complaints = access_complaints(error, ModelFile)
    else:
        return file
    raise InputError(f"{source}: {complaints}")  # outside of the handler, whose exception holds what was written


def access_complaints(error: ValidationError, top: type[BaseModel]) -> str:
    """All that is wrong, the first of many, without values that may be keys.

    Args:
        error: Of a model that holds entries.
        top: That model, for close names of unknown fields.
    """
    details = causes_of(error.errors(include_url=False))
    more = f"; and {len(details) - _TOLD} more" if len(details) > _TOLD else ""
    return "; ".join(access_complaint(detail, top) for detail in details[:_TOLD]) + more


def causes_of(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Without lists that are called too short for no other reason than that an entry of theirs is wrong.

    Args:
        details: Of `ValidationError.errors()`.
    """
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(len(place) > len(detail["loc"]) and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def access_complaint(detail: ErrorDetails, top: type[BaseModel] = ModelAccess, *, below: int = 0) -> str:
    """One thing that is wrong with a description of models.

    Args:
        detail: Of `ValidationError.errors()`.
        top: The model that is described.
        below: How many keys of a file lead to it.
    """
    location = [str(part) for part in detail["loc"] if part != "[key]"][below:]
    field = ".".join(location)
    if not location:
        return reason(detail)
    if detail["type"] == "extra_forbidden":
        known = _fields_beside(location, top)
        close = get_close_matches(location[-1], known, n=1)
        meant = f"did you mean {close[0]!r}? " if close else ""
        return f"`{field}` is no field here; {meant}allowed are {', '.join(known)}"
    form = _form(location) if detail["type"] in _OF_ANOTHER_SHAPE else None
    way_out = "" if form is None else f"; write {form}"
    if _SECRET_FIELDS & set(location):
        return f"`{field}`: {reason(detail)}{way_out} (its value is not shown: it may be a secret)"
    return f"{complaint(detail)}{way_out}"


def _form(location: Sequence[str]) -> str | None:
    """How the part at `location` is written; None: as its field says."""
    if location[-1] == "ensembles" or "ensembles" not in location:
        return _FORMS.get(location[-1])
    below = len(location) - location.index("ensembles")
    return {2: "[{model: NAME, weight: 3}, {model: OTHER, weight: 1}]", 3: "{model: NAME, weight: 1}"}.get(below)


def require_no_keys(models: Mapping[str, ModelEntry], source: str) -> None:
    """Refuse options that would put a key into the record of a run.

    Raises:
        InputError: There are some.
    """
    for name, entry in models.items():
        found = secret_options(entry.options)
        if found:
            msg = (
                f"{source}: `models.{name}.options` holds {', '.join(found)}, and options are recorded with the run; "
                "a key comes from `key`, which names an environment variable or a file"
            )
            raise InputError(msg)


def with_whole_path(entry: ModelEntry, folder: Path | None = None) -> ModelEntry:
    """An entry whose key file, where it has one, has an absolute path.

    Args:
        entry: As it was written.
        folder: That its path is relative to; None: the working directory.
    """
    if entry.key is None or entry.key.file is None:
        return entry
    whole = (folder or Path()).absolute() / Path(entry.key.file).expanduser()
    return entry.model_copy(update={"key": KeySource(file=str(whole))})


def _fields_beside(location: Sequence[str], top: type[BaseModel]) -> list[str]:
    """Names of the fields that stand beside the one at `location`."""
    here: type[BaseModel] = top
    for number, part in enumerate(location[:-1]):
        before = location[number - 1] if number else ""
        if before == "models":
            here = ModelEntry
        elif before and location[number - 2 : number - 1] == ["ensembles"]:
            here = Member
        else:
            here = _PARTS.get(part, here)
    return sorted(here.model_fields)
