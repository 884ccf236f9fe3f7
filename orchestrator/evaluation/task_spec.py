"""What a `task.yaml` may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from orchestrator.domain.candidates import check_path
from orchestrator.domain.policies import Limits, Policy, Purpose
from orchestrator.domain.written_settings import Number, WrittenSettings
from orchestrator.errors import InputError
from orchestrator.evaluation.task_signatures import NAME, FunctionSpec
from orchestrator.runtime.complaints import complaint


def _safe(path: str) -> str:
    try:
        return check_path(path)
    except InputError as error:
        raise ValueError(str(error)) from error


_IDENTIFIER = r"^[a-z][a-z0-9_]{0,47}$"
_PACKAGE = r"^[a-z][a-z0-9_]{0,47}(/[A-Za-z][A-Za-z0-9_]{0,47})?$"
_MESSAGE_ID = r"^[a-z][a-z0-9_-]{0,47}$"
_LINE = r"^[^\x00-\x1f\x7f]+$"
PATTERNS = {
    _IDENTIFIER: "must be up to 48 lower-case letters, digits and '_', a letter first",
    NAME: "must be up to 48 letters, digits and '_', a letter first",
    _PACKAGE: "must be up to 48 lower-case letters, digits and '_', a letter first",
    _MESSAGE_ID: "must be up to 48 lower-case letters, digits, '_' and '-', a letter first",
    _LINE: "must be one line of text without control characters",
}
"""What the regular expressions below ask for, in words."""
Identifier = Annotated[str, Field(pattern=_IDENTIFIER)]
"""A name that may become part of a path, a label or a key."""
PackageName = Annotated[str, Field(pattern=_PACKAGE)]
"""Of a task; one of a family begins with the family's name and a slash."""
MessageId = Annotated[str, Field(pattern=_MESSAGE_ID)]
"""What `Refused` is raised with."""
Text = Annotated[str, Field(min_length=1, max_length=300, pattern=_LINE)]
"""One line of the task author's words."""
SafePath = Annotated[str, AfterValidator(_safe)]
"""A relative path inside the package."""


class ProgramSpec(WrittenSettings):
    """The files a candidate consists of."""

    folder: SafePath = "initial"
    """Holds the initial program; every file in it is a file of the candidate."""
    entry: SafePath = "program.py"
    """The module that is evaluated, relative to `folder`."""


class QualitySpec(WrittenSettings):
    """The figure that people read; selection uses `fitness`."""

    metric: Identifier
    direction: Literal["minimize", "maximize"]
    unit: Annotated[str, Field(max_length=20)] = ""
    label: Text


class FinalChoiceSpec(WrittenSettings):
    """How the final candidate is chosen, where it is not the one of the highest fitness (`search/final_choice.py`)."""

    rule: Literal["exact", "paper"]
    error: Identifier
    """The metric that is the error, at least 0."""
    size: Identifier
    """The metric that is the size."""


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
    seeded: bool = True
    """False: `generate` makes the same data of every seed, so whoever has the package can have them: no secret."""


class FilesSplit(_Split):
    """Data from files that the user has; they are not part of the package."""

    source: Literal["files"]
    title: Text
    files: Annotated[dict[SafePath, SafePath], Field(min_length=1, max_length=16)]
    """Name in the evaluator's data folder to place under a data root, for instance `or_library/binpack1.txt`."""


class PublicSplit(WrittenSettings):
    """Files of a generated split that analyses may read; nothing else of the split is shown."""

    split: Identifier
    files: Annotated[list[SafePath], Field(min_length=1, max_length=16)]


def _kind_of_public(value: object) -> str:
    return "files" if isinstance(value, Mapping | PublicSplit) else "folder"


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
    name: PackageName
    """Equal to the folder's name; of a member of a family, `family/member`."""
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
    final_choice: FinalChoiceSpec | None = None
    """null: the final candidate is the one of the highest fitness."""
    features: Annotated[list[FeatureSpec], Field(min_length=1, max_length=4)]
    evaluator: SafePath = "evaluator"
    """Folder of trusted code, with `evaluate.py`."""
    public: (
        Annotated[
            Annotated[SafePath, Tag("folder")] | Annotated[PublicSplit, Tag("files")], Discriminator(_kind_of_public)
        ]
        | None
    ) = None
    """Folder of data that analyses may read in `data/`, or files of a generated split; null: there are none."""
    splits: Annotated[
        dict[Identifier, Annotated[GeneratedSplit | FilesSplit, Field(discriminator="source")]],
        Field(min_length=1, max_length=16),
    ]
    search_split: Identifier = "hidden"
    """The split that commits are scored on."""
    assessment: Annotated[dict[Identifier, Text], Field(max_length=32)] = Field(default_factory=dict)
    """Everything that `assess` returns, with its meaning; empty: the evaluator has no `assess`."""
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
    public = fields.get("public")
    if isinstance(public, PublicSplit) and splits is not None:
        generated = [name for name, split in splits.items() if split.source == "generated"]
        if public.split not in generated:
            yield f"`public.split` is {public.split!r}; it must be one of the generated splits {generated}"
    for purpose, limits in fields.get("limits", {}).items():
        yield from _wrong_limits(f"limits.{purpose.value}", limits)


def _undeclared_metrics(fields: Mapping[str, Any]) -> Iterator[str]:
    used = {} if "fitness" not in fields else {"fitness": fields["fitness"]}
    if "quality" in fields:
        used["quality.metric"] = fields["quality"].metric
    if fields.get("final_choice") is not None:
        used |= {f"final_choice.{part}": getattr(fields["final_choice"], part) for part in ("error", "size")}
    used |= {f"features.{index}.metric": feature.metric for index, feature in enumerate(fields.get("features", ()))}
    for field, metric in used.items():
        if metric not in fields["metrics"]:
            yield f"`{field}` is {metric!r}; it must be one of the declared `metrics` {list(fields['metrics'])}"


def _wrong_limits(field: str, limits: Mapping[str, float]) -> Iterator[str]:
    try:
        Limits.model_validate(limits)
    except ValidationError as error:
        yield from (complaint(detail, below=field) for detail in error.errors())
