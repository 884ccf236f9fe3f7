"""What a run was asked for, as its record keeps it."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.bootstrap.model_choices import NO_ACCESS, RecordedAccess
from orchestrator.domain.budgets import Budget
from orchestrator.domain.policies import Runtime
from orchestrator.errors import InputError
from orchestrator.evaluation.task_spec import TaskSpec
from orchestrator.methods.agentic_evolve import Settings

_SMALLEST_USD = Decimal("0.000001")


class Choices(BaseModel):
    """Options of `run` that are not settings of the method; part of the run's record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    """Name or folder, as it was given."""
    model: str = "offline"
    policy: str = "default"
    """Name or file, as it was given."""
    runtime: Runtime | None = None
    public_seed: bool = False
    data: str | None = None
    """File or folder that splits from files are looked for in."""
    final_splits: tuple[str, ...] | None = None
    """None: every split but the one that guides the search, as far as its data can be had."""
    budget_usd: Annotated[Decimal, Field(ge=0)] | None = None
    """Of the whole run; divided equally among the islands, so that their order cannot matter."""
    budget_tokens: Annotated[int, Field(ge=0)] | None = None
    """Likewise."""
    access: RecordedAccess = NO_ACCESS
    """Where its models are, and what they cost."""
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    """Evaluations and analyses that run at once; None: one per processor of the machine."""
    batch: str | None = None
    """Id of the batch that it is a member of; None: it is of none."""

    def budget_per_island(self, islands: int) -> Budget:
        """Each island's share."""
        usd = None if self.budget_usd is None else (self.budget_usd / islands).quantize(_SMALLEST_USD, ROUND_DOWN)
        return Budget(usd=usd, tokens=None if self.budget_tokens is None else self.budget_tokens // islands)


def method_settings(spec: TaskSpec, **chosen: Any) -> Settings:  # noqa: ANN401 - fields of Settings
    """The task's defaults, with what was chosen in their place; None is not chosen.

    Raises:
        InputError: A value is out of its range.
    """
    defaults: dict[str, Any] = {
        "islands": spec.islands.count,
        "commits_per_island": spec.budgets.commits,
        "requests_per_island": spec.budgets.requests,
        "idle_turns": spec.budgets.idle_turns,
        "migration_interval": spec.islands.migration_interval,
        "migration_fraction": spec.islands.migration_percent / 100,
        "bins": spec.features[0].bins,
    }
    if spec.budgets.analyses_per_commit:
        defaults["analyses_per_commit"] = spec.budgets.analyses_per_commit
    else:
        defaults["analysis"] = False
    try:
        return Settings.model_validate(defaults | {name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "settings"
        msg = f"{name} {first['input']!r}: {first['msg']}"
        raise InputError(msg) from error
