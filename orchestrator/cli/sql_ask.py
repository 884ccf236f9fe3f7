"""`evolvarium sql ask`."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Annotated

import typer

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE, ready_models
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.sql.ask import Asking, answer_question
from orchestrator.bootstrap.sql.choices import SqlBudget, settings_of
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json, PolicyName, RuntimeName
from orchestrator.cli.sql_answers import answer_document, answer_parts, nothing_passed_over
from orchestrator.cli.sql_endings import telling_way_on
from orchestrator.cli.sql_explanations import explanation_parts
from orchestrator.cli.sql_options import (
    Assignments,
    BudgetTokens,
    BudgetUsd,
    Candidates,
    CriticModel,
    DatabaseFile,
    GeneratorModel,
    Mode,
    Rounds,
    Scores,
    Seed,
    Temperature,
)
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.model_access import ModelRole
from orchestrator.errors import BudgetExhausted, InputError
from orchestrator.methods.evosql import Ending, Event, Progress

_MAX_QUESTION = 20_000


@with_model_options
def ask(  # noqa: PLR0913 - one parameter per option
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In plain words.")],
    db: DatabaseFile,
    *,
    access: GivenAccess,
    evidence: Annotated[str, typer.Option(help="What one must know to understand the question.")] = "",
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
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    rows: Annotated[int, typer.Option(min=1, max=1000, help="Rows of the result to show.")] = 20,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show rounds, critiques, clusters and utilities.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask a question of a database: the query, its result, and how it was found.

    Queries run in sealed containers on a read-only copy without what the policy hides. Exit code 1: no candidate ran to
    its end. Nothing is kept but the audit records.
    """
    _require_question(question, evidence)
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
    places = find_places(home, None)
    found = find_policy(places, policy, runtime)
    terminal = Terminal(as_json=as_json)
    budget = SqlBudget(usd=None if budget_usd is None else Decimal(str(budget_usd)), tokens=budget_tokens)
    wanted = [(ModelRole.GENERATOR, model), (ModelRole.CRITIC, critic_model or model)]
    with (
        telling_way_on("nothing of this question is kept, so ask it again then"),
        stoppable() as token,
        ready_models(
            access.over(), found, wanted, in_usd=budget.usd is not None, token=token, note=terminal.note
        ) as models,
    ):
        generator, critic = (models.find(name, role) for role, name in wanted)
        asking = Asking(
            path=db,
            question=question,
            evidence=evidence,
            settings=settings,
            generator=generator,
            critic=critic,
            budget=budget,
            on_event=lambda progress: tell(terminal, progress),
        )
        answered = answer_question(asking, OpenFor(places=places, policy=found, token=token, note=terminal.note))
    document = answer_document(asking, answered, policy=found.name, rows=rows, explain=explain)
    explained = [*explanation_parts(answered.explanation), *nothing_passed_over(document)] if explain else []
    terminal.result(document, *answer_parts(document), *explained)
    if answered.refusal is not None:
        terminal.note(answered.refusal)
    if Ending(document.ending) is Ending.BUDGET:
        raise typer.Exit(BudgetExhausted.exit_code)
    if not document.answered:
        raise typer.Exit(1)


def _require_question(question: str, evidence: str) -> None:
    if not question.strip():
        msg = "the question is empty; say in plain words what you want to know"
        raise InputError(msg)
    characters = len(question) + len(evidence)
    if characters > _MAX_QUESTION:
        msg = f"question and evidence have {characters} characters together; give at most {_MAX_QUESTION}"
        raise InputError(msg)


def tell(terminal: Terminal, progress: Progress) -> None:
    """A line for each step, for people who wait; in a log they say nothing that the answer does not."""
    if not sys.stderr.isatty():
        return
    what = {Event.PROPOSED: "proposed and run", Event.JUDGED: "judged"}.get(progress.event)
    if what is not None:
        terminal.note(f"round {progress.round}: {what}")
