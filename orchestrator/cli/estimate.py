"""`evolvarium estimate`: what a run will take of its models, before it begins."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.estimates.bench import estimate_bench
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.evolution import estimate_evolution
from orchestrator.bootstrap.estimates.like import Measured, read_measured
from orchestrator.bootstrap.estimates.search import estimate_search
from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE, REPLAY_PREFIX
from orchestrator.bootstrap.places import existing_places, find_places
from orchestrator.bootstrap.runs import EVOLUTION, SEARCH, SQL_BENCH, run_store
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout, SqlBudget, methods_of, settings_of
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.cli.estimate_tables import estimate_document, estimate_parts
from orchestrator.cli.evolution_options import (
    AnswerModel,
    AnySetting,
    Bird,
    Config,
    EvolverModel,
    Given,
    Iterations,
    Jsonl,
    Packages,
    Spider,
    SplitSeed,
)
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json, TaskName, TaskRoot, path_given
from orchestrator.cli.sql_options import (
    Assignments,
    BudgetTokens,
    BudgetUsd,
    Candidates,
    CriticModel,
    Rounds,
)
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.model_access import ModelAccess
from orchestrator.errors import InputError

Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="NAME=VALUE",
        help="Assume something else; the table of assumptions has the names. May be repeated.",
        show_default=False,
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="RUN",
        help="Take what this recorded run took instead of assumptions, scaled to what is asked for here; of the models "
        "that are given here, else of its own.",
        show_default=False,
    ),
]
_METHODS = ",".join(method.value for method in Method)

estimate_app = typer.Typer(
    help="Say what a run will take of its models before it begins: requests, tokens, US dollars. Needs no key.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@with_model_options
def run(  # noqa: PLR0913 - one parameter per option
    task: TaskName,
    *,
    access: GivenAccess,
    model: Annotated[
        str | None,
        typer.Option(help="As `run --model`; default `offline`, with --like the recorded run's.", show_default=False),
    ] = None,
    islands: Annotated[int | None, typer.Option(min=1, max=64, help="Default: the task's.", show_default=False)] = None,
    commits: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Evaluations per island; default: the task's.", show_default=False),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Model requests per island; default: the task's.", show_default=False),
    ] = None,
    no_analysis: Annotated[bool, typer.Option("--no-analysis", help="Agents can only edit and commit.")] = False,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    assume: Assume = None,
    like: Like = None,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What `evolvarium run` will take.

    Expected, by the assumptions shown, and at most, by settings, context and budget. Reads the task and makes no
    request; an estimate is no limit, --budget-usd and --budget-tokens of `run` are.
    """
    measured = _measured(home, like, SEARCH, assume)
    name = model or _recorded(measured, "model") or OFFLINE
    if name.startswith(REPLAY_PREFIX):
        msg = f"a replay asks no model, so it takes nothing; name another with --model, not {name}"
        raise InputError(msg)
    choices = Choices(
        task=task,
        model=name,
        access=_access(access, None if model else measured),
        budget_usd=None if budget_usd is None else Decimal(str(budget_usd)),
        budget_tokens=budget_tokens,
    )
    settings = {
        "islands": islands,
        "commits_per_island": commits,
        "requests_per_island": requests,
        "analysis": False if no_analysis else None,
    }
    _print(estimate_search(find_places(home, task_root), choices, settings, assume or (), measured), as_json=as_json)


