"""The file that an evolution may be asked for with, and the settings of the method by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from orchestrator.bootstrap.model_files import access_complaint, causes_of, require_no_keys, with_whole_path
from orchestrator.bootstrap.robophd.choices import CommonEvolveChoices, EvolveChoices
from orchestrator.errors import InputError
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.runtime.complaints import complaint, reason
from orchestrator.runtime.strict_yaml import MAX_BYTES, load_yaml, shown
from orchestrator.runtime.user_files import kind_at, read_file

_MAX_PAPER_BYTES = 1 << 20
_PAPERS = "papers"
_ACCESS = "access"
_STRATEGIES = "schedule.strategies"
_TOLD = 5
"""Complaints in one message."""


class EvolveFile(CommonEvolveChoices):
    """A whole run in one YAML file; what is not named has its default."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the method, as `docs/robophd.md` lists them."""
    papers: tuple[str, ...] = ()
    """Text files for the strategy `research-driven`."""

    @model_validator(mode="after")
    def _papers_stand_once(self) -> Self:
        if "papers" in self.settings:
            msg = "papers are files, so they stand beside `settings`, not in it"
            raise ValueError(msg)
        return self


def load_file(path: Path, instead: Mapping[str, Any] = {}) -> tuple[EvolveChoices, dict[str, Any]]:
    """What a configuration file asks for, and the fields of the settings it gives; paths are relative to its folder.

    Args:
        path: Of the file.
        instead: Fields of the choices that count instead of the file's.

    Raises:
        InputError: The file cannot be read, is not strict YAML, asks for something unknown, or names paths where
            nothing lies, which are told all at once.
    """
    raw = _read(path, MAX_BYTES, "the configuration", "a YAML file")
    document = load_yaml(raw, str(path))
    if not isinstance(document, dict):
        msg = f"{path}: a configuration is a mapping that begins with `datasets`; docs/robophd.md has an example"
        raise InputError(msg)
    parts = {key: part for key, part in document.items() if key != _ACCESS}  # where a model's options may be anything
    truths = [f"`{name}` is {value}: no truth value has a meaning here; quote it, or give a number" for name, value in
              _leaves(parts) if isinstance(value, bool)]  # fmt: skip
    if truths:
        raise InputError(f"{path}: " + "; ".join(truths[:_TOLD]))
    try:
        file = EvolveFile.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {_complaints(error)}") from error
    require_no_keys(file.access.models, f"{path}: {_ACCESS}")
    folder = path.absolute().parent  # the record must mean the same wherever the run is resumed
    choices = EvolveChoices.model_validate(file.model_dump(exclude={"settings", "papers"}))
    whole = {
        "datasets": tuple(one.model_copy(update={"root": str(folder / one.root)}) for one in choices.datasets),
        "packages": tuple(str(folder / one) for one in choices.packages),
        "policy": policy_given(choices.policy, folder),
        _ACCESS: choices.access.model_copy(
            update={"models": {name: with_whole_path(one, folder) for name, one in choices.access.models.items()}}
        ),
    }
    choices = EvolveChoices.model_validate({**choices.model_dump(), **whole, **instead})
    papers = [folder / one for one in file.papers]
    _require_paths(path, choices, papers)
    fields = dict(file.settings)
    if papers:
        fields[_PAPERS] = tuple(map(read_paper, papers))
    return choices, fields


def _require_paths(file: Path, choices: EvolveChoices, papers: Sequence[Path]) -> None:
    """See that something lies at every path, so that one look tells all that is missing."""
    named = [
        *(("the data set", Path(one.root)) for one in choices.datasets),
        *(("the package", Path(one)) for one in choices.packages),
        *(("the policy", Path(one)) for one in (choices.policy,) if "/" in one),
        *(("the paper", one) for one in papers),
    ]
    missing = [f"cannot read {what} {str(place)!r}" for what, place in named if _is_missing(place)]
    if missing:
        msg = f"{file}: {'; '.join(missing)}: nothing lies there; what a file names is looked for from its own folder"
        raise InputError(msg)


def _is_missing(path: Path) -> bool:
    try:
        return kind_at(path) == 0
    except OSError:
        return False  # something is wrong with it, which whoever reads it says better


def policy_given(name: str, folder: Path) -> str:
    """The name of a policy, or the whole path where it is one.

    Args:
        name: As it was given.
        folder: That a path is relative to.
    """
    is_path = name.endswith((".yaml", ".yml")) or "/" in name
    return str(folder.absolute() / name) if is_path else name


