"""A bench as tables like those of the EvoSQL paper, for what was run; shares are in percent."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.cli.sql_documents import MetricShares, SqlBenchDocument, SqlRoundTokens
from orchestrator.cli.terminal import Rows
from orchestrator.evaluation.sql_judge import Metric

_TITLES = {
    Method.MAJORITY: "Maj@{k}",
    Method.SELF_EVOLUTION: "self-evolution",
    Method.EVOSQL: "EvoSQL",
    Method.BEST_OF_K: "EvoSQL + Best-of-{k}",
}
_METRICS = [metric.value for metric in Metric]


def paper_tables(document: SqlBenchDocument) -> Iterator[Rows]:
    """The tables of a bench that has answered something."""
    yield from _strict_rows(document)
    yield _sampling_rows(document)
    yield from _relaxed_rows(document)
    yield from _difference_rows(document)
    yield from _token_rows(document)
    yield from _early_stop_rows(document)


def _strict_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    """Tables 1 to 4: what each step adds, in strict accuracy."""
    strict = {method: _value(shares, "strict") for method, shares in document.methods.items()}
    rounds = {method: [_value(one, "strict") for one in made] for method, made in document.rounds.items()}
    pairs: list[tuple[str, str, float | None, str, float | None]] = []
    for title, before, after in (
        ("Table 1", Method.MAJORITY, Method.EVOSQL),
        ("Table 3", Method.SELF_EVOLUTION, Method.EVOSQL),
        ("Table 4", Method.EVOSQL, Method.BEST_OF_K),
    ):
        if before.value in strict and after.value in strict:
            names = _name(document, before), _name(document, after)
            pairs.append((title, names[0], strict[before.value], names[1], strict[after.value]))
        if title == "Table 1":
            pairs += [
                ("Table 2", f"{_name(document, Method(m))} T1", made[0], f"T{len(made)}", made[-1])
                for m, made in rounds.items()
            ]
    if pairs:
        yield Rows(
            title="Strict execution accuracy (the paper's Tables 1 to 4)",
            columns=["like", "from", "percent", "to", "percent ", "delta"],
            rows=[
                [like, before, percent(first), after, percent(second), _points(first, second)]
                for like, before, first, after, second in pairs
            ],
        )
    if any(len(made) > 1 for made in rounds.values()):
        longest = max(map(len, rounds.values()))
        yield Rows(
            title="Strict execution accuracy by round, and what was gained over the first round's candidates",
            columns=["method", *(f"T{n + 1}" for n in range(longest)), "repaired questions", "Pass of all rounds"],
            rows=[
                [
                    _name(document, Method(method)),
                    *map(percent, made),
                    document.repaired[method]["strict"],
                    percent(_value(document.pass_of_all_rounds[method], "strict")),
                ]
                for method, made in rounds.items()
            ],
        )


def _sampling_rows(document: SqlBenchDocument) -> Rows:
    """Table 8."""
    k = document.settings["candidates"]
    rows: list[list[object]] = [
        [f"Avg@{k}", *(percent(document.avg_at_k[metric]) for metric in _METRICS)],
        [f"pass^{k}", *(percent(_value(document.pass_hat_k, metric)) for metric in _METRICS)],
    ]
    if Method.MAJORITY.value in document.methods:
        majority = document.methods[Method.MAJORITY.value]
        rows.append([f"Maj@{k}", *(percent(_value(majority, metric)) for metric in _METRICS)])
    rows.append([f"Pass@{k}", *(percent(_value(document.pass_at_k, metric)) for metric in _METRICS)])
    return Rows(title="The first round alone (Table 8)", columns=["measure", *_METRICS], rows=rows)


def _relaxed_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    """Table 9."""
    base = document.methods.get(Method.MAJORITY.value)
    if base is None:
        return
    rows = [
        [_name(document, Method(method)), percent(_value(shares, "relaxed")), _delta(base, shares, "relaxed")]
        for method, shares in document.methods.items()
    ]
    k = document.settings["candidates"]
    yield Rows(
        title="Relaxed execution accuracy (Table 9)", columns=["method", "percent", f"against Maj@{k}"], rows=rows
    )


def _difference_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    if document.differences:
        yield Rows(
            title="Differences in points, with 95 % intervals of a paired bootstrap",
            columns=["difference", "metric", "points", "from", "to"],
            rows=[
                [
                    f"{_name(document, Method(one.first))} - {_name(document, Method(one.other))}",
                    one.metric,
                    *(f"{100 * value:+.2f}" for value in (one.difference, one.low, one.high)),
                ]
                for one in document.differences
            ],
        )


def _token_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    """Table 11; in parentheses the maj@K-equivalent."""
    rows: list[list[object]] = []
    for method, tokens in document.tokens.items():
        name = _name(document, Method(method))
        rows += [_round_cells(name, f"round {row.round}", row) for row in tokens.rounds]
        rows.append(_round_cells(name, "total", tokens.total))
        if tokens.total_with_last_judgement != tokens.total:
            rows.append(_round_cells(name, "with the last judgement", tokens.total_with_last_judgement))
    if rows:
        k = document.settings["candidates"]
        columns = ["method", "round", "gen. infill", "gen. decode", "critic infill", "critic decode", "total"]
        yield Rows(title=f"Tokens (Table 11; in parentheses maj@{k}-equivalent)", columns=columns, rows=rows)


def _early_stop_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    """Table 12."""
    rows: list[list[object]] = []
    for method, stop in document.early_stop.items():
        name = _name(document, Method(method))
        rows += [
            [name, f"round {one.round}", one.active, one.outputs, percent(one.stopped_share)] for one in stop.rounds
        ]
        saved = f"{stop.aggregates_saved} of {stop.aggregates_without_stopping}"
        rows.append([name, "saved aggregates", None, saved, percent(stop.saved_share)])
    if rows:
        columns = ["method", "round", "active questions", "generator outputs", "stopped, percent"]
        yield Rows(title="Early stopping (Table 12)", columns=columns, rows=rows)


def _round_cells(name: str, label: str, row: SqlRoundTokens) -> list[object]:
    infill, total = (
        _with_equivalent(row.infill, row.infill_equivalent),
        _with_equivalent(row.total, row.total_equivalent),
    )
    return [name, label, infill, row.decode, row.critic_infill or None, row.critic_decode or None, total]


def _with_equivalent(logged: int, equivalent: int) -> str:
    return f"{logged} ({equivalent})"


def method_title(method: str, k: int) -> str:
    """A method's name for people.

    Args:
        method: As documents have it.
        k: Candidates of a round.
    """
    return _TITLES[Method(method)].format(k=k)


def _name(document: SqlBenchDocument, method: Method) -> str:
    return method_title(method.value, document.settings["candidates"])


def _value(shares: MetricShares, metric: str) -> float | None:
    return shares[metric].share


def percent(share: float | None) -> str:
    """A share for people; None: of nothing."""
    return "-" if share is None else f"{100 * share:.2f}"


def _points(first: float | None, second: float | None) -> str:
    return "-" if first is None or second is None else f"{100 * (second - first):+.2f}"


def _delta(base: MetricShares, shares: MetricShares, metric: str) -> str:
    return _points(_value(base, metric), _value(shares, metric))
