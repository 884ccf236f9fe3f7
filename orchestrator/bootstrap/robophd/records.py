"""Records of an evolution as they are read to be shown; they may be damaged, or written by another version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.errors import RunStateError
from orchestrator.ports import Journal

R = TypeVar("R", bound="Recorded")
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError)
"""What records of another kind than expected raise when they are read."""
Count = Annotated[int, Field(ge=0)]
Source = Literal["tool", "hybrid", "none"]
Kind = Literal["standard", "challenger", "none"]


class Recorded(BaseModel):
    """What is read of a record; it may hold more."""

    model_config = ConfigDict(strict=True, frozen=True)


class PlanRecord(Recorded):
    """`it/<NN>/plan`."""

    kind: Kind
    strategy: str | None
    questions: dict[str, list[Annotated[list[str], Field(min_length=2, max_length=2)]]]
    """Database to (id, group) of its questions."""


class EvolveEndRecord(Recorded):
    """`it/<NN>/evolve/end`."""

    package: str | None
    failure: str | None
    requests: Count


class AnalysisRecord(Recorded):
    """One package's analysis of a database."""

    source: Source
    failure: str | None


class EndRecord(Recorded):
    """`it/<NN>/end`."""

    kind: Kind
    questions: dict[str, list[str]]
    competitors: Annotated[list[str], Field(min_length=1)]
    right: dict[str, list[str]]
    ratings: dict[str, float]
    analyses: dict[str, dict[str, AnalysisRecord]]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not {*self.competitors} == {*self.right} == {*self.analyses} or not any(self.questions.values()):
            msg = "competitors, right answers and analyses do not fit each other, or there is no question"
            raise ValueError(msg)
        return self


class SelectRecord(Recorded):
    """`select/<id>`."""

    right: list[str]
    questions: Annotated[int, Field(ge=1)]
    analyses: dict[str, AnalysisRecord]


class RunEndRecord(Recorded):
    """`run/end`."""

    ending: Literal["iterations", "budget"]
    champion: str


class FinalRecord(Recorded):
    """`final/score/<id>:<model>`."""

    package: str
    model: str
    questions: dict[str, list[list[str | bool]]]
    """Database to (id, group, whether it was right) of its questions."""
    analyses: dict[str, Source]
    requests: Count
    usage: dict[str, Any]
    hybrid_usage: dict[str, Any]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        kinds = [str, str, bool]
        if not self.rows or any([type(one) for one in row] != kinds for row in self.rows):
            msg = "its questions are not (id, group, whether it was right), or there is none"
            raise ValueError(msg)
        return self

    @property
    def rows(self) -> list[list[str | bool]]:
        """Of all databases."""
        return [row for rows in self.questions.values() for row in rows]


def read(kind: type[R], journal: Journal, key: str) -> R | None:
    """What a record says; None: there is none.

    Raises:
        RunStateError: It is damaged, or of another version.
    """
    record = journal.get(key)
    return None if record is None else parsed(kind, key, record)


def parsed(kind: type[R], key: str, record: Mapping[str, Any]) -> R:
    """What a record that was found says.

    Raises:
        RunStateError: As `read`.
    """
    try:
        return kind.model_validate(dict(record))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        msg = f"the record of {key!r} is damaged or of another version ({where}); restore the run from a copy"
        raise RunStateError(msg) from error


@contextmanager
def sound(run_id: str) -> Iterator[None]:
    """What damaged records raise in the block becomes an error that says so."""
    try:
        yield
    except DAMAGED as error:
        msg = f"the journal of run {run_id} is damaged or of another version ({error!r}); restore it from a copy"
        raise RunStateError(msg) from error
