"""What a `task.yaml` may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.domain.candidates import check_path
from orchestrator.domain.policies import Limits, Policy, Purpose
from orchestrator.domain.written_settings import Number, WrittenSettings
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import complaint


def _safe(path: str) -> str:
    try:
        return check_path(path)
    except InputError as error:
        raise ValueError(str(error)) from error


_IDENTIFIER = r"^[a-z][a-z0-9_]{0,47}$"
_MESSAGE_ID = r"^[a-z][a-z0-9_-]{0,47}$"
_LINE = r"^[^\x00-\x1f\x7f]+$"
PATTERNS = {
    _IDENTIFIER: "must be up to 48 lower-case letters, digits and '_', a letter first",
    _MESSAGE_ID: "must be up to 48 lower-case letters, digits, '_' and '-', a letter first",
    _LINE: "must be one line of text without control characters",
}
"""What the regular expressions below ask for, in words."""
Identifier = Annotated[str, Field(pattern=_IDENTIFIER)]
"""A name that may become part of a path, a label or a key."""
MessageId = Annotated[str, Field(pattern=_MESSAGE_ID)]
"""What `Refused` is raised with."""
Text = Annotated[str, Field(min_length=1, max_length=300, pattern=_LINE)]
"""One line of the task author's words."""
SafePath = Annotated[str, AfterValidator(_safe)]
"""A relative path inside the package."""
DType = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
]  # fmt: skip
"""Types of the array elements that cross the boundary."""


class ProgramSpec(WrittenSettings):
    """The files a candidate consists of."""

    folder: SafePath = "initial"
    """Holds the initial program; every file in it is a file of the candidate."""
    entry: SafePath = "program.py"
    """The module that is evaluated, relative to `folder`."""


class ArgumentSpec(WrittenSettings):
    """One argument of a function: a scalar per instance, or an array per instance if `ragged`."""

    name: Identifier
    dtype: DType
    ragged: bool = False


class ReturnSpec(WrittenSettings):
    """What a function returns: a scalar per instance, or an array as long as the ragged argument `like`."""

    dtype: DType
    like: Identifier | None = None
    finite: bool = True
    """False: infinities and NaN reach the evaluator, which must then judge them itself."""
    minimum: Annotated[float | None, Field(allow_inf_nan=False)] = None
    maximum: Annotated[float | None, Field(allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _leaves_something(self) -> Self:
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            msg = f"`minimum` is {self.minimum:g} and `maximum` is {self.maximum:g}, which no value meets; swap them"
            raise ValueError(msg)
        return self


class FunctionSpec(WrittenSettings):
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


class QualitySpec(WrittenSettings):
    """The figure that people read; selection uses `fitness`."""

    metric: Identifier
    direction: Literal["minimize", "maximize"]
    unit: Annotated[str, Field(max_length=20)] = ""
    label: Text


class FeatureSpec(WrittenSettings):
    """A metric that spans the grid, over the fixed range [0, 1]."""

    metric: Identifier
    bins: Annotated[int, Field(ge=2, le=100)] = 10


class _Split(BaseModel):  # nothing but text; what tells the kinds apart takes no validator of `WrittenSettings`
    model_config = ConfigDict(extra="forbid", frozen=True)


class GeneratedSplit(_Split):
    """Data that `generate` of the evaluator makes from a seed nobody outside the installation knows."""

    source: Literal["generated"]
    title: Text


class FilesSplit(_Split):
    """Data from files that the user has; they are not part of the package."""

    source: Literal["files"]
    title: Text
    files: Annotated[dict[SafePath, SafePath], Field(min_length=1, max_length=16)]
    """Name in the evaluator's data folder to place under a data root, for instance `or_library/binpack1.txt`."""


class BudgetSpec(WrittenSettings):
    """Defaults per island."""

    commits: Annotated[int, Field(ge=1, le=100_000)] = 30
    analyses_per_commit: Annotated[int, Field(ge=0, le=1000)] = 10
    requests: Annotated[int, Field(ge=1, le=100_000)] = 333
    idle_turns: Annotated[int, Field(ge=1, le=1000)] = 5
    """An island stops after this many turns in a row without a tool call."""


class IslandSpec(WrittenSettings):
    """Defaults of the search."""

    count: Annotated[int, Field(ge=1, le=64)] = 3
    migration_interval: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Commits of an island between two migrations."""
    migration_percent: Annotated[float, Field(gt=0, le=100)] = 25
    """Share of the neighbours' pooled elites that is shown."""


class Inconsistent(ValueError):
    """Parts of a `task.yaml` that do not fit together."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Keep a sentence per problem."""
        super().__init__("; ".join(texts))
        self.texts = tuple(texts)


class TaskSpec(WrittenSettings):
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
    messages: Annotated[dict[MessageId, Text], Field(max_length=64)] = Field(default_factory=dict)
    """What `Refused(id)` may tell a model, by id."""
    limits: dict[Purpose, dict[str, Number]] = Field(default_factory=dict)
    """Fields of a policy's limits, per purpose; a task may only tighten them."""
    budgets: BudgetSpec = BudgetSpec()
    islands: IslandSpec = IslandSpec()

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        found = list(inconsistencies(dict(self)))
        if found:
            raise Inconsistent(found)
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


def inconsistencies(fields: Mapping[str, Any]) -> Iterator[str]:
    """What does not fit together, a sentence each.

    Args:
        fields: Of a `TaskSpec`, each well formed by itself; what needs an absent one is not checked.
    """
    if "metrics" in fields:
        yield from _undeclared_metrics(fields)
    grid = [feature.metric for feature in fields.get("features", ())]
    if len(set(grid)) != len(grid) or fields.get("fitness") in grid:
        yield f"`features` are {grid}; each must differ from the others and from the fitness {fields.get('fitness')!r}"
    splits = fields.get("splits")
    if splits is not None and "search_split" in fields and fields["search_split"] not in splits:
        yield f"`search_split` is {fields['search_split']!r}; declared splits are {list(splits)}"
    for purpose, limits in fields.get("limits", {}).items():
        yield from _wrong_limits(f"limits.{purpose.value}", limits)


def _undeclared_metrics(fields: Mapping[str, Any]) -> Iterator[str]:
    used = {} if "fitness" not in fields else {"fitness": fields["fitness"]}
    if "quality" in fields:
        used["quality.metric"] = fields["quality"].metric
    used |= {f"features.{index}.metric": feature.metric for index, feature in enumerate(fields.get("features", ()))}
    for field, metric in used.items():
        if metric not in fields["metrics"]:
            yield f"`{field}` is {metric!r}; it must be one of the declared `metrics` {list(fields['metrics'])}"


def _wrong_limits(field: str, limits: Mapping[str, float]) -> Iterator[str]:
    try:
        Limits.model_validate(limits)
    except ValidationError as error:
        yield from (complaint(detail, below=field) for detail in error.errors())
