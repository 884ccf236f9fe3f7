"""What may be chosen about a run; the defaults are those of the paper's heuristic experiments."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """Everything but the task, the model and the policy; part of the run's record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """Seeds every request of the run."""
    islands: Annotated[int, Field(ge=1, le=64)] = 3
    commits_per_island: Annotated[int, Field(ge=1, le=100_000)] = 30
    """Formal evaluations an island may spend; duplicates cost none."""
    analyses_per_commit: Annotated[int, Field(ge=1, le=1000)] = 10
    requests_per_island: Annotated[int, Field(ge=1, le=1_000_000)] = 333
    """Model requests an island may make, those for handoffs included."""
    idle_turns: Annotated[int, Field(ge=1, le=1000)] = 5
    """An island stops after this many turns without a tool call in a row."""
    migration_interval: Annotated[int, Field(ge=1, le=100_000)] = 10
    """In evaluated commits of an island."""
    migration_fraction: Annotated[float, Field(gt=0, le=1)] = 0.25
    """The share of the neighbours' pooled elites that is shown, best first; at least one."""
    migration_wait_seconds: Annotated[float, Field(gt=0, le=7 * 86_400)] = 6 * 3600.0
    """An island waits this long for its neighbours; then the run pauses."""
    async_islands: bool = False
    """Take the elites that the neighbours have at the moment, instead of waiting for their k-th migration."""
    bins: Annotated[int, Field(ge=1, le=1000)] = 10
    """Of the grid, per feature."""
    compaction_request: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Share of the model's context from which on a commit's answer asks to end the turn."""
    compaction_force: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the model's context at which the turn is cancelled."""
    max_output_tokens: Annotated[int, Field(ge=256, le=1_000_000)] = 32_000
    """Of one reply, reasoning included."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """None: the provider's default."""
    analysis: bool = True
    """False: the No-analysis configuration."""
    stop_seconds: Annotated[float, Field(gt=0, le=86_400)] = 900.0
    """When one island fails, the others have this long to finish the steps they are in."""

    @model_validator(mode="after")
    def _asked_before_forced(self) -> Self:
        if self.compaction_request > self.compaction_force:
            msg = (
                f"compaction_request {self.compaction_request} is over compaction_force {self.compaction_force}; "
                "a compaction must be asked for before it is forced"
            )
            raise ValueError(msg)
        return self

    @property
    def method(self) -> str:
        """Name of the method in records and reports."""
        return "agentic-evolve" if self.analysis else "agentic-evolve-no-analysis"
