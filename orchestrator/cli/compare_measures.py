"""What `compare` says of two groups of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

from orchestrator.bootstrap.compare import BUDGETS, differences
from orchestrator.cli.compare_documents import (
    BandDocument,
    ComparisonDocument,
    ConditionDocument,
    GroupedRun,
    LeftOutRun,
    RunGroup,
    SampleDocument,
    SplitComparison,
)
from orchestrator.cli.compare_reading import SPENT, SPENT_WORDS, CountedRun, Group, Spent
from orchestrator.cli.comparison import best_scores, initial_scores
from orchestrator.runtime.counts import counted
from orchestrator.search.resampling import LEVEL
from orchestrator.search.statistics import LARGEST, RESAMPLES, Sample, mean_difference, rank_test, sample
from orchestrator.search.statistics_bands import Band, band_kind, band_over
from orchestrator.search.streams import stream

_LEVEL_OF_TESTS = 0.05
_WORDS = {"budget_usd": "US dollars at most", "budget_tokens": "tokens at most"}


def comparison_document(
    first: Group, other: Group, *, seed: int, accepted: Sequence[str], files: Sequence[str]
) -> ComparisonDocument:
    """All of it.

    Args:
        first: Group A.
        other: Group B, comparable with it.
        seed: Of the bootstrap.
        accepted: What the user accepted, in sentences.
        files: What will be written.
    """
    view = first.runs[0].view
    found = differences([run.conditions() for run in first.runs], [run.conditions() for run in other.runs])
    conditions = [ConditionDocument(name=name, a=a, b=b) for name, (a, b) in found.items()]
    every = [*first.runs, *other.runs]
    splits = dict.fromkeys(
        [str(view.history.header["task"]["search_split"]), *(split for run in every for split in _scores(run))]
    )
    compared = [_split(split, first, other, seed) for split in splits]
    bands, unknown = _bands(first, other)
    return ComparisonDocument(
        task=str(view.history.header["task"]["name"]),
        quality=view.quality.metric,
        label=view.quality.label,
        unit=view.quality.unit,
        lower_is_better=view.quality.lower_is_better,
        a=_group(first),
        b=_group(other),
        conditions=conditions,
        splits=compared,
        bands=bands,
        seed=seed,
        resamples=RESAMPLES,
        level=LEVEL,
        warnings=[
            *accepted,
            *_warnings(first, other, conditions),
            *map(_missing, filter(_is_partial, compared)),
            *unknown,
        ],
        files=list(files),
    )


def condition_words(name: str) -> str:
    """What differs between runs, as people say it."""
    return _WORDS.get(name, name.replace("_", " "))


def _group(group: Group) -> RunGroup:
    return RunGroup(
        runs=[
            GroupedRun(
                run=run.run_id,
                seed=run.view.history.header["settings"]["seed"],
                best=run.best.id,
                quality=_scores(run),
                evaluations=len(run.view.history.paid),
                tokens=run.view.history.total.usage.tokens,
                usd=run.view.history.total.usage.usd,
                cpu_seconds=run.spent("cpu_seconds"),
            )
            for run in group.runs
        ],
        left_out=[LeftOutRun(run=run_id, reason=reason) for run_id, reason in group.left_out.items()],
    )


def _scores(run: CountedRun) -> dict[str, float]:
    return {split: value for split, value in best_scores(run.view).items() if abs(value) <= LARGEST}


def _split(split: str, first: Group, other: Group, seed: int) -> SplitComparison:
    quality = first.runs[0].view.quality
    every = [*first.runs, *other.runs]
    initials = {initial_scores(run.view).get(split) for run in every}
    a, b = ([scores[split] for run in group.runs if split in (scores := _scores(run))] for group in (first, other))
    common = {
        "split": split,
        "seen": split == first.runs[0].view.history.header["task"]["search_split"],
        "initial": initials.pop() if len(initials) == 1 else None,
        "a": _sample(a),
        "b": _sample(b),
        "missing": [run.run_id for run in every if split not in _scores(run)],
    }
    if not a or not b:
        nothing = dict.fromkeys(("points", "low", "high", "u", "pairs", "p", "p_method"))
        return SplitComparison.model_validate(common | nothing)
    sign = -1.0 if quality.lower_is_better else 1.0
    gains_a, gains_b = [sign * value for value in a], [sign * value for value in b]
    difference = mean_difference(gains_a, gains_b, generator=stream(seed, "compare", split))
    test = rank_test(gains_a, gains_b)
    tested = {"u": test.u, "pairs": test.pairs, "p": test.p, "p_method": test.method}
    interval = {"points": difference.difference, "low": difference.low, "high": difference.high}
    return SplitComparison.model_validate(common | interval | tested)


def _sample(values: Sequence[float]) -> SampleDocument | None:
    if not values:
        return None
    found: Sample = sample(values)
    return SampleDocument(n=found.n, mean=found.mean, sd=found.sd, median=found.median, min=found.low, max=found.high)


def _bands(first: Group, other: Group) -> tuple[list[BandDocument], list[str]]:
    """Bands of both groups against all that is known and was spent, and warnings about what is not known."""
    kind = band_kind(min(len(first.runs), len(other.runs)))
    bands: list[BandDocument] = []
    warnings: list[str] = []
    for what in SPENT:
        curves = [[run.curve(what) for run in group.runs] for group in (first, other)]
        unknown = [
            run.run_id
            for group, its in zip((first, other), curves, strict=True)
            for run, curve in zip(group.runs, its, strict=True)
            if curve is None
        ]
        if unknown:
            warnings.append(f"no curve against {SPENT_WORDS[what]}, which is unknown for {', '.join(unknown)}")
            continue
        known = [[curve for curve in its if curve is not None] for its in curves]
        if any(spent for its in known for curve in its for spent, _ in curve):
            bands.append(_band_document("a", what, band_over(known[0], kind)))
            bands.append(_band_document("b", what, band_over(known[1], kind)))
    return bands, warnings


def _band_document(group: str, what: Spent, band: Band) -> BandDocument:
    rows = list(zip(band.spent, band.median, band.low, band.high, strict=True))
    return BandDocument.model_validate({"group": group, "spent": what, "band": band.kind, "rows": rows})


def _warnings(first: Group, other: Group, conditions: Iterable[ConditionDocument]) -> list[str]:
    warnings = [
        f"{group.option}: run {run_id} is left out: {reason}"
        for group in (first, other)
        for run_id, reason in group.left_out.items()
    ]
    for condition in conditions:
        mixed = [group.option for group, values in ((first, condition.a), (other, condition.b)) if len(values) > 1]
        if mixed:
            warnings.append(f"{' and '.join(mixed)}: the runs differ in {condition_words(condition.name)}")
        elif condition.name in BUDGETS and condition.a and condition.b:
            words = condition_words(condition.name)
            warnings.append(f"the budgets differ in {words}: {condition.a[0]} in A, {condition.b[0]} in B")
    for group in (first, other):
        warnings += [
            f"{group.option}: runs {' and '.join(runs)} made the same programs; they count as {len(runs)} runs and are "
            "evidence of one"
            for runs in _same_programs(group)
        ]
    n, m = len(first.runs), len(other.runs)
    least = min(1.0, 2 / comb(n + m, n))
    if least > _LEVEL_OF_TESTS:
        warnings.append(
            f"with {n} and {counted(m, 'run')} the p-value is {least:.3g} at the least, however large the difference"
        )
    return warnings


def _same_programs(group: Group) -> list[list[str]]:
    """Runs that repeat each other, as those of a seed with the offline engine and replays do."""
    made: dict[tuple[str, ...], list[str]] = {}
    for run in group.runs:
        programs = tuple(entry.candidate.payload.digest for entry in run.view.history.commits)
        if programs:
            made.setdefault(programs, []).append(run.run_id)
    return [runs for runs in made.values() if len(runs) > 1]


def _is_partial(split: SplitComparison) -> bool:
    return bool(split.missing)


def _missing(split: SplitComparison) -> str:
    does = "does" if len(split.missing) == 1 else "do"
    of = f"of the best of {', '.join(split.missing)}, which {does} not count there"
    return f"split {split.split!r} has no score, or one of more than {LARGEST:g} in size, {of}"