@with_model_options
def bench(  # noqa: PLR0913 - one parameter per option
    *,
    access: GivenAccess,
    dataset: Annotated[Layout, typer.Option(help="How the data set lies on the disk.")],
    root: Annotated[
        Path, typer.Option(parser=path_given, metavar="DIR", help="Its folder; with jsonl also the list itself.")
    ],
    questions: Annotated[
        str | None, typer.Option(metavar="NAME", help="The list of questions in it.", show_default=False)
    ] = None,
    databases: Annotated[
        str | None, typer.Option(help="Only questions of these, with commas.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many questions, spread evenly over the list.", show_default=False),
    ] = None,
    methods: Annotated[str, typer.Option(help="What to measure, with commas.")] = _METHODS,
    model: Annotated[
        str | None,
        typer.Option(
            help="As `sql bench --model`; default `offline`, with --like the recorded run's.", show_default=False
        ),
    ] = None,
    critic_model: CriticModel = None,
    rounds: Rounds = None,
    candidates: Candidates = None,
    assignments: Assignments = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    assume: Assume = None,
    like: Like = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What `evolvarium sql bench` will take.

    Reads the questions, no database: only a container may, so the length of a schema is assumed. Every question is
    taken for one that can be evaluated.
    """
    measured = _measured(home, like, SQL_BENCH, assume)
    of_run = None if model else measured
    choices = BenchChoices(
        layout=dataset,
        root=str(root.resolve()),
        question_file=questions,
        databases=None if databases is None else tuple(filter(None, databases.split(","))),
        limit=limit,
        methods=methods_of([name for name in methods.split(",") if name]),
        model=model or _recorded(measured, "model") or OFFLINE,
        critic_model=critic_model or _recorded(of_run, "critic_model"),
        access=_access(access, of_run),
        budget=SqlBudget(usd=None if budget_usd is None else Decimal(str(budget_usd)), tokens=budget_tokens),
    )
    settings = settings_of({"rounds": rounds, "candidates": candidates}, assignments or ())
    _print(estimate_bench(choices, settings, assume or (), measured), as_json=as_json)


@with_model_options
def evolve(  # noqa: PLR0913 - one parameter per option
    *,
    access: GivenAccess,
    config: Config = None,
    spider: Spider = None,
    bird: Bird = None,
    jsonl: Jsonl = None,
    package: Packages = None,
    iterations: Iterations = None,
    seed: SplitSeed = None,
    evolver_model: EvolverModel = None,
    answer_model: AnswerModel = None,
    assignments: AnySetting = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    assume: Assume = None,
    like: Like = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What `evolvarium sql evolve` will take, without what `evolvarium final` takes afterwards.

    Rounds and samples are those that the seed draws; what packages say of databases is assumed.
    """
    measured = _measured(home, like, EVOLUTION, assume)
    of_run = measured if config is None and not (evolver_model and answer_model) else None
    given = Given(
        config=config,
        datasets={Layout.SPIDER: spider, Layout.BIRD: bird, Layout.JSONL: jsonl},
        packages=package or (),
        evolver=evolver_model or _recorded(of_run, "evolver"),
        answerer=answer_model or _recorded(of_run, "answerer"),
        policy=None,
        runtime=None,
        query_seconds=None,
        workers=None,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        iterations=iterations,
        seed=seed,
        assignments=assignments or (),
        access=access,
    )
    choices, settings = given.asked()
    if of_run is not None:
        choices = choices.model_copy(update={"access": _access(access, of_run)})
    _print(estimate_evolution(choices, settings, assume or (), measured), as_json=as_json)


def _measured(home: Path | None, like: str | None, kind: str, assume: list[str] | None) -> Measured | None:
    """The recorded run of `--like`; None: assumptions count."""
    if like is None:
        return None
    if assume:
        msg = "--like measures what --assume would assume; give one of them"
        raise InputError(msg)
    return read_measured(run_store(existing_places(home)), like, kind)


def _recorded(measured: Measured | None, role: str) -> str | None:
    """The model that the recorded run asked in a role; None: there is no such run, or it says nothing of that."""
    return None if measured is None else measured.models().get(role)


def _access(given: GivenAccess, measured: Measured | None) -> ModelAccess:
    """What is said of models: here, and where a recorded run's own are taken, by that run."""
    return given.over() if measured is None else given.over(measured.access)


def _print(estimate: Estimate, *, as_json: bool) -> None:
    document = estimate_document(estimate)
    Terminal(as_json=as_json).result(document, *estimate_parts(document))


estimate_app.command("run")(run)
estimate_app.command("bench")(bench)
estimate_app.command("evolve")(evolve)
