"""`evolvarium sql evolve`, and what `resume` and `show` do with such a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer import Exit

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.places import Places, find_places
from orchestrator.bootstrap.robophd.branching import branch_evolution
from orchestrator.bootstrap.robophd.config_file import settings_from
from orchestrator.bootstrap.robophd.replaying import replay_evolution
from orchestrator.bootstrap.robophd.results import EvolutionResults, read_results
from orchestrator.bootstrap.robophd.running import Begun, Ended, Watch, begin_evolution, resume_evolution
from orchestrator.bootstrap.robophd.scores import read_scores
from orchestrator.bootstrap.runs import run_store
from orchestrator.bootstrap.sql.choices import Layout
from orchestrator.cli.evolution_options import (
    AnswerModel,
    AnySetting,
    Bird,
    BranchOf,
    Config,
    EvolverModel,
    FromIteration,
    Given,
    Iterations,
    Jsonl,
    Packages,
    PolicyGiven,
    QuerySecondsGiven,
    Replay,
    RunIdFile,
    RuntimeGiven,
    Spider,
    SplitSeed,
)
from orchestrator.cli.evolution_parts import evolution_parts, package_files, package_parts, replay_lines
from orchestrator.cli.evolution_progress import followed
from orchestrator.cli.evolution_summaries import evolution_document, evolved_package_document, replay_document
from orchestrator.cli.files import require_target, write_text
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json
from orchestrator.cli.sql_endings import explaining
from orchestrator.cli.sql_options import BudgetTokens, BudgetUsd, QuestionsAtOnce
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import BudgetExhausted, InputError, RunStateError
from orchestrator.methods.robophd.members import load_member, newcomer_id
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import Journal

BEST = "best"
"""Name of the champion, where `show` asks for a package."""


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
    branch: BranchOf = None,
    from_iteration: FromIteration = None,
    replay: Replay = None,
    policy: PolicyGiven = None,
    runtime: RuntimeGiven = None,
    query_seconds: QuerySecondsGiven = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    workers: QuestionsAtOnce = None,
    run_id_file: RunIdFile = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Evolve packages of a database-analysis tool and instructions, and choose a champion (RoboPhD).

    The databases are dealt out by --seed: most for contests, some to choose the champion by, some for final figures,
    which `evolvarium final RUN` opens once. Progress goes to stderr; where stdout is no terminal, or with --json, one
    JSON object goes there at the end (see docs/json.md). The run is kept: `evolvarium resume` continues it.
    """
    places = find_places(home, None)
    given = Given(
        config=config,
        datasets={Layout.SPIDER: spider, Layout.BIRD: bird, Layout.JSONL: jsonl},
        packages=package or (),
        access=access,
        evolver=evolver_model,
        answerer=answer_model,
        policy=policy,
        runtime=runtime,
        query_seconds=query_seconds,
        workers=workers,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        iterations=iterations,
        seed=seed,
        assignments=assignments or (),
    )
    if replay is not None:
        _replayed(places, replay, given, branch, from_iteration, run_id_file, as_json=as_json)
        return
    if run_id_file is not None:
        require_target(run_id_file, force=True)
    if branch is not None or from_iteration is not None:
        _follow(places, as_json, _branched(places, branch, from_iteration, given), run_id_file)
        return
    choices, settings = given.asked()
    _follow(places, as_json, lambda watch: begin_evolution(places, choices, settings, watch), run_id_file)


def resume(places: Places, name: str, access: GivenAccess, *, as_json: bool) -> None:
    """Continue an evolution; ends like `sql evolve`."""
    _follow(places, as_json, lambda watch: resume_evolution(places, name, watch, access))


