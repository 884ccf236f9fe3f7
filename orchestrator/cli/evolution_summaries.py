"""From an evolution's figures to its documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from orchestrator.bootstrap.robophd.replaying import Replayed
from orchestrator.bootstrap.robophd.results import (
    EvolutionResults,
    FinalScore,
    GoldStanding,
    IterationResult,
)
from orchestrator.bootstrap.robophd.scores import DatabaseScore
from orchestrator.cli.documents import FileDocument, RunEntry
from orchestrator.cli.evolution_documents import (
    AdvantageDocument,
    BranchDocument,
    DatabaseScoreDocument,
    EvolutionDocument,
    EvolvedPackageDocument,
    FinalDocument,
    FinalScoreDocument,
    IterationDocument,
    PackageDocument,
    RatingDocument,
    ReplayDocument,
    RoleSpendDocument,
)
from orchestrator.cli.ledger import ledger_lines, usage_document
from orchestrator.cli.sql_documents import SqlLeftOut
from orchestrator.domain.budgets import LedgerSnapshot
from orchestrator.methods.robophd.results import Ending
from orchestrator.methods.robophd.standings import Row
from orchestrator.storage.runs import RunInfo

EVOLVE = "sql evolve"
"""The method of an evolution, in `runs list`."""
_DIGITS = 6


def evolution_document(
    results: EvolutionResults,
    *,
    spent: LedgerSnapshot | None = None,
    refusal: str | None = None,
    containers_left: int | None = None,
) -> EvolutionDocument:
    """The whole document.

    Args:
        results: From the journal.
        spent: Of the process that ended the run; None: it was only looked at.
        refusal: What the budget did not cover.
        containers_left: None: not looked.
    """
    branch = results.choices.branch
    return EvolutionDocument(
        run=results.run_id,
        method="robophd",
        state=_state(results),
        pause=results.pause,
        seed=results.settings.seed,
        models=dict(results.models),
        policy=results.choices.policy,
        databases={part: list(results.data[part]) for part in ("evolve", "select", "final")},
        branch=None if branch is None else BranchDocument.model_validate(branch.model_dump()),
        standings=results.standings,
        left_out=[_left_out(one) for one in results.left_out],
        iterations=[_iteration(one) for one in results.iterations],
        of_iterations=results.settings.iterations,
        packages=[_package(results, row) for row in results.table],
        champion=results.champion,
        finals=[_final(results, score) for score in results.finals],
        spent={
            role: RoleSpendDocument(requests=requests, usage=usage_document(usage))
            for role, (requests, usage) in results.spent.items()
        },
        ledger=ledger_lines(results.ledger),
        lost=None if spent is None else spent.lost_count,
        refusal=refusal,
        containers_left=containers_left,
    )


def final_document(results: EvolutionResults, keys: frozenset[tuple[str, str]]) -> FinalDocument:
    """Final scores that were asked for.

    Args:
        results: From the journal; the run has ended.
        keys: (package, model) of each.
    """
    return FinalDocument(
        run=results.run_id,
        champion=results.champion or "",
        databases=list(results.data["final"]),
        scores=[_final(results, score) for score in results.finals if (score.package, score.model) in keys],
    )


def evolved_package_document(
    results: EvolutionResults, package: str, scores: Sequence[DatabaseScore]
) -> EvolvedPackageDocument:
    """One package with its files.

    Args:
        results: From the journal.
        package: Id of one of its packages.
        scores: From `read_scores`.
    """
    row = next(row for row in results.table if row.member.id == package)
    return EvolvedPackageDocument(
        run=results.run_id,
        package=_package(results, row),
        is_champion=package == results.champion,
        databases=[
            DatabaseScoreDocument(
                database=one.name,
                purpose="select" if one.is_select else "evolve",
                right=one.right,
                questions=one.questions,
                tool=one.tool,
            )
            for one in scores
        ],
        finals=[_final(results, score) for score in results.finals if score.package == package],
        files=[
            FileDocument(path=path, bytes=len(content), text=content.decode("utf-8", errors="replace"))
            for path, content in row.member.package.tree.items()
        ],
    )


def replay_document(replayed: Replayed) -> ReplayDocument:
    """What a replay came to."""
    result, spent = replayed.result, replayed.spent
    return ReplayDocument(
        run=replayed.run_id,
        iterations=len(result.contests),
        packages=len(result.members),
        champion=result.champion,
        ratings={name: round(rating, _DIGITS) for name, rating in result.ratings.items()},
        requests=spent.spent.requests,
        usage=usage_document(spent.spent.usage),
        lost=spent.lost_count,
    )


def evolution_entry(results: EvolutionResults, info: RunInfo) -> RunEntry:
    """One line of `runs list`; its accuracy is the champion's on the selection databases."""
    right, questions = results.selection.get(results.champion or "", (0, 0))
    return RunEntry(
        run=info.id,
        task=" and ".join(results.data["names"]),
        method=EVOLVE,
        model=results.models["answerer"],
        seed=results.settings.seed,
        state=_state(results),
        pause=results.pause,
        created_at=info.created_at,
        questions=int(results.data["questions"]),
        accuracy=right / questions if questions else None,
        accuracy_of=results.champion,
        bytes=info.size_bytes,
        owner_pid=info.owner_pid,
    )