def read_paper(path: Path) -> str:
    """A text for the strategy `research-driven`.

    Raises:
        InputError: It cannot be read, is longer than 1 MiB, or is not UTF-8.
    """
    content = _read(path, _MAX_PAPER_BYTES, "the paper", "a text file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"the paper {str(path)!r} is not UTF-8 at byte {error.start}; give it as plain text"
        raise InputError(msg) from error


def settings_from(fields: Mapping[str, Any], assignments: Sequence[tuple[str, Any]] = ()) -> Settings:
    """Settings of the method.

    Args:
        fields: May be nested; what is missing has its default.
        assignments: (dotted name, value) that count instead, for instance `("elo.k", 16)`.

    Raises:
        InputError: A name is unknown or given twice, or a value out of its range.
    """
    settings = _validated(fields)
    names = [name for name, _ in assignments]
    for name, value in assignments:
        _require_known(name)
        if names.count(name) > 1:
            msg = f"setting {name!r} is given twice; give it once"
            raise InputError(msg)
        if isinstance(value, bool):
            msg = f"setting {name!r} is {value}: no truth value has a meaning here; give a number or a word"
            raise InputError(msg)
    return _validated(_merged(settings.model_dump(mode="json"), assignments)) if assignments else settings


def setting_names() -> list[str]:
    """The dotted names of all settings."""
    return [name for name, _ in _leaves(Settings().model_dump(mode="json"), whole=(_STRATEGIES,))]


def _validated(fields: Mapping[str, Any]) -> Settings:
    try:
        return Settings.model_validate(dict(fields))
    except ValidationError as error:
        msg = f"settings: {_complaints(error)}"
        raise InputError(msg) from error


def _complaint(detail: ErrorDetails) -> str:
    """What is wrong with one key or, where it is about several of them, the reason alone."""
    if detail["loc"][:1] == (_ACCESS,):
        return f"{_ACCESS}: {access_complaint(detail, below=1)}"
    return complaint(detail) if detail["loc"] else reason(detail)


def _require_known(name: str) -> None:
    known = setting_names()
    if name == _PAPERS:
        msg = f"{_PAPERS!r} are files; name them in a configuration file, beside its `settings`"
        raise InputError(msg)
    weights = [f"{_STRATEGIES}.{strategy.value}" for strategy in Strategy]
    if name in (*known, *weights):
        return
    below = [one for one in known if one.startswith(f"{name}.")]
    if below:
        msg = f"setting {name!r} has parts; give one of {', '.join(below)}"
        raise InputError(msg)
    if name.partition(".")[0] in EvolveFile.model_fields.keys() - Settings.model_fields.keys():
        msg = (
            f"{name!r} is no setting but a key of the configuration file, beside its `settings`; give it in --config "
            "FILE"
        )
        raise InputError(msg)
    same_end = [one for one in known if one.rpartition(".")[2] == name.rpartition(".")[2]]
    close = next(iter(same_end or get_close_matches(name, [*known, *weights], n=1)), None)
    meant = "" if close in (None, _STRATEGIES) else f" did you mean {close!r}?"
    if name.startswith(f"{_STRATEGIES}."):
        msg = f"there is no setting {shown(name)};{meant} the strategies are {', '.join(Strategy)}"
        raise InputError(msg)
    msg = f"there is no setting {shown(name)};{meant} docs/robophd.md lists them all"
    raise InputError(msg)


def _merged(fields: Mapping[str, Any], assignments: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(fields)
    for name, value in assignments:
        *parents, last = name.split(".")
        level = result
        for parent in parents:
            level[parent] = dict(level[parent])
            level = level[parent]
        level[last] = value
    return result


def _leaves(fields: Mapping[Any, Any], prefix: str = "", whole: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of everything that is no mapping, or is to be taken whole; in lists as well."""
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in whole:
            yield from _leaves(value, f"{name}.", whole)
        elif isinstance(value, list) and any(isinstance(one, dict | bool) for one in value):
            yield from _leaves(dict(enumerate(value)), f"{name}.", whole)
        else:
            yield name, value


def _complaints(error: ValidationError) -> str:
    """All of them in one message, the first of many."""
    details = causes_of(error.errors(include_url=False))
    more = f"; and {len(details) - _TOLD} more" if len(details) > _TOLD else ""
    return "; ".join(map(_complaint, details[:_TOLD])) + more


def _read(path: Path, limit: int, what: str, wanted: str) -> bytes:
    try:
        return read_file(path, limit)
    except OSError as error:
        msg = f"cannot read {what} {str(path)!r}: {error.strerror}; give the path of {wanted}"
        raise InputError(msg) from error
