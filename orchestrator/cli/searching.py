"""`evolvarium run` and `evolvarium resume`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE, REPLAY_PREFIX
from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.runs import BATCH, EVOLUTION, SQL_BENCH, SQL_SWEEP, find_run, in_words, kind_of, run_store
from orchestrator.bootstrap.search import Finished, Watch, begin, resume
from orchestrator.bootstrap.search_replay import replay
from orchestrator.cli.batches import require_a_task, run_all
from orchestrator.cli.batches import resume as resume_whole_batch
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.history import read_view
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import (
    Data,
    Home,
    Json,
    OrLibrary,
    PolicyName,
    PublicSeed,
    RunName,
    RuntimeName,
    TaskName,
    TaskRoot,
    Workers,
    data_given,
    finite,
    path_given,
)
from orchestrator.cli.progress import followed
from orchestrator.cli.search_endings import explained_search, refusal_in_words
from orchestrator.cli.sql_bench import resume as resume_bench
from orchestrator.cli.sql_evolve import resume as resume_evolution
from orchestrator.cli.sql_sweep import resume as resume_sweep
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.summaries import fruitless, run_document, score_rows, spent_rows, unimproved
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import BudgetExhausted, EvolvariumError, InputError
from orchestrator.evaluation.tasks import Task
from orchestrator.methods.agentic_evolve import Settings

_MEASUREMENTS = {SQL_BENCH: resume_bench, SQL_SWEEP: resume_sweep, EVOLUTION: resume_evolution}
NO_SPLITS = "none"
"""What `--final-splits` says where nothing is to be measured."""


@with_model_options
def run(  # noqa: PLR0913 - one parameter per option
    task: TaskName,
    *,
    access: GivenAccess,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="TASK is a family: run each of its members in turn. Spending limits are for all together.",
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Seeds every random choice; default 0.", show_default=False)
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="`offline`, `anthropic/NAME`, `openai/NAME`, a model or ensemble of a --models file, or `replay/RUN` "
            "to make a recorded run again without any container."
        ),
    ] = OFFLINE,
    islands: Annotated[int | None, typer.Option(min=1, max=64, help="Default: the task's.", show_default=False)] = None,
    commits: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Evaluations per island; default: the task's.", show_default=False),
    ] = None,
    analyses: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Analyses per commit; default: the task's.", show_default=False),
    ] = None,
    migration_interval: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Commits of an island between two migrations; default: the task's.",
            show_default=False,
        ),
    ] = None,
    no_analysis: Annotated[bool, typer.Option("--no-analysis", help="Agents can only edit and commit.")] = False,
    requests: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Model requests per island; default: the task's.", show_default=False),
    ] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stop before spending more than this, over all islands.",
            show_default=False,
            callback=finite,
        ),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Stop before using more tokens than this, over all islands.", show_default=False),
    ] = None,
    public_seed: PublicSeed = False,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    data: Data = None,
    or_library: OrLibrary = None,
    final_splits: Annotated[
        str | None,
        typer.Option(
            help="Splits to measure at the end, with commas, or `none`; default all that are available.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    run_id_file: Annotated[
        Path | None,
        typer.Option(
            parser=path_given,
            metavar="PATH",
            help="Write the run's id to this file once the run is kept.",
            show_default=False,
        ),
    ] = None,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Search for better programs on a task, or with --all on every task of a family.

    Progress goes to stderr; where stdout is no terminal, or with --json, one JSON object goes there at the end (see
    docs/json.md). The run is kept: `resume` continues it after any interruption, `show` and `report` read it.
    """
    places = find_places(home, task_root)
    if run_id_file is not None:
        require_target(run_id_file, force=True)
    if model.startswith(REPLAY_PREFIX):
        _refuse_with_replay(
            {"--seed": seed, "--islands": islands, "--commits": commits, "--analyses": analyses,
             "--migration-interval": migration_interval, "--requests": requests, "--budget-usd": budget_usd,
             "--budget-tokens": budget_tokens, "--data": data, "--or-library": or_library,
             "--final-splits": final_splits, "--runtime": runtime, "--no-analysis": no_analysis or None,
             "--public-seed": public_seed or None, "--all": every or None, **access.options}
        )  # fmt: skip
        source = model.removeprefix(REPLAY_PREFIX)
        _follow(places, as_json, lambda watch: replay(places, source, task, watch), run_id_file)
        return
    files = data_given(data, or_library)
    choices = Choices(
        task=task,
        model=model,
        policy=policy,
        runtime=runtime,
        public_seed=public_seed,
        data=None if files is None else str(files.resolve()),
        final_splits=None if final_splits is None else named_splits(final_splits),
        budget_usd=None if budget_usd is None else Decimal(str(budget_usd)),
        budget_tokens=budget_tokens,
        access=access.over(),
        workers=workers,
    )
    settings = {
        "seed": seed,
        "islands": islands,
        "commits_per_island": commits,
        "analyses_per_commit": analyses,
        "requests_per_island": requests,
        "migration_interval": migration_interval,
        "analysis": False if no_analysis else None,
    }
    if no_analysis and analyses is not None:
        msg = "--analyses and --no-analysis exclude each other; give one of them"
        raise InputError(msg)
    if every:
        run_all(places, choices, settings, as_json=as_json, run_id_file=run_id_file)
        return
    require_a_task(places, task)
    _follow(places, as_json, lambda watch: begin(places, choices, settings, watch), run_id_file)