def _left_out(one: GoldStanding) -> SqlLeftOut:
    return SqlLeftOut.model_validate(
        {"id": one.id, "database": one.database, "standing": one.gold.standing.value, "reason": one.gold.message}
    )


def _state(results: EvolutionResults) -> Literal["done", "budget-spent", "paused", "unfinished"]:
    if results.ending is None:
        return "unfinished" if results.pause is None else "paused"
    return "budget-spent" if results.ending == Ending.BUDGET else "done"


def _iteration(one: IterationResult) -> IterationDocument:
    contest = one.contest
    return IterationDocument.model_validate(
        {
            "iteration": one.number,
            "kind": one.kind,
            "strategy": one.strategy,
            "newcomer": one.newcomer,
            "failure": one.failure,
            "requests": one.requests,
            "databases": [] if contest is None else list(contest.questions),
            "questions": 0 if contest is None else contest.total,
            "accuracy": {}
            if contest is None
            else {name: round(contest.accuracy(name), _DIGITS) for name in contest.right},
            "hybrid_analyses": one.hybrid,
            "analyses": one.analyses,
        }
    )


def _package(results: EvolutionResults, row: Row) -> PackageDocument:
    member = row.member
    estimate = results.bradley_terry.get(member.id)
    selected = results.selection.get(member.id)
    return PackageDocument(
        id=member.id,
        digest=member.package.digest,
        iteration=member.iteration,
        parents=list(member.parents),
        description=member.description,
        rating=round(row.rating, 3),
        bradley_terry=None
        if estimate is None
        else RatingDocument(
            rating=round(estimate.rating, 3),
            low=None if estimate.low is None else round(estimate.low, 3),
            high=None if estimate.high is None else round(estimate.high, 3),
            component=estimate.component,
        ),
        tests=row.tests,
        questions=row.questions,
        right=row.right,
        select_right=None if selected is None else selected[0],
        select_questions=None if selected is None else selected[1],
    )


def _final(results: EvolutionResults, score: FinalScore) -> FinalScoreDocument:
    usage = score.usage
    usd = score.usd_per_question
    return FinalScoreDocument(
        package=score.package,
        model=score.model,
        right=sum(score.right.values()),
        questions=len(score.right),
        accuracy=round(score.accuracy, _DIGITS),
        databases={name: list(counts) for name, counts in score.databases.items()},
        hybrid_databases=score.hybrid_databases,
        requests=score.requests,
        usage=usage_document(usage),
        tokens_per_question=round(usage.tokens / len(score.right), 1),
        usd_per_question=None if usd is None else float(round(usd, 8)),
        hybrid_share=round(score.hybrid_usage.tokens / usage.tokens, _DIGITS) if usage.tokens else None,
        advantages=[_advantage(results, score, other) for other in _baselines(results, score)],
    )


def _baselines(results: EvolutionResults, score: FinalScore) -> list[FinalScore]:
    initial = {member.id for member in results.members if member.iteration == 0}
    return [
        other
        for other in results.finals
        if other.package in initial and other.package != score.package and other.model == score.model
    ]


def _advantage(results: EvolutionResults, score: FinalScore, other: FinalScore) -> AdvantageDocument:
    found = results.advantage(score, other)
    return AdvantageDocument(
        over=other.package,
        difference=round(found.difference, _DIGITS),
        low=round(found.low, _DIGITS),
        high=round(found.high, _DIGITS),
        half_width=round(found.half_width, _DIGITS),
        groups=found.groups,
    )
