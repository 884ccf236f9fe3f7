"""What is said about models beside their names: kept in the record of a run, and changed when it is resumed.

A resume may say otherwise where a run's models are, which key they want, what they cost and how long they may take, but
not which they are: names stay, and so does what a run has recorded of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError

from orchestrator.bootstrap.model_files import ModelFile, access_complaints
from orchestrator.domain.model_access import Members, ModelAccess, ModelEntry, Price
from orchestrator.errors import InputError, RunStateError
from orchestrator.ports import Journal

NO_ACCESS = ModelAccess()
_KEY = "run/access/{:04d}"
_PREFIX = "run/access/"


def _says_nothing(access: object) -> bool:
    return access == NO_ACCESS


RecordedAccess = Annotated[ModelAccess, Field(exclude_if=_says_nothing)]
"""A field of a run's choices, left out of its record where nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAccess:
    """What a command line says; None: nothing."""

    file: ModelFile | None = None
    base_url: str | None = None
    key_env: str | None = None
    price: Price | None = None
    chunk_seconds: float | None = None
    request_seconds: float | None = None
    outage_seconds: float | None = None

    @property
    def models(self) -> Mapping[str, ModelEntry]:
        """Of the file."""
        return {} if self.file is None else self.file.models

    @property
    def ensembles(self) -> Mapping[str, Members]:
        """Likewise."""
        return {} if self.file is None else self.file.ensembles

    @property
    def options(self) -> dict[str, object]:
        """What is given, by option, for commands that must refuse it; None: it is not given."""
        return {
            "--models": self.file,
            "--base-url": self.base_url,
            "--key-env": self.key_env,
            "--price": self.price,
            "--chunk-seconds": self.chunk_seconds,
            "--request-seconds": self.request_seconds,
            "--outage-seconds": self.outage_seconds,
        }

    def over(self, access: ModelAccess = NO_ACCESS) -> ModelAccess:
        """What holds when this is said on top of something.

        A model of the file replaces that of the same name. An ensemble of the same name must be the same. The key of a
        base URL is sent to no other, so a new one comes without unless it is named again.

        Args:
            access: What holds so far.

        Raises:
            InputError: Both do not fit together.
        """
        file = self.file or ModelFile()
        _require_same_ensembles(access, file)
        moved = self.base_url is not None and self.base_url.rstrip("/") != access.base_url
        fields: dict[str, Any] = {
            "models": {**access.models, **file.models},
            "ensembles": {**access.ensembles, **file.ensembles},
            "base_url": self.base_url or access.base_url,
            "key_env": self.key_env or (None if moved else access.key_env),
            "price": self.price or access.price,
            "patience": self._patience(access, file),
        }
        return _validated(fields)

    def _patience(self, access: ModelAccess, file: ModelFile) -> dict[str, float]:
        said = {name: getattr(self, name) for name in ("chunk_seconds", "request_seconds", "outage_seconds")}
        own = {name: value for name, value in said.items() if value is not None}
        return {**(file.patience or access.patience).model_dump(), **own}


NOTHING_GIVEN = GivenAccess()


def access_in_force(journal: Journal, first: ModelAccess) -> ModelAccess:
    """What holds for a run: what it began with, or what was said last when it was resumed.

    Args:
        journal: Of the run.
        first: Of its choices.

    Raises:
        RunStateError: A record is damaged or of another version.
    """
    records = [record for _, record in journal.records(_PREFIX)]
    if not records:
        return first
    try:
        return ModelAccess.model_validate(records[-1]["access"])
    except (KeyError, ValidationError) as error:
        msg = f"the record of {_KEY.format(len(records))!r} was made by another version; continue the run with that one"
        raise RunStateError(msg) from error


def record_access(journal: Journal, before: ModelAccess, now: ModelAccess) -> None:
    """Keep what holds from now on, where it is something else than before.

    Args:
        journal: Of the run.
        before: From `access_in_force`.
        now: What it is resumed with.
    """
    if now != before:
        number = 1 + sum(1 for _ in journal.records(_PREFIX))
        journal.put(_KEY.format(number), {"access": now.model_dump(mode="json")})


def _require_same_ensembles(access: ModelAccess, file: ModelFile) -> None:
    for name, members in file.ensembles.items():
        if name in access.ensembles and access.ensembles[name] != members:
            msg = (
                f"ensemble {name!r} is another one than the run has: its members and their weights stay as they are, "
                "for they decide who answers which request; say under `models` how its members are reached now"
            )
            raise InputError(msg)


def _validated(fields: Mapping[str, Any]) -> ModelAccess:
    try:
        return ModelAccess.model_validate(fields)
    except ValidationError as error:
        raise InputError(access_complaints(error, ModelAccess)) from error