def show_evolution(
    terminal: Terminal, run_id: str, journal: Journal, *, package: str | None = None, output: Path | None = None
) -> None:
    """Print an evolution, or one of its packages.

    Args:
        terminal: Where to.
        run_id: Of the evolution.
        journal: Of it.
        package: Id of one package, or `best` for the champion; None: all of it.
        output: Refused, with the way out.

    Raises:
        InputError: Something was to be written.
        RunStateError: The run is damaged, or there is no such package, or not yet.
    """
    if output is not None:
        agent = "" if package in (None, BEST) else f" --agent {package}"
        msg = f"-o writes candidates of a search; `evolvarium export {run_id}{agent} -o DIR` writes a package"
        raise InputError(msg)
    results = read_results(run_id, journal)
    if package is None:
        document = evolution_document(results)
        terminal.result(document, *evolution_parts(document))
        return
    named = {member.id for member in results.members}
    wanted = results.champion if package == BEST and BEST not in named else package
    if wanted is None:
        msg = f"run {run_id} has not ended, so it has no champion; `evolvarium resume {run_id}` ends it"
        raise InputError(msg)
    if wanted not in named:
        _require_no_newcomer(results, wanted)
    member = load_member(wanted, journal)
    one = evolved_package_document(results, member.id, read_scores(run_id, journal, member.id))
    if not terminal.as_json:
        terminal.note(*package_parts(one))
    terminal.result(one, *package_files(one))


def _require_no_newcomer(results: EvolutionResults, package: str) -> None:
    """Say of a package that an iteration was to make how it stands with it.

    Raises:
        RunStateError: It is being made, or came to nothing.
    """
    iteration = next((one for one in results.iterations if newcomer_id(one.number) == package), None)
    if iteration is None or iteration.strategy is None:
        return
    if iteration.failure is not None:
        number, failure = iteration.number, iteration.failure
        msg = f"there is no package {package!r}: the evolution of iteration {number} failed: {failure}"
        raise RunStateError(msg)
    msg = (
        f"package {package!r} is being made in iteration {iteration.number} of run {results.run_id}; look again once "
        f"it is there, or, if the run has stopped, `evolvarium resume {results.run_id}` goes on"
    )
    raise RunStateError(msg)


def _branched(places: Places, branch: str | None, from_iteration: int | None, given: Given) -> Callable[[Watch], Ended]:
    if branch is None or from_iteration is None:
        msg = "--branch RUN and --from-iteration N belong together; give both"
        raise InputError(msg)
    given.refuse("a branch keeps data, packages, models and policy of its run", with_settings=False)
    changes = given.changes

    def change(settings: Settings) -> Settings:
        return settings_from(settings.model_dump(mode="json"), changes)

    return lambda watch: branch_evolution(places, branch, from_iteration, watch, change, given.more, given.access)


def _replayed(
    places: Places,
    name: str,
    given: Given,
    branch: str | None,
    from_iteration: int | None,
    run_id_file: Path | None,
    *,
    as_json: bool,
) -> None:
    given.refuse("a replay has everything from its run", with_settings=True)
    more = {"--branch": branch, "--from-iteration": from_iteration, "--run-id-file": run_id_file}
    excess = [option for option, value in more.items() if value is not None]
    if excess:
        msg = f"a replay makes no run; leave out {', '.join(excess)}"
        raise InputError(msg)
    terminal = Terminal(as_json=as_json)
    with followed(terminal) as progress, stoppable() as token:
        watch = Watch(token=token, note=progress.note, on_start=progress.start, on_event=progress.event)
        replayed = replay_evolution(places, name, watch)
    document = replay_document(replayed)
    terminal.result(document, replay_lines(document))


def _follow(places: Places, as_json: bool, work: Callable[[Watch], Ended], run_id_file: Path | None = None) -> None:
    terminal = Terminal(as_json=as_json)
    with explaining(places) as started, followed(terminal) as progress, stoppable() as token:

        def on_start(begun: Begun) -> None:
            started(begun.run_id)
            if run_id_file is not None:
                write_text(run_id_file, f"{begun.run_id}\n", force=True)  # that of an earlier run is replaced
            progress.start(begun)

        ended = work(Watch(token=token, note=progress.note, on_start=on_start, on_event=progress.event))
    with run_store(places).open(ended.run_id, read_only=True) as journal:
        document = evolution_document(
            read_results(ended.run_id, journal),
            spent=ended.spent,
            refusal=ended.refusal,
            containers_left=ended.containers_left,
        )
    terminal.final(document, *evolution_parts(document))
    if document.state == "budget-spent":
        refused = "" if document.refusal is None else f": {document.refusal}"
        terminal.note(f"the budget ended the run{refused}; what was done stays done, and a branch goes on from it")
        raise Exit(BudgetExhausted.exit_code)
