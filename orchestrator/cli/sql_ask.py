"""`evolvarium sql ask`."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import typer

from orchestrator.bootstrap.models import OFFLINE, find_model
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.sql.ask import Answered, Asking, answer_question
from orchestrator.bootstrap.sql.choices import SqlBudget, settings_of
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.cli.options import Home, Json, PolicyName, RuntimeName
from orchestrator.cli.sql_documents import SqlAnswerDocument
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
from orchestrator.cli.sql_summaries import usage_document
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.domain.sql import QueryResult
from orchestrator.errors import BudgetExhausted, InputError
from orchestrator.methods.evosql import Ending, Event, Progress
from orchestrator.sql.shown_results import shown_cell

_CELL_CHARACTERS = 200
_MAX_QUESTION = 20_000


def ask(  # noqa: PLR0913 - one parameter per option
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In plain words.")],
    db: DatabaseFile,
    *,
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
    if not question.strip() or len(question) + len(evidence) > _MAX_QUESTION:
        msg = f"the question has {len(question)} characters, its evidence {len(evidence)}; give 1 to {_MAX_QUESTION}"
        raise InputError(msg)
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
    usd = None if budget_usd is None else Decimal(str(budget_usd))
    asking = Asking(
        path=db,
        question=question,
        evidence=evidence,
        settings=settings,
        generator=find_model(model),
        critic=find_model(critic_model or model),
        budget=SqlBudget(usd=usd, tokens=budget_tokens),
        on_event=lambda progress: _tell(terminal, progress),
    )
    with stoppable() as token:
        answered = answer_question(asking, OpenFor(places=places, policy=found, token=token, note=terminal.note))
    document = _document(asking, answered, policy=found.name, rows=rows, explain=explain)
    parts = explanation_parts(answered.explanation) if explain else []
    terminal.result(document, *_parts(document), *parts)
    if answered.refusal is not None:
        terminal.note(answered.refusal)
    if Ending(document.ending) is Ending.BUDGET:
        raise typer.Exit(BudgetExhausted.exit_code)
    if not document.answered:
        raise typer.Exit(1)


def _tell(terminal: Terminal, progress: Progress) -> None:
    what = {Event.PROPOSED: "proposed and run", Event.JUDGED: "judged"}.get(progress.event)
    if what is not None:
        terminal.note(f"round {progress.round}: {what}")


def _document(asking: Asking, answered: Answered, *, policy: str, rows: int, explain: bool) -> SqlAnswerDocument:
    solution = answered.solution
    result = answered.result or QueryResult(status=solution.answer.execution.status)
    best = [entry.outcome for entry in solution.best]
    chosen, critique = solution.rounds[-1].assessment.answer, solution.answer.critique
    return SqlAnswerDocument(
        question=asking.question,
        database=answered.database,
        digest=answered.digest,
        answered=solution.answer.is_valid,
        sql=solution.answer.sql,
        status=None if answered.result is None else result.status.value,
        message=result.message,
        columns=list(result.columns),
        rows=[[shown_cell(cell, _CELL_CHARACTERS) for cell in row] for row in result.rows[:rows]],
        row_count=len(result.rows),
        truncated=result.truncated,
        ending=solution.ending.value,
        rounds=len(solution.rounds),
        candidates=len(solution.entries),
        supporting=best.count(solution.answer.execution.cluster),
        of_best=len(best),
        confidence=chosen.confidence,
        confident=chosen.confidence >= asking.settings.confidence_threshold,
        doubts=[] if critique is None else [issue.problem for issue in critique.issues],
        model=asking.generator.name,
        critic_model=asking.critic.name,
        seed=asking.settings.seed,
        policy=policy,
        hidden=len(answered.access.hidden),
        sqlite=answered.sqlite_version,
        requests=answered.requests,
        usage=usage_document(answered.usage),
        explanation=answered.explanation if explain else None,
    )


def _parts(document: SqlAnswerDocument) -> list[Rows | str]:
    if not document.sql:
        return ["No candidate held a query.", _how(document)]
    parts: list[Rows | str] = [document.sql, ""]
    if document.answered:
        parts.append(_result(document))
    else:
        parts.append(f"No candidate ran to its end; this one: {document.status}, {document.message}")
    if document.answered and not document.confident:
        parts += ["", _doubt(document)]
    return [*parts, "", _how(document)]


def _doubt(document: SqlAnswerDocument) -> str:
    doubts = "; ".join(document.doubts)
    return f"Doubtful: the critic gives it {document.confidence:g} of 10{': ' + doubts if doubts else ''}."


def _result(document: SqlAnswerDocument) -> Rows | str:
    if not document.rows:
        return "The result has no rows."
    shown, kept = len(document.rows), document.row_count
    more = f", the first {shown} of {kept}{' that are kept' if document.truncated else ''}" if shown < kept else ""
    title = f"{document.row_count} row{'s' if kept != 1 else ''}{' and more' if document.truncated else ''}{more}"
    return Rows(title=title, columns=document.columns, rows=[list(map(_shown, row)) for row in document.rows])


def _shown(cell: Any) -> object:  # noqa: ANN401 - a cell
    return "NULL" if cell is None else str(cell)


def _how(document: SqlAnswerDocument) -> str:
    ending = {
        "stable": "its best candidates agreed with confidence",
        "rounds": "all rounds were made",
        "budget": "the budget was spent",
    }[document.ending]
    agreeing = f"; {document.supporting} of the best {document.of_best} give this result" if document.answered else ""
    hidden = f" Policy {document.policy} keeps back {document.hidden} columns." if document.hidden else ""
    return (
        f"{'Found' if document.answered else 'Looked for'} in {document.rounds} of EvoSQL's rounds with "
        f"{document.candidates} candidates: {ending}{agreeing}.{hidden}"
    )
