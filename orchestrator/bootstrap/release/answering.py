"""`answer`: a question of a database with an exported package, and none of the code that evolves packages.

The tool's analysis of a database is kept for later questions; what a tool fails at is found out anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from orchestrator.bootstrap.places import writable_home
from orchestrator.bootstrap.release.approvals import require_approval
from orchestrator.bootstrap.release.folders import Release
from orchestrator.bootstrap.release.kept_analyses import KeptAnalyses
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.opening import OpenFor, open_with_bench, require_file
from orchestrator.bootstrap.sql.scratch import scratch_folder
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import Usage
from orchestrator.domain.data_access import Access
from orchestrator.domain.policies import Purpose
from orchestrator.domain.releases import Approval
from orchestrator.domain.sql import QueryResult
from orchestrator.errors import InputError, PolicyError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.methods.robophd.answering import (
    Analysis,
    Answer,
    AnswerContext,
    analyse,
    answer,
    brief_on,
    read_result,
)
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.ports import Database, DatabaseTools, LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Steps
from orchestrator.storage.journal import SqliteJournal

_ID = "answer"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, and with what it is answered."""

    release: Release
    path: Path
    question: str
    evidence: str
    model: LanguageModel
    seed: int
    budget: SqlBudget


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer, whatever running it gave."""

    database: str
    digest: str
    """Of the volume that was asked."""
    access: Access
    approvals: tuple[Approval, ...]
    """That let the package answer; none where the policy asks for none."""
    analysis: Analysis
    was_kept: bool
    """Whether the analysis was there already."""
    answer: Answer
    result: QueryResult | None
    """Of the answer; None: there is no query."""
    usage: Usage
    requests: int
    is_same_image: bool
    """Whether the tool's image has the file tree that the package was chosen with."""


def answer_with_package(asked: Asked, opener: OpenFor) -> Answered:
    """Answer a question. Nothing is kept but the tool's analysis and the audit records of the containers.

    Raises:
        PolicyError: Approvals are missing, or the policy grants no tool or not this database.
        InputError: The package's settings are of another version, or it is no database.
        BudgetExhausted: The budget does not cover the answer.
        EvolvariumError: Otherwise as a model request, and as the sandbox.
    """
    require_file(asked.path)
    approvals = require_approval(asked.release, opener.policy)
    if Purpose.TOOL not in opener.policy.purposes:
        msg = f"policy {opener.policy.name!r} grants no `tool`, so no package can analyse anything; grant it"
        raise PolicyError(msg)
    settings = _settings(asked.release)
    with (
        open_with_bench(asked.path, _ID, opener) as opened,
        scratch_folder() as folder,
        SqliteJournal(folder / "journal.sqlite") as journal,
    ):
        budget = Budget(usd=asked.budget.usd, tokens=asked.budget.tokens)
        ledger = Ledger(budget, spender="this question", way_out="ask again with a higher limit on")
        context = AnswerContext(
            model=asked.model,
            steps=Steps(journal),
            ledger=ledger,
            settings=settings,
            seed=asked.seed,
            cancel=opener.token,
        )
        role = opener.policy.purposes[Purpose.TOOL].image
        images = opened.bench.images
        inner = SandboxDatabaseTools(opened.bench.sandbox, run_id=opened.run_id)
        tools = KeptAnalyses(inner, writable_home(opener.places), images.digest(role))
        analysis, found = _answered(asked, opened.database, context, tools)
        spent = ledger.snapshot().spent
        known = asked.release.manifest.images.get(role)
        return Answered(
            database=opened.database.name,
            digest=opened.database.digest,
            access=opened.database.access,
            approvals=approvals,
            analysis=analysis,
            was_kept=tools.was_kept,
            answer=found,
            result=read_result(found, journal),
            usage=spent.usage,
            requests=spent.requests,
            is_same_image=known is not None and known.tree_sha256 == images.locked().images[role].tree_sha256,
        )


def _answered(
    asked: Asked, database: Database, context: AnswerContext, tools: DatabaseTools
) -> tuple[Analysis, Answer]:
    package = asked.release.package
    question = QuestionView(id=_ID, database=database.name, text=asked.question, evidence=asked.evidence)
    analysis = analyse(context, package, database, tools=tools)
    briefing = brief_on(context, package, database, analysis)
    return analysis, answer(context, question, briefing, database=database)


def _settings(release: Release) -> AnswerSettings:
    try:
        return AnswerSettings.model_validate(dict(release.manifest.answers))
    except ValidationError as error:
        msg = f"package {str(release.folder)!r} was exported with settings of another version; export it again"
        raise InputError(msg) from error
