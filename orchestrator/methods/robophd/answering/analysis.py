"""A package's analysis of a database: what its tool gave or, where that failed, what a model found by reading queries.

A tool runs once for each database, before any question (RoboPhD, 3.2.2); both it and the model's analysis are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.tool_runs import ToolFailure, ToolFinding, ToolRun
from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.answering.briefing import Briefing, Source, brief
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.methods.robophd.answering.hybrid import HYBRID_ROLE, HybridAnalysis, investigate
from orchestrator.methods.robophd.answering.requests import charge_recorded
from orchestrator.ports import Database, DatabaseTools
from orchestrator.search.replay import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """How a package's tool did on a database."""

    failure: ToolFailure | None
    """None: it gave a text."""
    detail: str = ""
    """For a failure, in words that models may see."""
    findings: tuple[ToolFinding, ...] = ()
    """Of the static screen."""
    cpu_seconds: float | None = None
    """Of all its runs; None: the runtime does not account for it."""
    text: str | None = None
    """Digest of the blob with what it gave, UTF-8; None: it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What there is to know of a database by one package."""

    source: Source
    text: str | None
    """Untrusted; None: there is none."""
    tool: ToolReport
    hybrid_requests: int = 0
    """Of the model that made up for the tool."""
    hybrid_usage: Usage = field(default_factory=Usage)
    """As the ledger was charged; lost calls are not in it."""


def analyse(context: AnswerContext, package: AgentPackage, database: Database, *, tools: DatabaseTools) -> Analysis:
    """Run a package's tool on a database and, where it fails, let the model analyse it; or read what is recorded.

    Args:
        context: Of the process; its spending is charged once to the process's ledger.
        package: Untrusted.
        database: In the predicted domain.
        tools: Runs tools.

    Raises:
        BudgetExhausted: A ceiling does not cover the next request; no analysis is recorded, but the tool's run is.
        PolicyError: The policy does not grant tools.
        SandboxError: The sandbox failed; what was recorded stays.
        ModelError: The model failed; likewise.
        Cancelled: Somebody asked to stop; likewise.
        RunStateError: The journal holds the run on another database, or of another package.
    """
    identity = {"package": package.digest, "database": database.digest}
    report = run_tool(context, package, database, tools=tools)
    if report.text is not None:
        return Analysis(source=Source.TOOL, text=_text(context, report.text), tool=report)
    if context.settings.hybrid_requests == 0:
        return Analysis(source=Source.NONE, text=None, tool=report)
    key = context.keys.hybrid(package.digest, database.name)
    identity |= {"model": context.model.name}

    def perform() -> Record:
        found = investigate(context, key, package.digest, database, failure=failure_text(report))
        return to_record(found)

    def settle() -> None:
        is_recorded = context.steps.recorded(key) is not None
        known = from_record(HybridAnalysis, context.steps.once(key, perform, identity=identity))
        if is_recorded:
            charge_recorded(context, key, role=HYBRID_ROLE, requests=known.requests, usage=known.usage)

    context.once.do(key, settle)
    found = from_record(HybridAnalysis, context.steps.once(key, perform, identity=identity))
    return Analysis(
        source=Source.NONE if found.text is None else Source.HYBRID,
        text=None if found.text is None else _text(context, found.text),
        tool=report,
        hybrid_requests=found.requests,
        hybrid_usage=found.usage,
    )


def run_tool(context: AnswerContext, package: AgentPackage, database: Database, *, tools: DatabaseTools) -> ToolReport:
    """Run a package's tool on a database, once; without anything that makes up for its failure.

    Raises:
        EvolvariumError: As `analyse`, but for what concerns models.
    """
    key = context.keys.tool(package.digest, database.name)
    identity = {"package": package.digest, "database": database.digest}

    def perform() -> Record:
        context.cancel.check()
        return _tool_record(context, tools.analyse(package, database, attempt_id=key))

    context.once.do(key, lambda: context.steps.once(key, perform, identity=identity))
    return from_record(ToolReport, context.steps.once(key, perform, identity=identity))


def brief_on(context: AnswerContext, package: AgentPackage, database: Database, analysis: Analysis) -> Briefing:
    """What a model that answers is told before every question on a database."""
    return brief(context, package, database=database.name, source=analysis.source, analysis=analysis.text)


def failure_text(report: ToolReport) -> str:
    """A tool's failure in words: what it was, what is known of it, and what the static screen found."""
    if report.failure is None:
        return ""
    lines = [f"{report.failure.value}: {report.detail}" if report.detail else report.failure.value]
    lines += [f"{finding.file}:{finding.line}: {finding.message}" for finding in report.findings]
    return "\n".join(lines)


def _tool_record(context: AnswerContext, run: ToolRun) -> Record:
    seconds = [outcome.cpu_seconds for outcome in run.outcomes if outcome.cpu_seconds is not None]
    report = ToolReport(
        failure=run.failure,
        detail=run.detail,
        findings=run.findings,
        cpu_seconds=round(sum(seconds), 4) if len(seconds) == len(run.outcomes) else None,
        text=None if run.text is None else context.steps.journal.put_blob(run.text.encode("utf-8")),
    )
    return to_record(report)


def _text(context: AnswerContext, digest: str) -> str:
    try:
        return context.steps.journal.get_blob(digest).decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"the stored analysis {digest} is no text; restore the run from a copy"
        raise RunStateError(msg) from error
