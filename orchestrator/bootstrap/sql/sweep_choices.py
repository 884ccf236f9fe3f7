"""What a sweep was asked for beside its file, and the data sets that come of both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from orchestrator.bootstrap.sql.choices import BenchChoices, CommonChoices
from orchestrator.bootstrap.sql.data import BenchData, load_data
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.sweep_file import SweepDataset, SweepFile

METHODS = (Method.EVOSQL, Method.MAJORITY)
"""The second is what all variants are compared with; it asks nothing of its own."""


class SweepChoices(CommonChoices):
    """Options of `sql sweep`; part of the run's record."""

    data: str
    """Folder that the roots of the data sets lie below."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Of every data set, instead of its own limit; None: its own."""
    output: str | None = None
    """Folder that table and plot are written into at the end, also where the sweep is resumed; None: nowhere."""
    force: bool = False
    """Whether what is there may be overwritten."""

    def of(self, dataset: SweepDataset) -> BenchChoices:
        """As a bench on one of the data sets would be asked for."""
        return BenchChoices(
            layout=dataset.kind,
            root=str(Path(self.data, dataset.root)),
            question_file=dataset.questions,
            databases=None if dataset.databases is None else tuple(dataset.databases),
            limit=self.limit or dataset.limit,
            methods=METHODS,
            **{name: getattr(self, name) for name in CommonChoices.model_fields},
        )


def load_all(file: SweepFile, choices: SweepChoices) -> list[tuple[BenchData, BenchChoices]]:
    """The data sets of a sweep.

    Raises:
        InputError: As `load_data`.
    """
    return [(load_data(one, layout_is_given_by="kind: {}"), one) for one in map(choices.of, file.datasets)]
