"""`evolvarium answer`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import OFFLINE, ready_models
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.release.answering import Answered, Asked, answer_with_package
from orchestrator.bootstrap.release.folders import read_release
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.cli.ledger import taken, usage_document
from orchestrator.cli.model_options import with_model_options
from orchestrator.cli.options import Home, Json, PolicyName, RuntimeName, path_given
from orchestrator.cli.release_documents import PackageAnswerDocument
from orchestrator.cli.sql_endings import telling_way_on
from orchestrator.cli.sql_options import BudgetTokens, BudgetUsd, DatabaseFile
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Policy
from orchestrator.domain.records import to_record
from orchestrator.domain.sql import QueryStatus
from orchestrator.errors import InputError
from orchestrator.methods.robophd.answering import Phase, Source, Verdict
from orchestrator.runtime.counts import counted, times
from orchestrator.sql.shown_results import shown_cell

_CELL_CHARACTERS = 200
_MAX_QUESTION = 20_000


@with_model_options
def answer(  # noqa: PLR0913 - one parameter per option
    question: Annotated[str, typer.Argument(help="In plain words.", show_default=False)],
    *,
    access: GivenAccess,
    package: Annotated[
        Path, typer.Option(parser=path_given, metavar="DIR", help="An exported package.", show_default=False)
    ],
    db: DatabaseFile,
    evidence: Annotated[
        str, typer.Option(help="How words of the question are to be understood.", show_default=False)
    ] = "",
    model: Annotated[
        str, typer.Option(help="Answers: `offline`, `anthropic/NAME`, `openai/NAME`, or a model of a --models file.")
    ] = OFFLINE,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seeds the requests.")] = 0,
    rows: Annotated[int, typer.Option(min=0, max=10_000, help="How many rows of the result to print.")] = 20,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Answer a question of a database with an exported package.

    Its tool analyses the database once, in its sandbox; the analysis is kept for later questions. Exit code 1: there is
    no answer that ran to its end.
    """
    terminal = Terminal(as_json=as_json)
    if not question.strip() or len(question) > _MAX_QUESTION:
        msg = f"a question has 1 to {_MAX_QUESTION} characters, this one has {len(question.strip())}"
        raise InputError(msg)
    places = find_places(home, None)
    found_policy = find_policy(places, policy, runtime)
    release = read_release(package)
    budget = SqlBudget(usd=None if budget_usd is None else Decimal(str(budget_usd)), tokens=budget_tokens)
    with (
        telling_way_on("nothing of this question is kept, so ask it again then"),
        stoppable() as token,
        ready_models(
            access.over(),
            found_policy,
            [(ModelRole.ANSWERER, model)],
            in_usd=budget.usd is not None,
            token=token,
            note=terminal.note,
        ) as models,
    ):
        asked = Asked(
            release=release,
            path=db,
            question=question,
            evidence=evidence,
            model=models.find(model, ModelRole.ANSWERER),
            seed=seed,
            budget=budget,
        )
        opener = OpenFor(places=places, policy=found_policy, token=token, note=terminal.note)
        found = answer_with_package(asked, opener)
    document = _document(asked, found, found_policy, rows)
    if not document.same_image:
        terminal.note("the tool ran in an image with another content than the package was chosen with")
    if document.tool_failure is not None:
        terminal.note(f"the tool failed on this database ({document.tool_failure}); analysis: {document.analysis}")
    terminal.result(document, *answer_parts(document))
    if not document.answered:
        raise typer.Exit(1)


def _document(asked: Asked, found: Answered, policy: Policy, rows: int) -> PackageAnswerDocument:
    answer_, result = found.answer, found.result
    failure = found.analysis.tool.failure
    return PackageAnswerDocument(
        question=asked.question,
        database=found.database,
        digest=found.digest,
        package=asked.release.manifest.name,
        manifest=asked.release.manifest.digest,
        approved_by=[approval.by for approval in found.approvals],
        answered=answer_.status is QueryStatus.OK,
        ending=answer_.ending.value,
        sql=answer_.sql,
        status=None if answer_.status is None else answer_.status.value,
        message="" if result is None else result.message,
        columns=[] if result is None else list(result.columns),
        rows=[]
        if result is None
        else [[shown_cell(cell, _CELL_CHARACTERS) for cell in row] for row in result.rows[:rows]],
        row_count=0 if result is None else len(result.rows),
        truncated=result is not None and result.truncated,
        attempts=[to_record(attempt) for attempt in answer_.attempts],
        analysis=found.analysis.source.value,
        analysis_kept=found.was_kept,
        tool_failure=None if failure is None else failure.value,
        model=asked.model.name,
        seed=asked.seed,
        policy=policy.name,
        hidden=len(found.access.hidden),
        same_image=found.is_same_image,
        requests=found.requests,
        usage=usage_document(found.usage),
    )


def answer_parts(document: PackageAnswerDocument) -> list[Rows | str]:
    """An answer as people read it, with who has looked at it, which is little, and what it took."""
    return [*_answer(document), *taken([document.model], document.requests, document.usage)]


def _answer(document: PackageAnswerDocument) -> list[Rows | str]:
    if not document.answered:
        why = document.message or document.ending
        return [*([document.sql, ""] if document.sql else []), f"No answer: {why}."]
    more = document.row_count - len(document.rows)
    count = counted(document.row_count, "row") + (f", {more} not shown" if more else "")
    table = Rows(title=f"Answer ({count})", columns=document.columns, rows=document.rows)
    return [document.sql, "", table, _checked(document), f"Package {document.package}; {_analysed(document)}."]


def _checked(document: PackageAnswerDocument) -> str:
    """What the answering model made of its own result, and that nobody else has seen it."""
    verdicts = [attempt["verdict"] for attempt in document.attempts if attempt["phase"] == Phase.VERIFY]
    is_repaired = any(
        attempt["phase"] == Phase.REPAIR and attempt["verdict"] == Verdict.QUERY for attempt in document.attempts
    )
    looked = "the model did not look at its result"
    if verdicts:
        is_kept = verdicts[-1] == Verdict.CORRECT
        did = "kept it" if is_kept else "did not say that it keeps it"
        looked = f"the model looked at its result {times(len(verdicts))} and {did}"
        changes = verdicts.count(Verdict.QUERY)
        if changes:
            seen = f"its result{'' if len(verdicts) == 1 else 's'} {times(len(verdicts))}"
            looked = f"the model looked at {seen}, changed its query {times(changes)}"
            looked += " and kept the last" if is_kept else " and did not look at the last result"
    repaired = ", then repaired its query and did not look at the result" if is_repaired else ""
    return f"It may be wrong: {looked}{repaired}. Nobody else has checked it; there is no critic to doubt it."


def _analysed(document: PackageAnswerDocument) -> str:
    if document.analysis == Source.NONE:
        return "there is no analysis of the database"
    if document.analysis == Source.HYBRID:
        return "a model analysed the database, since the tool failed"
    when = "kept from an earlier question" if document.analysis_kept else "made for this question, and kept"
    return f"its tool's analysis of the database was {when}"
