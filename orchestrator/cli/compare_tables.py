"""`compare` as tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from orchestrator.cli.compare_documents import ComparisonDocument, SampleDocument, SplitComparison
from orchestrator.cli.compare_measures import condition_words
from orchestrator.cli.terminal import Rows

_MOST_DECIMALS = 9
_DIGEST = re.compile(r"^(sha256:[0-9a-f]{12})[0-9a-f]+$")


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
    guides = "".join(f"; split {split.split} guides the search" for split in document.splits if split.seen)
    title = f"{document.task}: {document.label}{unit} of the best ({better}){guides}"
    return Rows(title=title, columns=columns, rows=rows, spare_columns=["median", "initial"])


def _split_cells(split: SplitComparison, is_first: bool) -> list[object]:
    if not is_first:
        return ["", ""]
    return [split.split, split.initial]


def _sample_cells(values: SampleDocument | None) -> list[object]:
    if values is None:
        return [0, None, None, None, None, None]
    return [values.n, values.mean, values.sd, values.median, values.min, values.max]


def _differences(document: ComparisonDocument) -> Rows:
    rows = [
        [
            split.split,
            *_difference(split),
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


def _difference(split: SplitComparison) -> list[str | None]:
    """Of the means, and its interval, with equally many decimals."""
    if split.points is None:
        return [None, None]
    size, *ends = alike([abs(split.points), *(end for end in (split.low, split.high) if end is not None)])
    said = "equal" if split.points == 0 else f"{'better' if split.points > 0 else 'worse'} by {size}"
    return [said, " to ".join(ends) or None]


def alike(values: Sequence[float]) -> list[str]:
    """Numbers with equally many decimals: six significant digits of the largest one, and one of the first at least."""
    sizes = [abs(value) for value in values if value]
    most = math.floor(math.log10(max(sizes, default=1.0)))
    decimals = 5 - most
    if values[0]:
        decimals = max(decimals, -math.floor(math.log10(abs(values[0]))))
    if most > 5 or decimals > _MOST_DECIMALS:
        return [f"{value + 0.0:.5e}" for value in values]
    return [f"{round(value, decimals) + 0.0:.{decimals}f}" for value in values]


def _conditions(document: ComparisonDocument) -> list[Rows]:
    rows = [
        [condition_words(condition.name), _values(condition.a), _values(condition.b)]
        for condition in document.conditions
    ]
    return [Rows(title="What differs between the runs", columns=["", "A", "B"], rows=rows)] if rows else []


def _values(values: Sequence[str]) -> str | None:
    """All of them; of a digest the beginning, so that two fit beside each other."""
    return ", ".join(_DIGEST.sub(r"\1…", value) for value in values) or None


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
