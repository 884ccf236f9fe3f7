"""What was measured, kept in the installation's home, so that nothing is measured twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.cli.batch_documents import AssessmentDocument, BatchDocument
from orchestrator.cli.documents import RunDocument
from orchestrator.cli.evolution_documents import EvolutionDocument, FinalDocument
from orchestrator.cli.sql_documents import SqlBenchDocument

QUALITY = "excess_percent"
"""Of bin packing."""
SEARCHED_SPLIT = "hidden"


class Timed(BaseModel):
    """One finished command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: tuple[str, ...]
    version: str
    """What `git describe` said of the checkout; `unknown` outside of one."""
    wall_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """From the start of the command to its end, the measuring on the other splits included."""

    @property
    def minutes(self) -> float:
        """Wall time."""
        return self.wall_seconds / 60


class SqlRecord(Timed):
    """One finished `sql bench`."""

    document: SqlBenchDocument


class EvolutionRecord(Timed):
    """One finished `sql evolve`."""

    document: EvolutionDocument


class FinalRecord(Timed):
    """One finished `final`."""

    document: FinalDocument


class BatchRecord(Timed):
    """One finished `run --all`."""

    document: BatchDocument


class AssessmentRecord(Timed):
    """One finished `task assess`."""

    document: AssessmentDocument


class Record(Timed):
    """One finished `run`."""

    document: RunDocument

    def best(self, split: str, metric: str = QUALITY) -> float | None:
        """A metric of the best candidate on a split; None: it was not measured, or has no score."""
        if self.document.best is None:
            return None
        return self._figure(self.document.best.id, split, self.document.best.metrics, metric)

    def initial(self, split: str, metric: str = QUALITY) -> float | None:
        """A metric of the initial program on a split, likewise."""
        return self._figure("initial", split, self.document.initial.metrics, metric)

    def _figure(self, candidate: str, split: str, searched: dict[str, float] | None, metric: str) -> float | None:
        if split == SEARCHED_SPLIT:
            return (searched or {}).get(metric)
        for verdict in self.document.final:
            if verdict.id == candidate and verdict.split == split and verdict.metrics is not None:
                return verdict.metrics.get(metric)
        return None


R = TypeVar("R", bound=Timed)


class Records(Generic[R]):
    """Finished commands of one kind by their arguments, one file each."""

    def __init__(self, folder: Path, kind: type[R]) -> None:
        """Keep the place; it is made when the first record is kept."""
        self._folder = folder
        self.kind = kind

    def find(self, arguments: Sequence[str]) -> R | None:
        """What was measured with these arguments; None: nothing, or nothing that this version can read."""
        try:
            record = self.kind.model_validate_json(self._path(arguments).read_bytes())
        except (OSError, ValidationError):
            return None
        return record if record.arguments == tuple(arguments) else None

    def keep(self, record: R) -> None:
        """Write a record, whole or not at all; one with the same arguments is replaced."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(record.arguments)
        partial = path.with_suffix(".partial")
        partial.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
        partial.replace(path)

    def _path(self, arguments: Sequence[str]) -> Path:
        key = hashlib.sha256(json.dumps(list(arguments)).encode()).hexdigest()
        return self._folder / f"{key[:32]}.json"
