"""A bench as tables like those of the EvoSQL paper, for what was run; shares are in percent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


def bench_parts(document: SqlBenchDocument) -> list[Rows | str]:
    """Everything that there is to show, with an empty line before each table but the first."""
    parts: list[Rows | str] = []
    for table in _parts(document):
        parts += ["", table] if parts else [table]
    return parts


def _parts(document: SqlBenchDocument) -> Iterator[Rows]:
    yield _standing_rows(document)
    if document.answered:
        yield _method_rows(document)
        yield from _strict_rows(document)
        yield _sampling_rows(document)
        yield from _relaxed_rows(document)
        yield from _difference_rows(document)
        yield from _token_rows(document)
        yield from _early_stop_rows(document)
    yield _spent_rows(document)


def _standing_rows(document: SqlBenchDocument) -> Rows:
    gold = document.gold_as_prediction
    rows: list[list[object]] = [
        ["data set", f"{document.dataset} {document.digest[:19]}"],
        ["questions", document.questions],
        ["evaluable", document.evaluable],
        *([f"left out: {name}", n] for name, n in document.standings.items() if name not in {"evaluable", "pending"}),
        ["answered", document.answered],
        ["gold as prediction", ", ".join(f"{name} {_percent(gold[name].share)}" for name in _METRICS)],
        ["gold depends on the order of reading", document.nondeterministic],
        ["flags of right answers", _listed(document.flags) or None],
    ]
    return Rows(title=f"Bench {document.run}", columns=["what", "value"], rows=rows, cell_characters=120)


def _method_rows(document: SqlBenchDocument) -> Rows:
    rows = [
        [_name(document, Method(method)), *(_counted(shares, metric) for metric in _METRICS)]
        for method, shares in document.methods.items()
    ]
    return Rows(title="Right answers: percent, and how many", columns=["method", *_METRICS], rows=rows)


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
                [like, before, _percent(first), after, _percent(second), _points(first, second)]
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
                    *map(_percent, made),
                    document.repaired[method]["strict"],
                    _percent(_value(document.pass_of_all_rounds[method], "strict")),
                ]
                for method, made in rounds.items()
            ],
        )


def _sampling_rows(document: SqlBenchDocument) -> Rows:
    """Table 8."""
    k = document.settings["candidates"]
    rows: list[list[object]] = [
        [f"Avg@{k}", *(_percent(document.avg_at_k[metric]) for metric in _METRICS)],
        [f"pass^{k}", *(_percent(_value(document.pass_hat_k, metric)) for metric in _METRICS)],
    ]
    if Method.MAJORITY.value in document.methods:
        majority = document.methods[Method.MAJORITY.value]
        rows.append([f"Maj@{k}", *(_percent(_value(majority, metric)) for metric in _METRICS)])
    rows.append([f"Pass@{k}", *(_percent(_value(document.pass_at_k, metric)) for metric in _METRICS)])
    return Rows(title="The first round alone (Table 8)", columns=["measure", *_METRICS], rows=rows)


def _relaxed_rows(document: SqlBenchDocument) -> Iterator[Rows]:
    """Table 9."""
    base = document.methods.get(Method.MAJORITY.value)
    if base is None:
        return
    rows = [
        [_name(document, Method(method)), _percent(_value(shares, "relaxed")), _delta(base, shares, "relaxed")]
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
            [name, f"round {one.round}", one.active, one.outputs, _percent(one.stopped_share)] for one in stop.rounds
        ]
        saved = f"{stop.aggregates_saved} of {stop.aggregates_without_stopping}"
        rows.append([name, "saved aggregates", None, saved, _percent(stop.saved_share)])
    if rows:
        columns = ["method", "round", "active questions", "generator outputs", "stopped, percent"]
        yield Rows(title="Early stopping (Table 12)", columns=columns, rows=rows)


def _spent_rows(document: SqlBenchDocument) -> Rows:
    usage = document.usage
    endings = [
        f"{method}: {', '.join(f'{n} {e}' for e, n in ends.items())}" for method, ends in document.endings.items()
    ]
    unchanged = [one.name for one in document.databases if one.unchanged]
    rows: list[list[object]] = [
        ["state", document.state],
        ["models", ", ".join(f"{role} {name}" for role, name in document.models.items())],
        ["endings", "; ".join(endings) or None],
        ["unreadable critiques", sum(document.unreadable.values())],
        ["requests", document.requests],
        ["calls lost in crashes", document.lost],
        ["tokens: input, cached, output", f"{usage.input_tokens}, {usage.cached_input_tokens}, {usage.output_tokens}"],
        ["US dollars", "unknown" if usage.usd is None else f"{usage.usd:.4f}"],
        ["SQLite", document.sqlite],
        ["policy", f"{document.policy['name']} {document.policy['digest'][:19]}"],
        ["columns kept back", sum(one.hidden for one in document.databases)],
        ["databases unchanged", f"{len(unchanged)} of {len(document.databases)}" if unchanged else "not compared yet"],
    ]
    if document.containers_left is not None:
        rows.append(["containers left", document.containers_left])
    return Rows(title="What it took", columns=["what", "value"], rows=rows, cell_characters=120)


def _round_cells(name: str, label: str, row: SqlRoundTokens) -> list[object]:
    infill, total = (
        _with_equivalent(row.infill, row.infill_equivalent),
        _with_equivalent(row.total, row.total_equivalent),
    )
    return [name, label, infill, row.decode, row.critic_infill or None, row.critic_decode or None, total]


def _with_equivalent(logged: int, equivalent: int) -> str:
    return f"{logged} ({equivalent})"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _name(document: SqlBenchDocument, method: Method) -> str:
    return _TITLES[method].format(k=document.settings["candidates"])


def _value(shares: MetricShares, metric: str) -> float | None:
    return shares[metric].share


def _counted(shares: MetricShares, metric: str) -> str:
    share = shares[metric]
    return f"{_percent(share.share)} ({share.right})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def _points(first: float | None, second: float | None) -> str:
    return "-" if first is None or second is None else f"{100 * (second - first):+.2f}"


def _delta(base: MetricShares, shares: MetricShares, metric: str) -> str:
    return _points(_value(base, metric), _value(shares, metric))
