"""A sweep as tables for people, and as CSV; shares are in percent."""

from __future__ import annotations

import csv
import io

from orchestrator.bootstrap.sql.notices import few
from orchestrator.cli.ledger import dollars, ledger_rows, token_row
from orchestrator.cli.sql_documents import MetricShares, ShareDocument
from orchestrator.cli.sql_sweep_documents import SqlSweepDataset, SqlSweepDocument, SqlSweepPanel, SqlSweepVariant
from orchestrator.cli.states import state_in_words
from orchestrator.cli.terminal import Rows

_MEASURES = {"greedy": "greedy", "pass_at_k": "Pass@{k}"}
_METRICS = ("strict", "relaxed")
_CSV_METRICS = ("bird", "multiset", "spider", "strict", "relaxed")


def sweep_parts(document: SqlSweepDocument) -> list[Rows | str]:
    """Everything that there is to show, its headline last."""
    parts: list[Rows | str] = [dataset_rows(document), "", variant_rows(document)]
    for panel in document.panels:
        parts += ["", front_rows(document, panel)]
    parts += ["", _spent_rows(document), *ledger_rows(document.ledger)]
    return [*parts, "", *headline(document)]


def sweep_end_parts(document: SqlSweepDocument) -> list[Rows | str]:
    """What a sweep ends with: every variant, the headline, and where there is more."""
    left = document.containers_left
    more = f"`evolvarium show {document.run}` has all tables, the Pareto fronts among them"
    if not document.files:
        more += "; with -o DIR it writes them and the plot"
    return [
        dataset_rows(document), "", variant_rows(document), "", *headline(document),
        *([] if left is None else [f"Containers left: {left}."]), f"{more}.",
    ]  # fmt: skip


def headline(document: SqlSweepDocument) -> list[str]:
    """The one figure that stands for a sweep, what it leaves unsaid, and where its files are."""
    best, said = document.best, []
    if best is None:
        said.append(f"Not every variant has answered the same questions yet ({document.state}).")
    else:
        base = "" if best.base is None or best.label == "base" else f"; the base is right on {_counted(best.base)}"
        equal = sum(_strict_right(variant) == best.strict.right for variant in document.variants) - 1
        others = "is" if not equal else f"and {equal} other{'s' if equal > 1 else ''} that come to the same are"
        evaluable = sum(one.evaluable for one in document.datasets)
        so_far = f" so far, of {evaluable}" if best.strict.of < evaluable else ""
        said.append(
            f"{best.variant} ({best.label}) {others} right most often, on {_counted(best.strict, so_far)} strict, "
            f"among {len(document.variants)} variants{base}."
        )
    missed = [
        f"{score.not_reached} of {score.answered} questions of {score.dataset} in {variant.id}"
        for variant in document.variants
        for score in variant.scores
        if score.not_reached
    ]
    if missed:
        said.append(f"The budget did not reach {few(missed)}; they count as wrong in every share.")
    if document.files:
        said.append(f"Written: {', '.join(document.files)}.")
    return said


def dataset_rows(document: SqlSweepDocument) -> Rows:
    """What was asked."""
    rows: list[list[object]] = [
        [
            one.name,
            one.questions,
            one.evaluable,
            _not_evaluable(one) or None,
            _percent(one.gold_as_prediction, "strict"),
            one.unchanged,
        ]
        for one in document.datasets
    ]
    columns = ["data set", "questions", "evaluable", "not evaluable", "gold as prediction", "databases unchanged"]
    return Rows(title=f"Sweep {document.run}", columns=columns, rows=rows, cell_characters=400)


def _not_evaluable(dataset: SqlSweepDataset) -> str:
    """How many questions, and which, for each reason."""
    found: dict[str, list[str]] = {}
    for one in dataset.left_out:
        found.setdefault(one.standing, []).append(one.id)
    pending = dataset.standings.get("pending", 0)
    listed = [f"{len(ids)} {standing}: {few(ids)}" for standing, ids in found.items()]
    return "; ".join([*listed, *([f"{pending} pending"] if pending else [])])


