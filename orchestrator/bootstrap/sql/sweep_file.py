"""What a sweep is: data sets, a base, and what is varied, as one YAML file says it."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.bootstrap.sql.choices import Layout, PathText, no_setting
from orchestrator.errors import InputError
from orchestrator.methods.evosql import Settings
from orchestrator.methods.evosql.grid import MAX_VARIANTS, Variant, crossed, paper_catalogue, variants_of
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.strict_yaml import MAX_BYTES, load_yaml
from orchestrator.runtime.user_files import read_file

REFERENCE = "docs/sweeps/small.yaml"


class SweepDataset(BaseModel):
    """Questions that every variant answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,31}$")] | None = None
    """In tables and figures; None: that of its kind."""
    kind: Layout
    root: PathText
    """Its folder, below `--data`; of `jsonl` also the list itself."""
    questions: PathText | None = None
    """Name of the list of questions; None: the kind's own."""
    databases: Annotated[list[str], Field(min_length=1)] | None = None
    """Only questions of these; None: of all."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many questions, spread evenly over the list; None: all."""

    @property
    def label(self) -> str:
        """Its name."""
        return self.name or self.kind.value


class SweepFile(BaseModel):
    """A whole file; names of settings are those of `docs/text-to-sql.md`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: Annotated[list[SweepDataset], Field(min_length=1, max_length=2)]
    """With two of them, accuracy on the one is drawn against accuracy on the other."""
    base: dict[str, Any] = Field(default={})
    """Settings of every variant that does not say otherwise; what is not named has its default."""
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default={})
    """Setting to values; every combination is a variant."""
    catalogue: Literal["paper"] | None = None
    """Further variants: what the paper varies."""
    variants: list[dict[str, Any]] = Field(default=[])
    """Further variants, each the settings that it changes."""

    @model_validator(mode="after")
    def _require_names(self) -> Self:
        labels = [dataset.label for dataset in self.datasets]
        if len(set(labels)) < len(labels):
            msg = f"both data sets are called {labels[0]!r}; give one of them a `name`"
            raise ValueError(msg)
        return self

    @property
    def settings(self) -> Settings:
        """Of the base.

        Raises:
            ValidationError: A name is unknown or a value out of its range.
        """
        return Settings.model_validate(self.base)

    def expanded(self) -> tuple[Variant, ...]:
        """Every variant once; the base only where something says that it is one.

        Raises:
            InputError: There are too many.
            ValidationError: As `settings`.
        """
        count = prod(map(len, self.grid.values()))
        if count > MAX_VARIANTS:
            msg = f"the grid has {count} combinations; at most {MAX_VARIANTS} are tried in one sweep"
            raise InputError(msg)
        departures = [] if not self.grid and (self.variants or self.catalogue) else list(crossed(self.grid))
        departures += self.variants
        if self.catalogue == "paper":
            departures += paper_catalogue()
        variants = variants_of(self.settings, departures)
        if len(variants) > MAX_VARIANTS:
            msg = f"there are {len(variants)} variants; at most {MAX_VARIANTS} are tried in one sweep"
            raise InputError(msg)
        return variants


def load_sweep(path: Path) -> SweepFile:
    """The sweep in a file, whose variants are known to be well formed.

    Raises:
        InputError: The file cannot be read, is not strict YAML, or is no sweep; the message says where and why.
    """
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        msg = f"cannot read the sweep {str(path)!r}: {error.strerror}; give the path of a YAML file"
        raise InputError(msg) from error
    return parse_sweep(raw, str(path))


def _require_settings(file: SweepFile) -> None:
    """See that everything that is called a setting is one, place by place.

    Raises:
        InputError: One is not, or has a value out of its range; the message names the place.
    """
    places = {"base": file.base}
    for name, values in file.grid.items():
        places |= {f"grid.{name}.{number}": {name: value} for number, value in enumerate(values)}
    places |= {f"variants.{number}": variant for number, variant in enumerate(file.variants)}
    for place, fields in places.items():
        where = "grid" if place.startswith("grid.") else place
        for name in fields:
            if name not in Settings.model_fields:
                msg = f"`{where}`: {no_setting(name)}"
                raise InputError(msg)
        try:
            Settings.model_validate(fields)
        except ValidationError as error:
            msg = complaint(error.errors(include_url=False)[0], below=where)
            raise InputError(msg) from error


def parse_sweep(raw: bytes, source: str) -> SweepFile:
    """The sweep in YAML text; otherwise as `load_sweep`.

    Args:
        raw: UTF-8.
        source: For messages.
    """
    document = load_yaml(raw, source)
    if not isinstance(document, dict):
        msg = f"{source}: a sweep is a mapping with `datasets` and what is varied; {REFERENCE} has an example"
        raise InputError(msg)
    try:
        file = SweepFile.model_validate(document)
        _require_settings(file)
        file.expanded()
    except ValidationError as error:
        msg = f"{source}: " + "; ".join(complaint(detail) for detail in error.errors()[:5])
        raise InputError(msg) from error
    except InputError as error:
        msg = f"{source}: {error}"
        raise InputError(msg) from error
    return file
