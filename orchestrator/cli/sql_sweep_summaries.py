"""A sweep as a JSON document, and as one line among other runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.scores import HEADLINE, Share
from orchestrator.bootstrap.sql.sweep_header import SweepHeader
from orchestrator.bootstrap.sql.sweep_results import State, SweepView, Swept
from orchestrator.bootstrap.sql.sweep_tallies import Best, Tally
from orchestrator.cli.documents import RunEntry
from orchestrator.cli.ledger import ledger_lines, usage_document
from orchestrator.cli.sql_documents import MetricShares
from orchestrator.cli.sql_summaries import left_out, share_document, shares_document
from orchestrator.cli.sql_sweep_documents import (
    SqlSweepBest,
    SqlSweepDataset,
    SqlSweepDocument,
    SqlSweepPanel,
    SqlSweepPoint,
    SqlSweepScore,
    SqlSweepVariant,
)
from orchestrator.methods.evosql.grid import bubbles
from orchestrator.storage.runs import RunInfo

TOKENS = "tokens per question"
_METRICS: tuple[Literal["strict", "relaxed"], ...] = ("strict", "relaxed")
_MEASURES: tuple[Literal["greedy", "pass_at_k"], ...] = ("greedy", "pass_at_k")


def sweep_document(view: SweepView, containers_left: int | None = None) -> SqlSweepDocument:
    """All figures of a sweep, of as many questions as are answered."""
    header = view.header
    first = header.conditions[0]
    variants = [
        SqlSweepVariant(
            id=variant.id,
            label=variant.label,
            settings=variant.settings.model_dump(mode="json"),
            scores=[_score(one.label, one.tallies[variant.id]) for one in view.datasets],
        )
        for variant in header.variants
    ]
    return SqlSweepDocument(
        run=view.run_id,
        state=view.state,
        pause=view.pause,
        datasets=[_dataset(one, header.conditions[i], view.state) for i, one in enumerate(view.datasets)],
        base=header.file.settings.model_dump(mode="json"),
        trials=len(view.trials),
        variants=variants,
        best=_best(view),
        panels=list(_panels(variants)),
        requests=view.requests,
        usage=usage_document(view.usage),
        ledger=ledger_lines(view.ledger),
        models=dict(first["models"]),
        policy=dict(first["policy"]),
        images=dict(first["images"]),
        prompts=dict(first["prompts"]),
        versions=dict(header.versions),
        files=[],
        containers_left=containers_left,
    )


def sweep_entry(
    header: SweepHeader, state: State, best: Best | None, info: RunInfo, pause: str | None = None
) -> RunEntry:
    """One line of `runs list`.

    Args:
        header: Of the run.
        state: Of it.
        best: As it recorded it at its end; None: it has not.
        info: Of the folder.
        pause: Why it is paused; None: it is not.
    """
    return RunEntry(
        run=info.id,
        task=", ".join(dataset.label for dataset in header.file.datasets),
        method="sql sweep",
        model=str(header.conditions[0]["models"]["generator"]),
        seed=header.file.settings.seed,
        state=state,
        pause=pause,
        created_at=info.created_at,
        questions=sum(map(len, header.questions)),
        methods=[Method.EVOSQL.value],
        accuracy=None if best is None else best.strict.value,
        accuracy_of=None if best is None else best.variant,
        bytes=info.size_bytes,
        owner_pid=info.owner_pid,
    )


def _dataset(swept: Swept, conditions: Mapping[str, Any], state: State) -> SqlSweepDataset:
    return SqlSweepDataset(
        name=swept.label,
        digest=conditions["dataset"]["digest"],
        questions=len(swept.questions),
        evaluable=swept.evaluable,
        standings=swept.standings,
        left_out=left_out((one.id, one.database, swept.golds.get(one.id)) for one in swept.questions),
        gold_as_prediction=shares_document(swept.gold_as_prediction()),
        gold_disagreeing=swept.disagreeing(),
        databases={name: one["volume"] for name, one in conditions["databases"].items()},
        unchanged=None if state in ("unfinished", "paused") else True,
    )


def _best(view: SweepView) -> SqlSweepBest | None:
    best = view.best
    if best is None:
        return None
    labels = {variant.id: variant.label for variant in view.header.variants}
    base = next((name for name, label in labels.items() if label == "base"), None)
    tallies = [] if base is None else [swept.tallies[base] for swept in view.datasets]
    of_base = Share(right=sum(one.right[HEADLINE] for one in tallies), of=sum(one.answered for one in tallies))
    return SqlSweepBest(
        variant=best.variant,
        label=labels[best.variant],
        strict=share_document(best.strict),
        base=None if base is None else share_document(of_base),
    )


def _score(label: str, tally: Tally) -> SqlSweepScore:
    return SqlSweepScore(
        dataset=label,
        answered=tally.answered,
        not_reached=tally.not_reached,
        greedy=shares_document(tally.shares(tally.right)),
        pass_at_k=shares_document(tally.shares(tally.passed)),
        majority=shares_document(tally.shares(tally.majority)),
        tokens=tally.tokens.total,
        endings=dict(sorted(tally.endings.items())),
    )


def _panels(variants: Sequence[SqlSweepVariant]) -> Iterator[SqlSweepPanel]:
    """Accuracy on the first data set against accuracy on the second, or against tokens where there is only one."""
    answered = {tuple(score.answered for score in variant.scores) for variant in variants}
    if len(answered) > 1 or 0 in next(iter(answered)):
        return
    names = [score.dataset for score in variants[0].scores]
    for metric in _METRICS:
        for measure in _MEASURES:
            points = {variant.id: _point(variant.scores, measure, metric) for variant in variants}
            yield SqlSweepPanel(
                metric=metric,
                measure=measure,
                x=names[0] if len(names) > 1 else TOKENS,
                y=names[-1],
                points=[
                    SqlSweepPoint(x=one.x, y=one.y, variants=list(one.variants), on_front=one.on_front)
                    for one in bubbles(points, lower_x=len(names) == 1)
                ],
            )


def _point(scores: Sequence[SqlSweepScore], measure: str, metric: str) -> tuple[float, float]:
    shares: list[MetricShares] = [getattr(score, measure) for score in scores]
    accuracies = [one[metric].share or 0.0 for one in shares]
    if len(accuracies) > 1:
        return accuracies[0], accuracies[1]
    return round(scores[0].tokens / scores[0].answered, 1), accuracies[0]
