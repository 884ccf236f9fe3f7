"""`evolvarium final`: packages on the databases that nothing was decided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.robophd.final import NO_CEILING, FinalRequest, score_final
from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.bootstrap.robophd.running import Watch
from orchestrator.bootstrap.runs import run_store
from orchestrator.cli.evolution_options import budget_given
from orchestrator.cli.evolution_parts import final_parts
from orchestrator.cli.evolution_progress import followed
from orchestrator.cli.evolution_summaries import evolution_document, final_document
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json, RunName
from orchestrator.cli.sql_endings import explaining, telling_way_on
from orchestrator.cli.sql_options import BudgetTokens, BudgetUsd
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal


@with_model_options
def final(
    run: RunName,
    *,
    access: GivenAccess,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help="A package's id; may be repeated. Default: the champion and those the run began with.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="An answer model; may be repeated. Default: the run's.", show_default=False),
    ] = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Score packages of an evolution on its final databases, each once for every answer model.

    The first call opens the final databases, and the run's journal says so. A score that is there is shown, and never
    made again: what was chosen by looking at final figures would be no final figure any more.
    """
    places = find_places(home, None)
    terminal = Terminal(as_json=as_json)
    wanted: set[tuple[str, str]] = set()

    def on_score(record: Mapping[str, Any]) -> None:
        wanted.add((record["package"], record["model"]))

    request = FinalRequest(
        packages=tuple(agent or ()),
        models=tuple(model or ()),
        budget=budget_given(budget_usd, budget_tokens) or NO_CEILING,
        given=access,
    )
    way_on = f"what was scored is kept: call `evolvarium final {run}` again then"
    with explaining(places), telling_way_on(way_on), followed(terminal) as progress, stoppable() as token:
        watch = Watch(token=token, note=progress.note, on_event=progress.event)
        run_id = score_final(places, run, request, watch, on_score)
    with run_store(places).open(run_id, read_only=True) as journal:
        results = read_results(run_id, journal)
    document = final_document(results, frozenset(wanted))
    terminal.final(document, *final_parts(document, evolution_document(results)))