@with_model_options
def resume_run(
    *,
    access: GivenAccess,
    run_name: RunName = "latest",
    accept_policy_change: Annotated[
        bool,
        typer.Option("--accept-policy-change", help="Go on although the policy is not the one the run began with."),
    ] = False,
    task_root: TaskRoot = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Continue a run, also one of `sql bench`, `sql sweep` or `sql evolve`, or a batch, after a crash or a stop.

    It goes on from its journal. Refused when the task's evaluator, an image or the policy has changed since; of the
    last three, when anything has. Ends like the command that began it. What is said about language models counts
    instead of what was said before: so a run goes on whose model has moved, was renamed or wants another key.
    """
    places = find_places(home, task_root)
    kind = _kind(places, run_name)
    if kind == BATCH:
        resume_whole_batch(places, run_name, access, as_json=as_json, accept_policy_change=accept_policy_change)
        return
    measurement = _MEASUREMENTS.get(kind)
    if measurement is not None:
        if accept_policy_change:
            msg = (
                f"the figures of {in_words(kind)} are one measurement under one policy; leave out "
                "--accept-policy-change"
            )
            raise InputError(msg)
        measurement(places, run_name, access, as_json=as_json)
        return
    _follow(
        places,
        as_json,
        lambda watch: resume(places, run_name, watch, accept_policy_change=accept_policy_change, given=access),
    )


def _kind(places: Places, name: str) -> str:
    store = run_store(places)
    with store.open(find_run(store, name), read_only=True) as journal:
        return kind_of(journal)


def named_splits(splits: str) -> tuple[str, ...]:
    """The splits of `--final-splits`.

    Raises:
        InputError: A name is empty.
    """
    if splits == NO_SPLITS:
        return ()
    names = tuple(name.strip() for name in splits.split(","))
    if not all(names):
        msg = f"--final-splits {splits!r} has an empty name; name splits with commas between, or write {NO_SPLITS}"
        raise InputError(msg)
    return names


def _refuse_with_replay(options: dict[str, Any]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        msg = f"a replay takes its settings from the recorded run; leave out {', '.join(given)}"
        raise InputError(msg)


def _follow(
    places: Places, as_json: bool, search: Callable[[Watch], Finished], run_id_file: Path | None = None
) -> None:
    """Search, show progress, print the final object, and exit as it ended."""
    terminal = Terminal(as_json=as_json)
    started: list[str] = []
    try:
        with followed(terminal, places) as progress, stoppable() as token:

            def on_start(run_id: str, settings: Settings, task: Task) -> None:
                started.append(run_id)
                if run_id_file is not None:
                    write_text(run_id_file, f"{run_id}\n", force=True)  # that of an earlier run is replaced
                progress.start(run_id, settings, task)

            watch = Watch(
                token=token,
                on_start=on_start,
                on_event=progress.event,
                note=progress.note,
                on_work=progress.work,
            )
            finished = search(watch)
    except EvolvariumError as error:
        explained = explained_search(error, started, places)
        if explained is error:
            raise
        raise explained from error
    with run_store(places).open(finished.run_id, read_only=True) as journal:
        view = read_view(finished.run_id, journal)
    document = run_document(view, finished.containers_left)
    if finished.refusal is not None:
        terminal.note(refusal_in_words(finished.refusal, view, document))
    closing = [*fruitless(document), *unimproved(document)]
    terminal.final(document, score_rows(view, document), spent_rows(document), *closing)
    if document.state == "budget-spent":
        raise typer.Exit(BudgetExhausted.exit_code)
