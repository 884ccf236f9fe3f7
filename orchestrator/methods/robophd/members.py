"""The population: packages with where they come from, as the journal keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.errors import InputError, RunStateError
from orchestrator.ports import Journal

PREFIX = "package/"
MEMBER_ID = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_NEWCOMER = re.compile(r"p\d{2,6}")
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class _Stored(BaseModel):
    """What the journal keeps of a package; whoever wrote it may have added to it."""

    model_config = ConfigDict(strict=True)

    digest: Digest
    files: dict[str, Digest]
    iteration: Annotated[int, Field(ge=0)]
    parents: list[str]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One package of the population."""

    id: str
    package: AgentPackage
    iteration: int
    """In which it was made; 0: it was there from the beginning."""
    parents: tuple[str, ...] = ()
    """Ids of the packages that its author read."""
    description: str = ""
    """The author's words; untrusted."""


def newcomer_id(iteration: int) -> str:
    """Of the package that an iteration makes, for instance `p02`."""
    return f"p{iteration:02d}"


def member_key(member_id: str) -> str:
    """The journal key of a package."""
    return f"{PREFIX}{member_id}"


def check_initial_id(member_id: str) -> str:
    """Return an id that a package may have from the beginning.

    Raises:
        InputError: It is malformed, or could become a newcomer's.
    """
    if not MEMBER_ID.fullmatch(member_id) or _NEWCOMER.fullmatch(member_id):
        msg = (
            f"{member_id!r} is no name for an initial package; use at most 40 lower-case letters, digits, '-' and '_', "
            "and nothing like 'p02', which newcomers are called"
        )
        raise InputError(msg)
    return member_id


def member_record(member: Member, journal: Journal) -> dict[str, Any]:
    """What the journal keeps of a package; its files become blobs."""
    return {
        "digest": member.package.digest,
        "files": {path: journal.put_blob(content) for path, content in member.package.tree.items()},
        "iteration": member.iteration,
        "parents": list(member.parents),
        "description": member.description,
    }


def load_member(member_id: str, journal: Journal) -> Member:
    """A package by id.

    Raises:
        RunStateError: The journal has no such package, or is damaged.
    """
    record = journal.get(member_key(member_id))
    if record is None:
        known = ", ".join(key.removeprefix(PREFIX) for key, _ in journal.records(PREFIX))
        msg = f"the run has no package {member_id!r}; there are {known or 'none yet'}"
        raise RunStateError(msg)
    return _member(member_id, record, journal)


def load_members(journal: Journal) -> tuple[Member, ...]:
    """All packages, the oldest first.

    Raises:
        RunStateError: The journal is damaged.
    """
    return tuple(_member(key.removeprefix(PREFIX), record, journal) for key, record in journal.records(PREFIX))


def _member(member_id: str, record: Mapping[str, Any], journal: Journal) -> Member:
    try:
        stored = _Stored.model_validate(dict(record))
        package = AgentPackage.load({path: journal.get_blob(digest) for path, digest in stored.files.items()})
    except (ValidationError, InputError) as error:
        msg = f"the record of {member_key(member_id)!r} is damaged ({error}); restore the run from a copy"
        raise RunStateError(msg) from error
    if package.digest != stored.digest:
        msg = f"package {member_id!r} was recorded with digest {stored.digest}, its files give {package.digest}"
        raise RunStateError(msg)
    return Member(
        id=member_id,
        package=package,
        iteration=stored.iteration,
        parents=tuple(stored.parents),
        description=stored.description,
    )
