"""What an evolution was asked for, as its record keeps it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.bootstrap.model_choices import NO_ACCESS, RecordedAccess
from orchestrator.bootstrap.models import Wanted
from orchestrator.bootstrap.sql.choices import QUERY_SECONDS, Layout, PathText, SqlBudget
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Runtime

Share = Annotated[int, Field(ge=1, le=1000)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetChoice(_Section):
    """Questions and databases."""

    kind: Layout
    root: PathText
    """Its folder; of `jsonl` also the list itself."""
    questions: PathText | None = None
    """Name of the list of questions; None: the kind's own."""
    databases: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Only questions of these; None: of all."""


class Branch(_Section):
    """Where a run goes on from another one."""

    run: str
    """Id of the other."""
    from_iteration: Annotated[int, Field(ge=2)]
    """The first iteration that is made anew."""
    after_final: bool = False
    """Whether the final databases had been opened in the other run: whoever branched it may have known the figures."""


class CommonEvolveChoices(_Section):
    """What options and a file can ask for."""

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1, max_length=8)]
    shares: tuple[Share, Share, Share] = (7, 3, 3)
    """Of the databases, by number: for contests, for choosing the champion, and for the final figures."""
    packages: tuple[str, ...] = ()
    """Folders of packages that take part from the beginning, beside the naive one."""
    evolver: str = "offline"
    """Name of the model that makes packages."""
    answerer: str = "offline"
    """Name of the model that answers questions."""
    policy: str = "default"
    runtime: Runtime | None = None
    query_seconds: Annotated[float, Field(gt=0, le=600)] = QUERY_SECONDS
    """CPU time of a predicted query, at most what the policy's data rule grants."""
    budget: SqlBudget = SqlBudget()
    """Of the whole run."""
    access: RecordedAccess = NO_ACCESS
    """Where its models are, and what they cost."""
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    """Questions at once; None: one per processor of the machine."""


class EvolveChoices(CommonEvolveChoices):
    """Options of `sql evolve` that are not settings of the method; part of the run's record."""

    branch: Branch | None = None
    """None: it began on its own."""

    @property
    def wanted(self) -> Wanted:
        """The models that are asked."""
        return [(ModelRole.EVOLVER, self.evolver), (ModelRole.ANSWERER, self.answerer)]
