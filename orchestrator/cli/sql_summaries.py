"""A bench as a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from orchestrator.bootstrap.sql import scores
from orchestrator.bootstrap.sql.outcomes import EVOLUTIONS, Method
from orchestrator.bootstrap.sql.results import BenchView
from orchestrator.cli.documents import RunEntry
from orchestrator.cli.ledger import ledger_lines, usage_document
from orchestrator.cli.sql_documents import (
    MetricShares,
    ShareDocument,
    SqlActivity,
    SqlBenchDatabase,
    SqlBenchDocument,
    SqlDifference,
    SqlEarlyStop,
    SqlLeftOut,
    SqlRoundTokens,
    SqlTokens,
)
from orchestrator.evaluation.sql_judge import Gold, Metric, Standing
from orchestrator.methods.evosql import Ending
from orchestrator.methods.evosql.accounting import (
    RoundTokens,
    aggregate_savings,
    early_stop_table,
    token_table,
)
from orchestrator.search.spending import Spending
from orchestrator.storage.runs import RunInfo


def bench_document(
    view: BenchView, containers_left: int | None = None, ledger: Sequence[Spending] = ()
) -> SqlBenchDocument:
    """All figures of a bench, of as many questions as are answered.

    Args:
        view: From its journal.
        containers_left: None: not looked.
        ledger: Likewise from its journal; it needs all of it, which a line of `runs list` should not.
    """
    outcomes = view.outcomes
    header = view.header
    evolutions = [method for method in EVOLUTIONS if method in view.choices.methods]
    sampling = scores.sampling_scores(outcomes)
    usage, requests, lost = view.spent()
    return SqlBenchDocument(
        run=view.run_id,
        state=_state(view),
        pause=view.pause,
        dataset=header["dataset"]["name"],
        digest=header["dataset"]["digest"],
        questions=len(view.questions),
        evaluable=len(view.evaluable),
        answered=len(outcomes),
        standings=view.standings,
        left_out=left_out((one.id, one.database, one.gold) for one in view.questions),
        gold_as_prediction=shares_document(view.gold_as_prediction()),
        gold_disagreeing=view.disagreeing(),
        not_reached={m.value: scores.not_reached(outcomes, m) for m in view.choices.methods},
        methods={m.value: shares_document(scores.final_scores(outcomes, m)) for m in view.choices.methods},
        avg_at_k={metric.value: sampling[metric].average for metric in Metric},
        pass_hat_k=shares_document({metric: sampling[metric].all_right for metric in Metric}),
        pass_at_k=shares_document({metric: sampling[metric].any_right for metric in Metric}),
        pass_of_all_rounds={m.value: shares_document(scores.pass_scores(outcomes, m)) for m in evolutions},
        rounds={
            m.value: [shares_document(one) for one in scores.round_scores(outcomes, m, view.settings.rounds)]
            for m in evolutions
        },
        repaired={
            m.value: {metric.value: count for metric, count in scores.repaired(outcomes, m).items()} for m in evolutions
        },
        differences=[
            SqlDifference(
                first=one.first.value,
                other=one.other.value,
                metric=one.metric.value,
                difference=one.value,
                low=one.low,
                high=one.high,
            )
            for one in view.differences()
        ],
        tokens={m.value: _tokens(view, m) for m in evolutions},
        early_stop={m.value: _early_stop(view, m) for m in evolutions},
        endings={m.value: scores.ending_counts(outcomes, m) for m in evolutions},
        unreadable={
            m.value: sum(outcome.evolutions[m].unreadable for outcome in outcomes if m in outcome.evolutions)
            for m in evolutions
        },
        flags=dict(scores.flag_counts(outcomes)),
        nondeterministic=view.nondeterministic,
        requests=requests,
        lost=lost,
        usage=usage_document(usage),
        ledger=ledger_lines(ledger),
        databases=_databases(view),
        settings=dict(header["settings"]),
        models=dict(header["models"]),
        policy=dict(header["policy"]),
        images=dict(header["images"]),
        sqlite=", ".join(sorted({str(one["sqlite"]) for one in header["databases"].values()})),
        prompts=dict(header["prompts"]),
        versions=dict(header["versions"]),
        containers_left=containers_left,
    )


def bench_entry(view: BenchView, info: RunInfo) -> RunEntry:
    """One line of `runs list`."""
    method = view.choices.methods[0]
    strict = scores.final_scores(view.outcomes, method)[scores.HEADLINE]
    return RunEntry(
        run=info.id,
        task=str(view.header["dataset"]["name"]),
        method="sql bench",
        model=str(view.header["models"]["generator"]),
        seed=view.settings.seed,
        state=_state(view),
        pause=view.pause,
        created_at=info.created_at,
        questions=len(view.questions),
        methods=[one.value for one in view.choices.methods],
        accuracy=strict.value,
        accuracy_of=method.value,
        evaluable=len(view.evaluable),
        answered=strict.of,
        not_reached=scores.not_reached(view.outcomes, method),
        bytes=info.size_bytes,
        owner_pid=info.owner_pid,
    )


def share_document(share: scores.Share) -> ShareDocument:
    """So many of so many."""
    return ShareDocument(right=share.right, of=share.of, share=share.value)


def shares_document(shares: Mapping[Metric, scores.Share]) -> MetricShares:
    """Shares by the name of their metric."""
    return {metric.value: share_document(share) for metric, share in shares.items()}


def left_out(golds: Iterable[tuple[str, str, Gold | None]]) -> list[SqlLeftOut]:
    """The questions that have left the denominator.

    Args:
        golds: Id, database, and what is recorded of the gold query; None: nothing yet.
    """
    return [
        SqlLeftOut.model_validate(
            {"id": name, "database": database, "standing": gold.standing.value, "reason": gold.message}
        )
        for name, database, gold in golds
        if gold is not None and gold.standing is not Standing.EVALUABLE
    ]


def _state(view: BenchView) -> Literal["done", "unfinished", "paused", "budget-spent"]:
    if not view.has_ended:
        return "unfinished" if view.pause is None else "paused"
    spent = any(
        Ending.BUDGET in scores.ending_counts(view.outcomes, method)
        for method in EVOLUTIONS
        if method in view.choices.methods
    ) or any(not set(view.choices.methods) <= set(outcome.answers) for outcome in view.outcomes)
    return "budget-spent" if spent else "done"


def _databases(view: BenchView) -> list[SqlBenchDatabase]:
    questions = Counter(one.database for one in view.questions)
    return [
        SqlBenchDatabase(
            name=name,
            source=one["source"],
            volume=one["volume"],
            tables=one["tables"],
            hidden=one["hidden"],
            questions=questions[name],
            unchanged=True if view.has_ended else None,
        )
        for name, one in view.header["databases"].items()
    ]


def _tokens(view: BenchView, method: Method) -> SqlTokens:
    calls, rounds = view.calls(method), view.settings.rounds
    *rows, total = token_table(calls, rounds=rounds, critic_last_round=False)
    *_, with_last = token_table(calls, rounds=rounds)
    return SqlTokens(
        rounds=[_round_tokens(row) for row in rows],
        total=_round_tokens(total),
        total_with_last_judgement=_round_tokens(with_last),
    )


def _round_tokens(row: RoundTokens) -> SqlRoundTokens:
    return SqlRoundTokens(
        round=row.round,
        infill=row.generator.infill,
        infill_equivalent=row.equivalent.infill,
        decode=row.generator.decode,
        critic_infill=row.critic.infill,
        critic_decode=row.critic.decode,
        total=row.total,
        total_equivalent=row.total_equivalent,
    )


def _early_stop(view: BenchView, method: Method) -> SqlEarlyStop:
    made = scores.rounds_made(view.outcomes, method)
    candidates, rounds = view.settings.candidates, view.settings.rounds
    savings = aggregate_savings(made, candidates=candidates, rounds=rounds)
    return SqlEarlyStop(
        rounds=[
            SqlActivity(round=one.round, active=one.active, outputs=one.outputs, stopped_share=one.stopped_share)
            for one in early_stop_table(made, candidates=candidates, rounds=rounds)
        ],
        aggregates_made=savings.made,
        aggregates_without_stopping=savings.without_stopping,
        aggregates_saved=savings.saved,
        saved_share=savings.share,
    )
