"""What a sweep was asked for beside its file, and the data sets that come of both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.bootstrap.sql.choices import QUERY_SECONDS, BenchChoices, SqlBudget
from orchestrator.bootstrap.sql.data import BenchData, load_data
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.sweep_file import SweepDataset, SweepFile
from orchestrator.domain.policies import Runtime

METHODS = (Method.EVOSQL, Method.MAJORITY)
"""The second is what all variants are compared with; it asks nothing of its own."""


class SweepChoices(BaseModel):
    """Options of `sql sweep`; part of the run's record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str
    """Folder that the roots of the data sets lie below."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Of every data set, instead of its own limit; None: its own."""
    model: str = "offline"
    critic_model: str | None = None
    """None: the same."""
    policy: str = "default"
    runtime: Runtime | None = None
    query_seconds: Annotated[float, Field(gt=0, le=600)] = QUERY_SECONDS
    """CPU time of a predicted query, at most what the policy's data rule grants."""
    budget: SqlBudget = SqlBudget()
    """Of the whole run."""
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    """Questions at once; None: one per processor of the machine."""

    def of(self, dataset: SweepDataset) -> BenchChoices:
        """As a bench on one of the data sets would be asked for."""
        return BenchChoices(
            layout=dataset.kind,
            root=str(Path(self.data, dataset.root)),
            question_file=dataset.questions,
            databases=None if dataset.databases is None else tuple(dataset.databases),
            limit=self.limit or dataset.limit,
            methods=METHODS,
            model=self.model,
            critic_model=self.critic_model,
            policy=self.policy,
            runtime=self.runtime,
            query_seconds=self.query_seconds,
            budget=self.budget,
            workers=self.workers,
        )


def load_all(file: SweepFile, choices: SweepChoices) -> list[tuple[BenchData, BenchChoices]]:
    """The data sets of a sweep.

    Raises:
        InputError: As `load_data`.
    """
    return [(load_data(one), one) for one in map(choices.of, file.datasets)]