def variant_rows(document: SqlSweepDocument) -> Rows:
    """Every variant; `*` marks what is on the Pareto front of its panel, where not all variants are."""
    names = [one.name for one in document.datasets]
    columns = ["id", "variant"]
    for metric in _METRICS:
        columns += [f"{name} {metric} {_measured(document, measure)}" for measure in _MEASURES for name in names]
    columns += [f"{name} tokens per question" for name in names]
    rows = [_variant_row(document, variant) for variant in document.variants]
    answered = "; ".join(f"{one.answered} of {one.dataset}" for one in document.variants[0].scores)
    panels = {(panel.metric, panel.measure) for panel in document.panels}
    marks = any(_marked(document, metric, measure) for metric, measure in panels)
    title = f"Execution accuracy in percent of the answered questions ({answered})"
    if panels:
        title += "; * is on the Pareto front" if marks else "; all are on the Pareto front"
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
    table.writerow(["variant", "label", "dataset", "answered", "not_reached", *counts, "tokens", *settings])
    for variant in document.variants:
        for score in variant.scores:
            shares = [getattr(score, measure) for measure in ("greedy", "pass_at_k", "majority")]
            rights = [one[metric].right for one in shares for metric in _CSV_METRICS]
            values = [variant.settings[name] for name in settings]
            count = [score.answered, score.not_reached]
            table.writerow([variant.id, variant.label, score.dataset, *count, *rights, score.tokens, *values])
    return written.getvalue()


def _variant_row(document: SqlSweepDocument, variant: SqlSweepVariant) -> list[object]:
    row: list[object] = [variant.id, variant.label]
    for metric in _METRICS:
        for measure in _MEASURES:
            mark = " *" if variant.id in _marked(document, metric, measure) else ""
            row += [_percent(getattr(score, measure), metric) + mark for score in variant.scores]
    return [*row, *(round(score.tokens / score.answered) if score.answered else None for score in variant.scores)]


def _marked(document: SqlSweepDocument, metric: str, measure: str) -> set[str]:
    """Ids of the variants on the front of a panel; none where a mark would say nothing, for all of them are on it."""
    points = [
        point
        for panel in document.panels
        if (panel.metric, panel.measure) == (metric, measure)
        for point in panel.points
        if point.on_front
    ]
    front = {name for point in points for name in point.variants}
    return front if len(front) < len(document.variants) else set()


def _spent_rows(document: SqlSweepDocument) -> Rows:
    rows: list[list[object]] = [
        ["state", state_in_words(document.state, document.pause)],
        ["variants", len(document.variants)],
        ["evolutions per question", document.trials],
        ["models", ", ".join(f"{role} {name}" for role, name in document.models.items())],
        ["requests", document.requests],
        token_row(document.usage),
        ["US dollars", dollars(document.usage)],
        ["policy", f"{document.policy['name']} {document.policy['digest'][:19]}"],
    ]
    if document.containers_left is not None:
        rows.append(["containers left", document.containers_left])
    return Rows(title="What it took", columns=["what", "value"], rows=rows, cell_characters=120)


def _measured(document: SqlSweepDocument, measure: str) -> str:
    """`greedy`, or `Pass@16`; K is a number where all variants have the same."""
    found = {variant.settings["candidates"] for variant in document.variants}
    return _MEASURES[measure].format(k=found.pop() if len(found) == 1 else "K")


def _strict_right(variant: SqlSweepVariant) -> int:
    return sum(score.greedy["strict"].right for score in variant.scores)


def _counted(share: ShareDocument, so_far: str = "") -> str:
    percent = "-" if share.share is None else f"{100 * share.share:.2f}"
    return f"{share.right} of {share.of} questions{so_far}, {percent} %"


def _percent(shares: MetricShares, metric: str) -> str:
    share = shares[metric].share
    return "-" if share is None else f"{100 * share:.2f}"
