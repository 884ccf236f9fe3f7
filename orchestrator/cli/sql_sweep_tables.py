"""A sweep as tables for people, and as CSV; shares are in percent."""

from __future__ import annotations

import csv
import io

from orchestrator.cli.sql_documents import MetricShares
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument, SqlSweepPanel, SqlSweepVariant
from orchestrator.cli.terminal import Rows

_MEASURES = {"greedy": "greedy", "pass_at_k": "Pass@{k}"}
_METRICS = ("strict", "relaxed")
_CSV_METRICS = ("bird", "multiset", "spider", "strict", "relaxed")


def sweep_parts(document: SqlSweepDocument) -> list[Rows | str]:
    """Everything that there is to show."""
    parts: list[Rows | str] = [dataset_rows(document), "", variant_rows(document)]
    for panel in document.panels:
        parts += ["", front_rows(document, panel)]
    return [*parts, "", _spent_rows(document)]


def dataset_rows(document: SqlSweepDocument) -> Rows:
    """What was asked."""
    rows: list[list[object]] = [
        [
            one.name,
            one.questions,
            one.evaluable,
            ", ".join(f"{count} {name}" for name, count in one.standings.items() if name != "evaluable") or None,
            _percent(one.gold_as_prediction, "strict"),
            one.unchanged,
        ]
        for one in document.datasets
    ]
    columns = ["data set", "questions", "evaluable", "not evaluable", "gold as prediction", "databases unchanged"]
    return Rows(title=f"Sweep {document.run}", columns=columns, rows=rows)


def variant_rows(document: SqlSweepDocument) -> Rows:
    """Every variant; `*` marks what is on the Pareto front of its panel."""
    names = [one.name for one in document.datasets]
    columns = ["id", "variant"]
    for metric in _METRICS:
        columns += [f"{name} {metric} {_measured(document, measure)}" for measure in _MEASURES for name in names]
    columns += [f"{name} tokens per question" for name in names]
    rows = [_variant_row(document, variant) for variant in document.variants]
    title = "Execution accuracy in percent (* on the Pareto front)"
    return Rows(title=title, columns=columns, rows=rows, cell_characters=100)


def front_rows(document: SqlSweepDocument, panel: SqlSweepPanel) -> Rows:
    """The Pareto front of a panel."""
    title = f"Pareto front, {panel.metric}, {_measured(document, panel.measure)}"
    is_cost = panel.x not in {one.name for one in document.datasets}
    rows: list[list[object]] = [
        [
            f"{point.x:.0f}" if is_cost else f"{100 * point.x:.2f}",
            f"{100 * point.y:.2f}",
            len(point.variants),
            ", ".join(point.variants),
        ]
        for point in panel.points
        if point.on_front
    ]
    return Rows(title=title, columns=[panel.x, panel.y, "variants", "which"], rows=rows, cell_characters=8000)


def sweep_csv(document: SqlSweepDocument) -> str:
    """One line for each variant and data set, with all settings and the counts behind every share."""
    settings = list(document.base)
    counts = [f"{measure}_{metric}" for measure in ("greedy", "pass_at_k", "majority") for metric in _CSV_METRICS]
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(["variant", "label", "dataset", "answered", *counts, "tokens", *settings])
    for variant in document.variants:
        for score in variant.scores:
            shares = [getattr(score, measure) for measure in ("greedy", "pass_at_k", "majority")]
            rights = [one[metric].right for one in shares for metric in _CSV_METRICS]
            values = [variant.settings[name] for name in settings]
            table.writerow([variant.id, variant.label, score.dataset, score.answered, *rights, score.tokens, *values])
    return written.getvalue()


def _variant_row(document: SqlSweepDocument, variant: SqlSweepVariant) -> list[object]:
    row: list[object] = [variant.id, variant.label]
    for metric in _METRICS:
        for measure in _MEASURES:
            mark = " *" if variant.id in _front(document, metric, measure) else ""
            row += [_percent(getattr(score, measure), metric) + mark for score in variant.scores]
    return [*row, *(round(score.tokens / score.answered) if score.answered else None for score in variant.scores)]


def _front(document: SqlSweepDocument, metric: str, measure: str) -> set[str]:
    """Ids of the variants on the front of a panel; none where there is no such panel yet."""
    points = [
        point
        for panel in document.panels
        if (panel.metric, panel.measure) == (metric, measure)
        for point in panel.points
        if point.on_front
    ]
    return {name for point in points for name in point.variants}


def _spent_rows(document: SqlSweepDocument) -> Rows:
    usage = document.usage
    rows: list[list[object]] = [
        ["state", document.state],
        ["variants", len(document.variants)],
        ["evolutions per question", document.trials],
        ["models", ", ".join(f"{role} {name}" for role, name in document.models.items())],
        ["requests", document.requests],
        ["tokens: input, cached, output", f"{usage.input_tokens}, {usage.cached_input_tokens}, {usage.output_tokens}"],
        ["US dollars", "unknown" if usage.usd is None else f"{usage.usd:.4f}"],
        ["policy", f"{document.policy['name']} {document.policy['digest'][:19]}"],
    ]
    if document.containers_left is not None:
        rows.append(["containers left", document.containers_left])
    return Rows(title="What it took", columns=["what", "value"], rows=rows, cell_characters=120)


def _measured(document: SqlSweepDocument, measure: str) -> str:
    """`greedy`, or `Pass@16`; K is a number where all variants have the same."""
    found = {variant.settings["candidates"] for variant in document.variants}
    return _MEASURES[measure].format(k=found.pop() if len(found) == 1 else "K")


def _percent(shares: MetricShares, metric: str) -> str:
    share = shares[metric].share
    return "-" if share is None else f"{100 * share:.2f}"
