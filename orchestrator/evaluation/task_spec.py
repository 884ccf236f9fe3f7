"""What a `task.yaml` may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.domain.candidates import check_path
from orchestrator.domain.policies import Limits, Policy, Purpose
from orchestrator.errors import InputError


def _safe(path: str) -> str:
    try:
        return check_path(path)
    except InputError as error:
        raise ValueError(str(error)) from error


Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
"""A name that may become part of a path, a label or a key."""
MessageId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,47}$")]
"""What `Refused` is raised with."""
Text = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""One line of the task author's words."""
SafePath = Annotated[str, AfterValidator(_safe)]
"""A relative path inside the package."""
DType = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
]  # fmt: skip
"""Types of the array elements that cross the boundary."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProgramSpec(_Strict):
    """The files a candidate consists of."""

    folder: SafePath = "initial"
    """Holds the initial program; every file in it is a file of the candidate."""
    entry: SafePath = "program.py"
    """The module that is evaluated, relative to `folder`."""


class ArgumentSpec(_Strict):
    """One argument of a function: a scalar per instance, or an array per instance if `ragged`."""

    name: Identifier
    dtype: DType
    ragged: bool = False


class ReturnSpec(_Strict):
    """What a function returns: a scalar per instance, or an array as long as the ragged argument `like`."""

    dtype: DType
    like: Identifier | None = None
    finite: bool = True
    """False: infinities and NaN reach the evaluator, which must then judge them itself."""
    minimum: Annotated[float | None, Field(allow_inf_nan=False)] = None
    maximum: Annotated[float | None, Field(allow_inf_nan=False)] = None


class FunctionSpec(_Strict):
    """A function of the program that the evaluator calls."""

    arguments: Annotated[list[ArgumentSpec], Field(min_length=1, max_length=32)]
    returns: ReturnSpec

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [argument.name for argument in self.arguments]
        if len(set(names)) != len(names):
            msg = f"argument names repeat: {names}; give each its own"
            raise ValueError(msg)
        ragged = [argument.name for argument in self.arguments if argument.ragged]
        if self.returns.like is not None and self.returns.like not in ragged:
            msg = f"`returns.like` is {self.returns.like!r}; it must be one of the ragged arguments {ragged}"
            raise ValueError(msg)
        return self


class QualitySpec(_Strict):
    """The figure that people read; selection uses `fitness`."""

    metric: Identifier
    direction: Literal["minimize", "maximize"]
    unit: Annotated[str, Field(max_length=20)] = ""
    label: Text


class FeatureSpec(_Strict):
    """A metric that spans the grid, over the fixed range [0, 1]."""

    metric: Identifier
    bins: Annotated[int, Field(ge=2, le=100)] = 10


class GeneratedSplit(_Strict):
    """Data that `generate` of the evaluator makes from a seed nobody outside the installation knows."""

    source: Literal["generated"]
    title: Text


class FilesSplit(_Strict):
    """Data from files that the user has; they are not part of the package."""

    source: Literal["files"]
    title: Text
    files: Annotated[dict[SafePath, SafePath], Field(min_length=1, max_length=16)]
    """Name in the evaluator's data folder to place under a data root, for instance `or_library/binpack1.txt`."""


class BudgetSpec(_Strict):
    """Defaults per island."""

    commits: Annotated[int, Field(ge=1, le=100_000)] = 30
    analyses_per_commit: Annotated[int, Field(ge=0, le=1000)] = 10
    requests: Annotated[int, Field(ge=1, le=100_000)] = 333
    idle_turns: Annotated[int, Field(ge=1, le=1000)] = 5
    """An island stops after this many turns in a row without a tool call."""


class IslandSpec(_Strict):
    """Defaults of the search."""

    count: Annotated[int, Field(ge=1, le=64)] = 3
    migration_interval: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Commits of an island between two migrations."""
    migration_percent: Annotated[float, Field(gt=0, le=100)] = 25
    """Share of the neighbours' pooled elites that is shown."""


class TaskSpec(_Strict):
    """A `task.yaml`; paths are relative to its folder."""

    version: Literal[1]
    name: Identifier
    """Equal to the folder's name."""
    title: Text
    description: SafePath = "description.md"
    """Shown to models, as it stands."""
    program: ProgramSpec = ProgramSpec()
    functions: Annotated[dict[Identifier, FunctionSpec], Field(min_length=1, max_length=16)]
    metrics: Annotated[dict[Identifier, Text], Field(min_length=1, max_length=32)]
    """Every figure that `evaluate` returns, with its meaning: exactly these names, all finite."""
    fitness: Identifier
    """The metric that selection maximises."""
    quality: QualitySpec
    features: Annotated[list[FeatureSpec], Field(min_length=1, max_length=4)]
    evaluator: SafePath = "evaluator"
    """Folder of trusted code, with `evaluate.py`."""
    public: SafePath | None = None
    """Folder of data that analyses may read in `data/`; null: there are none."""
    splits: Annotated[
        dict[Identifier, Annotated[GeneratedSplit | FilesSplit, Field(discriminator="source")]],
        Field(min_length=1, max_length=16),
    ]
    search_split: Identifier = "hidden"
    """The split that commits are scored on."""
    messages: Annotated[dict[MessageId, Text], Field(max_length=64)] = {}
    """What `Refused(id)` may tell a model, by id."""
    limits: dict[Purpose, dict[str, float]] = {}
    """Fields of a policy's limits, per purpose; a task may only tighten them."""
    budgets: BudgetSpec = BudgetSpec()
    islands: IslandSpec = IslandSpec()

    @model_validator(mode="after")
    def _names_are_declared(self) -> Self:
        used = {"fitness": self.fitness, "quality.metric": self.quality.metric}
        used |= {f"features.{index}.metric": feature.metric for index, feature in enumerate(self.features)}
        for field, metric in used.items():
            if metric not in self.metrics:
                msg = f"`{field}` is {metric!r}; it must be one of the declared `metrics` {list(self.metrics)}"
                raise ValueError(msg)
        grid = [feature.metric for feature in self.features]
        if len(set(grid)) != len(grid) or self.fitness in grid:
            msg = f"`features` are {grid}; each must differ from the others and from the fitness {self.fitness!r}"
            raise ValueError(msg)
        if self.search_split not in self.splits:
            msg = f"`search_split` is {self.search_split!r}; declared splits are {list(self.splits)}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _limits_are_limits(self) -> Self:
        wrong = []
        for purpose, fields in self.limits.items():
            try:
                Limits.model_validate(fields)
            except ValidationError as error:
                wrong += [
                    f"`limits.{purpose.value}.{'.'.join(map(str, detail['loc']))}` is {detail['input']!r:.80}: "
                    + detail["msg"]
                    for detail in error.errors()
                ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def over(self, policy: Policy) -> list[str]:
        """The limits that are above the policy's, a sentence each: the policy's hold instead."""
        return [
            f"`limits.{purpose.value}.{name}` is {value:g}, above the {allowed:g} that policy {policy.name!r} grants; "
            f"{allowed:g} is in force, unless a run chooses a policy that grants more"
            for purpose, wanted in self.limits.items()
            if purpose in policy.purposes
            for name, value in wanted.items()
            if value > (allowed := getattr(policy.purposes[purpose].limits, name))
        ]

    def tightened(self, granted: Limits, purpose: Purpose) -> Limits:
        """The policy's limits for a purpose, lowered where the task asks for less."""
        wanted = self.limits.get(purpose, {})
        return Limits.model_validate(
            {name: min(value, wanted.get(name, value)) for name, value in granted.model_dump().items()}
        )
