"""The options of `evolvarium sql evolve`, and what they ask for together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.config_file import load_file, policy_given, settings_from
from orchestrator.bootstrap.sql.choices import Layout, SqlBudget
from orchestrator.cli.options import finite, path_given
from orchestrator.domain.policies import Runtime
from orchestrator.errors import InputError
from orchestrator.methods.robophd.settings import Settings
from orchestrator.runtime.strict_yaml import shown

Config = Annotated[
    Path | None,
    typer.Option(
        parser=path_given,
        metavar="FILE",
        help="A YAML file with all of it; options go before it.",
        show_default=False,
    ),
]
Spider = Annotated[
    Path | None, typer.Option(parser=path_given, metavar="DIR", help="Data in Spider's layout.", show_default=False)
]
Bird = Annotated[
    Path | None, typer.Option(parser=path_given, metavar="DIR", help="Data in BIRD's layout.", show_default=False)
]
Jsonl = Annotated[
    Path | None,
    typer.Option(parser=path_given, metavar="FILE", help="Questions as JSON lines.", show_default=False),
]
Packages = Annotated[
    list[Path] | None,
    typer.Option(
        parser=path_given, metavar="DIR", help="Begin with this package, too; may be repeated.", show_default=False
    ),
]
Iterations = Annotated[int | None, typer.Option(min=1, max=10_000, help="Default 30.", show_default=False)]
SplitSeed = Annotated[
    int | None,
    typer.Option(
        min=0, max=2**63 - 1, help="Deals out the databases and seeds every choice; default 0.", show_default=False
    ),
]
EvolverModel = Annotated[
    str | None,
    typer.Option(
        help="Makes packages; default `offline`; otherwise as `run --model`, but no ensemble.", show_default=False
    ),
]
AnswerModel = Annotated[
    str | None, typer.Option(help="Answers questions; default `offline`; likewise.", show_default=False)
]
AnySetting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting of docs/robophd.md, for instance elo.k=16; may be repeated.",
        show_default=False,
    ),
]
BranchOf = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Take over this run's iterations up to --from-iteration.", show_default=False),
]
FromIteration = Annotated[
    int | None,
    typer.Option(min=2, max=10_000, help="With --branch: the first iteration that is made anew.", show_default=False),
]
Replay = Annotated[
    str | None,
    typer.Option(
        metavar="RUN", help="Walk through this run from its journal alone, and see that all comes out the same.",
        show_default=False,
    ),
]  # fmt: skip
PolicyGiven = Annotated[
    str | None,
    typer.Option(help="Name of a policy under policies/, or a YAML file; default `default`.", show_default=False),
]
RuntimeGiven = Annotated[Runtime | None, typer.Option(help="Run everything under this runtime.", show_default=False)]
QuerySecondsGiven = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=600,
        help="Computing time of an answer's query; default 30.",
        show_default=False,
        callback=finite,
    ),
]
RunIdFile = Annotated[
    Path | None,
    typer.Option(
        parser=path_given,
        metavar="PATH",
        help="Write the run's id to this file once the run is kept.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What was given on the command line, by option; None and an empty list are not given."""

    config: Path | None
    datasets: Mapping[Layout, Path | None]
    packages: Sequence[Path]
    access: GivenAccess
    evolver: str | None
    answerer: str | None
    policy: str | None
    runtime: Runtime | None
    query_seconds: float | None
    workers: int | None
    budget_usd: float | None
    budget_tokens: int | None
    iterations: int | None
    seed: int | None
    assignments: Sequence[str]

    def asked(self) -> tuple[EvolveChoices, Settings]:
        """What file and options ask for together; the latter count where both say something.

        Raises:
            InputError: No data are given, or something of it is unknown or out of its range.
        """
        wanted = {name: value for name, value in self._choices().items() if value not in (None, ())}
        if self.config is not None:
            choices, fields = load_file(self.config, wanted)
            choices = choices.model_copy(update={"access": self.access.over(choices.access)})
            return choices, settings_from(fields, self.changes)
        if "datasets" not in wanted:
            msg = "no data are given; give --spider DIR, --bird DIR, --jsonl FILE or several of them, or --config FILE"
            raise InputError(msg)
        choices = EvolveChoices.model_validate({**wanted, "access": self.access.over()})
        return choices, settings_from({}, self.changes)

    @property
    def changes(self) -> list[tuple[str, Any]]:
        """(name, value) of the settings that are given."""
        named = {"iterations": self.iterations, "seed": self.seed}
        return [
            *((name, value) for name, value in named.items() if value is not None),
            *map(assigned, self.assignments),
        ]

    @property
    def more(self) -> dict[str, Any]:
        """Fields of the choices that a branch may have otherwise."""
        fields = {"budget": self._budget, "workers": self.workers}
        return {name: value for name, value in fields.items() if value is not None}

    def refuse(self, why: str, *, with_settings: bool) -> None:
        """Refuse options that have no meaning here.

        Args:
            why: Begins the message.
            with_settings: Also those that a branch may have.

        Raises:
            InputError: There are some.
        """
        options: dict[str, object] = {
            "--config": self.config,
            **{f"--{kind.value}": root for kind, root in self.datasets.items()},
            "--package": self.packages or None,
            "--evolver-model": self.evolver,
            "--answer-model": self.answerer,
            "--policy": self.policy,
            "--runtime": self.runtime,
            "--query-seconds": self.query_seconds,
        }
        if with_settings:
            options |= {
                "--iterations": self.iterations,
                "--seed": self.seed,
                "--set": self.assignments or None,
                "--workers": self.workers,
                "--budget-usd": self.budget_usd,
                "--budget-tokens": self.budget_tokens,
                **self.access.options,
            }
        excess = [name for name, value in options.items() if value is not None]
        if excess:
            msg = f"{why}; leave out {', '.join(excess)}"
            raise InputError(msg)

    @property
    def _budget(self) -> SqlBudget | None:
        return budget_given(self.budget_usd, self.budget_tokens)

    def _choices(self) -> dict[str, Any]:
        given = {kind: root for kind, root in self.datasets.items() if root is not None}
        return {
            "datasets": tuple(DatasetChoice(kind=kind, root=str(root.resolve())) for kind, root in given.items()),
            "packages": tuple(str(folder.resolve()) for folder in self.packages),
            "evolver": self.evolver,
            "answerer": self.answerer,
            "policy": None if self.policy is None else policy_given(self.policy, Path()),
            "runtime": self.runtime,
            "query_seconds": self.query_seconds,
            **self.more,
        }


def budget_given(usd: float | None, tokens: int | None) -> SqlBudget | None:
    """A budget; None: there is no ceiling."""
    if usd is None and tokens is None:
        return None
    return SqlBudget(usd=None if usd is None else Decimal(str(usd)), tokens=tokens)


def assigned(text: str) -> tuple[str, Any]:
    """Name and value of `NAME=VALUE`.

    Raises:
        InputError: It is none.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        msg = f"setting {shown(text)} is not NAME=VALUE, for instance elo.k=16; docs/robophd.md lists them"
        raise InputError(msg)
    try:
        return name.strip(), TypeAdapter(Any).validate_json(value)
    except ValidationError:
        return name.strip(), value.strip()
