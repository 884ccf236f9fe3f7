"""`compare` as tables."""

from __future__ import annotations

from orchestrator.cli.compare_documents import ComparisonDocument, SampleDocument, SplitComparison
from orchestrator.cli.terminal import Rows


def comparison_tables(document: ComparisonDocument) -> list[Rows]:
    """Qualities of both groups, how they differ, under which conditions, and every run."""
    return [_qualities(document), _differences(document), *_conditions(document), _runs(document)]


def _qualities(document: ComparisonDocument) -> Rows:
    rows = [
        [*_split_cells(split, is_first), group, *_sample_cells(values)]
        for split in document.splits
        for is_first, group, values in ((True, "A", split.a), (False, "B", split.b))
    ]
    unit = f", {document.unit}" if document.unit else ""
    better = "lower is better" if document.lower_is_better else "higher is better"
    columns = ["split", "initial", "group", "n", "mean", "SD", "median", "min", "max"]
    return Rows(title=f"{document.task}: {document.quality}{unit} of the best ({better})", columns=columns, rows=rows)


def _split_cells(split: SplitComparison, is_first: bool) -> list[object]:
    if not is_first:
        return ["", ""]
    return [f"{split.split} (guides the search)" if split.seen else split.split, split.initial]


def _sample_cells(values: SampleDocument | None) -> list[object]:
    if values is None:
        return [0, None, None, None, None, None]
    return [values.n, values.mean, values.sd, values.median, values.min, values.max]


def _differences(document: ComparisonDocument) -> Rows:
    rows = [
        [
            split.split,
            _points(split.points),
            None if split.low is None or split.high is None else f"{split.low:.6g} to {split.high:.6g}",
            None if split.u is None else f"{split.u:g} of {split.pairs}",
            split.p,
            split.p_method,
        ]
        for split in document.splits
    ]
    interval = f"{100 * document.level:g} % interval"
    title = f"How much better A is than B (percentile bootstrap, {document.resamples} resamples, seed {document.seed})"
    columns = ["split", "mean of A is", interval, "U: A better in", "p, two-sided", "Mann-Whitney p is"]
    return Rows(title=title, columns=columns, rows=rows)


def _points(points: float | None) -> str | None:
    if points is None:
        return None
    return "equal" if points == 0 else f"{'better' if points > 0 else 'worse'} by {abs(points):.6g}"


def _conditions(document: ComparisonDocument) -> list[Rows]:
    rows = [
        [condition.name.replace("_", " "), ", ".join(condition.a) or None, ", ".join(condition.b) or None]
        for condition in document.conditions
    ]
    return [Rows(title="What differs between the runs", columns=["", "A", "B"], rows=rows)] if rows else []


def _runs(document: ComparisonDocument) -> Rows:
    splits = [split.split for split in document.splits]
    rows = [
        [
            group, run.run, run.seed, run.best,
            *(run.quality.get(split) for split in splits),
            run.evaluations, run.tokens, _dollars(run.usd), run.cpu_seconds,
        ]
        for group, its in (("A", document.a), ("B", document.b))
        for run in its.runs
    ]  # fmt: skip
    columns = ["group", "run", "seed", "best", *splits, "evaluations", "tokens", "US dollars", "CPU seconds"]
    return Rows(title="Runs", columns=columns, rows=rows, spare_columns=["CPU seconds", "tokens", "best"])


def _dollars(usd: object) -> str:
    return "unknown" if usd is None else f"{usd:.4f}"
