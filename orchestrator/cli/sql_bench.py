"""`evolvarium sql bench`, and what `resume` and `show` do with such a run."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE
from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.runs import run_store
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.bootstrap.sql.bench import Begun, begin_bench, resume_bench
from orchestrator.bootstrap.sql.choices import QUERY_SECONDS, BenchChoices, Layout, SqlBudget, methods_of, settings_of
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.bootstrap.sql.running import Ended, Watch
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json, PolicyName, RuntimeName, path_given
from orchestrator.cli.sql_bench_parts import bench_end_parts
from orchestrator.cli.sql_endings import exit_as, explaining
from orchestrator.cli.sql_options import (
    Assignments,
    BudgetTokens,
    BudgetUsd,
    Candidates,
    CriticModel,
    GeneratorModel,
    Mode,
    QuerySeconds,
    QuestionsAtOnce,
    Rounds,
    Scores,
    Seed,
    Temperature,
)
from orchestrator.cli.sql_progress import BENCH, followed
from orchestrator.cli.sql_summaries import bench_document
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal

_METHODS = "evosql,self_evolution,majority,best_of_k"


@with_model_options
def bench(  # noqa: PLR0913 - one parameter per option
    *,
    access: GivenAccess,
    dataset: Annotated[Layout, typer.Option(help="How the data set lies on the disk.")],
    root: Annotated[
        Path,
        typer.Option(parser=path_given, metavar="DIR", help="Its folder; with jsonl also the list itself."),
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
    model: GeneratorModel = OFFLINE,
    critic_model: CriticModel = None,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    seed: Seed = None,
    rounds: Rounds = None,
    candidates: Candidates = None,
    temperature: Temperature = None,
    critic_mode: Mode = None,
    critic_scores: Scores = None,
    assignments: Assignments = None,
    query_seconds: QuerySeconds = QUERY_SECONDS,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    workers: QuestionsAtOnce = None,
    run_id_file: Annotated[
        Path | None,
        typer.Option(
            parser=path_given,
            metavar="PATH",
            help="Write the run's id to this file once the run is kept.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Measure EvoSQL and its baselines on a data set, all on the same first-round candidates.

    Progress goes to stderr; where stdout is no terminal, or with --json, one JSON object goes there at the end (see
    docs/json.md). The run is kept: `evolvarium resume` continues it after any interruption, `evolvarium show RUN`
    prints all its tables, with `--questions failed` the questions that failed, with a question's id that question. A
    budget is divided equally among the questions. Exit code 1: a gold query is not right when it is judged like a
    prediction, so that the figures cannot be trusted; 2: no question can be evaluated.
    """
    places = find_places(home, None)
    if run_id_file is not None:
        require_target(run_id_file, force=True)
    choices = BenchChoices(
        layout=dataset,
        root=str(root.resolve()),
        question_file=questions,
        databases=None if databases is None else tuple(filter(None, databases.split(","))),
        limit=limit,
        methods=methods_of([name for name in methods.split(",") if name]),
        model=model,
        critic_model=critic_model,
        policy=policy,
        runtime=runtime,
        query_seconds=query_seconds,
        budget=SqlBudget(usd=None if budget_usd is None else Decimal(str(budget_usd)), tokens=budget_tokens),
        access=access.over(),
        workers=workers,
    )
    settings = settings_of(
        {
            "seed": seed,
            "rounds": rounds,
            "candidates": candidates,
            "temperature": temperature,
            "critic_mode": critic_mode,
            "critic_scores": critic_scores,
        },
        assignments or (),
    )
    _follow(places, as_json, lambda watch: begin_bench(places, choices, settings, watch), run_id_file)


def resume(places: Places, name: str, access: GivenAccess, *, as_json: bool) -> None:
    """Continue a bench; ends like `sql bench`."""
    _follow(places, as_json, lambda watch: resume_bench(places, name, watch, access))


def _follow(
    places: Places, as_json: bool, work: Callable[[Watch[Begun]], Ended], run_id_file: Path | None = None
) -> None:
    terminal = Terminal(as_json=as_json)
    with explaining(places) as started, followed(terminal, BENCH) as progress, stoppable() as token:

        def on_start(begun: Begun) -> None:
            started(begun.run_id)
            if run_id_file is not None:
                write_text(run_id_file, f"{begun.run_id}\n", force=True)  # that of an earlier run is replaced
            progress.start(begun)

        watch = Watch(
            token=token,
            note=progress.note,
            on_start=on_start,
            on_total=progress.total,
            on_outcome=progress.outcome,
        )
        ended = work(watch)
    with run_store(places).open(ended.run_id, read_only=True) as journal:
        view = read_bench(ended.run_id, journal)
        document = bench_document(view, ended.containers_left, read_ledger(journal))
    terminal.final(document, *bench_end_parts(document))
    exit_as(terminal, gold_disagreeing=document.gold_disagreeing, state=document.state)
