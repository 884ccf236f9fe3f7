"""The measured benches of Text-to-SQL as tables, and as their section of `docs/results.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.cli.sql_documents import MetricShares
from orchestrator.cli.terminal import Rows
from tests.bench.results.page import Check, check_rows
from tests.bench.results.records import SqlRecord
from tests.bench.results.sql_plan import PlannedBench, SqlTargets

HEADING = "Text-to-SQL"
HELD_IN = ("strict", "bird")
_METRICS = ("strict", "relaxed", "bird", "multiset", "spider")
_METHODS = {
    "majority": "Maj@{k}",
    "self_evolution": "self-evolution",
    "evosql": "EvoSQL",
    "best_of_k": "EvoSQL + Best-of-{k}",
}
_INTRODUCTION = """\
EvoSQL and its baselines on the questions of Spider's and BIRD's development sets whose databases are at hand, all on
the same first-round candidates, with the paper's settings. The model is `offline`: rules and a grammar, no language
model, so these figures say what the method adds to its candidates and nothing about any model. The metrics are those of
[text-to-sql.md](text-to-sql.md); every share is of the evaluable questions, in percent.
"""
_INTERVALS = (
    "The interval is that of a paired bootstrap over the questions, at 95 %; one that holds 0 shows no difference."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBench:
    """`sql bench` on one data set."""

    planned: PlannedBench
    record: SqlRecord

    def share(self, method: str, metric: str) -> float | None:
        """How often a method is right, in percent; None: there is no question."""
        return _percent(self.record.document.methods[method][metric].share)

    def points(self, metric: str) -> float | None:
        """EvoSQL's advantage over the majority, in percentage points."""
        ours, theirs = self.share("evosql", metric), self.share("majority", metric)
        return None if ours is None or theirs is None else ours - theirs

    @property
    def worst_gold(self) -> float | None:
        """The lowest of the metrics' shares of gold that is right when it is judged like a prediction, in percent."""
        shares = [_percent(share.share) for share in self.record.document.gold_as_prediction.values()]
        known = [share for share in shares if share is not None]
        return min(known) if known and len(known) == len(shares) else None


def sql_checks(benches: Sequence[MeasuredBench], targets: SqlTargets) -> list[Check]:
    """Every target."""
    found: list[Check] = []
    for bench in benches:
        name, document = bench.planned.name, bench.record.document
        expected = bench.planned.questions
        found.append(
            Check(
                what=f"{name}, questions that came to their end",
                target=f"{expected}, less what cannot be evaluated",
                figure=document.answered,
                is_reached=document.state == "done"
                and document.questions == expected
                and document.answered == document.evaluable > 0,
            )
        )
        found.append(_at_least(f"{name}, gold as prediction", bench.worst_gold, targets.gold_percent, "%"))
        for metric in HELD_IN:
            what = f"{name}, EvoSQL over Maj@{_k(bench)}, {metric}"
            found.append(_at_least(what, bench.points(metric), targets.points_over_majority, "points"))
        changed = sum(database.unchanged is not True for database in document.databases)
        found.append(_at_most(f"{name}, databases that changed", changed, 0, ""))
    if benches:
        repaired = sum(bench.record.document.repaired["evosql"]["strict"] for bench in benches)
        found.append(_at_least("repaired questions, strict", repaired, targets.repaired, ""))
        minutes = sum(bench.record.minutes for bench in benches)
        found.append(_at_most("all benches together", minutes, targets.minutes, "min"))
    return found


def accuracy_rows(benches: Sequence[MeasuredBench]) -> Rows:
    """Every method, and what the first round's candidates would allow."""
    rows: list[list[object]] = []
    for bench in benches:
        document, k = bench.record.document, _k(bench)
        average = {metric: _percent(document.avg_at_k[metric]) for metric in _METRICS}
        rows.append([bench.planned.name, f"Avg@{k}", *(_two_digits(average[metric]) for metric in _METRICS)])
        for method, title in _METHODS.items():
            rows.append([bench.planned.name, title.format(k=k), *_cells(document.methods[method])])
        rows.append([bench.planned.name, f"Pass@{k} of the first round", *_cells(document.pass_at_k)])
        rows.append([bench.planned.name, "Pass of all rounds", *_cells(document.pass_of_all_rounds["evosql"])])
    return Rows(title="Accuracy", columns=["data set", "method", *_METRICS], rows=rows)


def difference_rows(benches: Sequence[MeasuredBench]) -> Rows:
    """EvoSQL against self-evolution and against the majority, in points with their intervals."""
    rows = [
        [
            bench.planned.name,
            f"EvoSQL - {_METHODS[one.other].format(k=_k(bench))}",
            one.metric,
            *(f"{100 * value:+.2f}" for value in (one.difference, one.low, one.high)),
        ]
        for bench in benches
        for one in bench.record.document.differences
    ]
    columns = ["data set", "difference", "metric", "points", "from", "to"]
    return Rows(title="Differences", columns=columns, rows=rows)


def round_rows(benches: Sequence[MeasuredBench]) -> Rows:
    """What each round adds, what was repaired, and what early stopping saved."""
    longest = max(len(bench.record.document.rounds["evosql"]) for bench in benches)
    rows: list[list[object]] = []
    for bench in benches:
        document = bench.record.document
        stop = document.early_stop["evosql"]
        made = [_two_digits(_percent(one["strict"].share)) for one in document.rounds["evosql"]]
        saved = f"{stop.aggregates_saved} of {stop.aggregates_without_stopping}"
        rows.append(
            [
                bench.planned.name,
                *made,
                *[None] * (longest - len(made)),
                *(document.repaired["evosql"][metric] for metric in HELD_IN),
                ", ".join(str(one.active) for one in stop.rounds),
                f"{saved} ({_two_digits(_percent(stop.saved_share))} %)",
            ]
        )
    columns = [
        "data set",
        *(f"strict after T{number + 1}" for number in range(longest)),
        *(f"repaired, {metric}" for metric in HELD_IN),
        "questions active in each round",
        "aggregate generations saved",
    ]
    return Rows(title="EvoSQL by round, and its early stopping", columns=columns, rows=rows)


def spent_rows(benches: Sequence[MeasuredBench]) -> Rows:
    """What was measured, and what it took."""
    rows = []
    for bench in benches:
        document = bench.record.document
        evosql = document.tokens["evosql"].total
        left_out = ", ".join(f"{count} {name}" for name, count in document.standings.items() if name != "evaluable")
        rows.append(
            [
                bench.planned.name,
                document.questions,
                document.evaluable,
                left_out or None,
                len(document.databases),
                f"{evosql.total} ({evosql.total_equivalent})",
                document.requests,
                f"{bench.record.minutes:.1f}",
            ]
        )
    columns = [
        "data set", "questions", "evaluable", "left out", "databases", "tokens of EvoSQL (maj@K-equivalent)",
        "requests of all methods", "minutes",
    ]  # fmt: skip
    return Rows(title="What was measured", columns=columns, rows=rows)


def sql_section(benches: Sequence[MeasuredBench], targets: SqlTargets, machine: str) -> str:
    """The text below its heading.

    Args:
        benches: At least one.
        targets: What the figures are held to.
        machine: Where they were measured, without any name.
    """
    records = [bench.record for bench in benches]
    versions = ", ".join(sorted({record.version for record in records}))
    engines = ", ".join(sorted({record.document.sqlite for record in records}))
    parts = [_INTRODUCTION, check_rows(sql_checks(benches, targets)).markdown()]
    parts.append(accuracy_rows(benches).markdown())
    parts.append(difference_rows(benches).markdown() + f"\n{_INTERVALS}\n")
    parts.append(round_rows(benches).markdown())
    parts.append(spent_rows(benches).markdown())
    parts.append(
        f"## How\n\nMeasured on {machine}, SQLite {engines}, at {versions}. Minutes are wall time of the whole command."
        "\n*DIR* holds the data sets.\n"
    )
    parts.append("```\n" + "\n".join(bench.planned.run.command for bench in benches) + "\n```\n")
    return "\n".join(parts)


def _at_least(what: str, figure: float | None, least: float, unit: str) -> Check:
    target = f"at least {least:g} {unit}".strip()
    return Check(what=what, target=target, figure=figure, is_reached=figure is not None and figure >= least)


def _at_most(what: str, figure: float, most: float, unit: str) -> Check:
    return Check(what=what, target=f"at most {most:g} {unit}".strip(), figure=figure, is_reached=figure <= most)


def _cells(shares: MetricShares) -> list[str | None]:
    return [_two_digits(_percent(shares[metric].share)) for metric in _METRICS]


def _k(bench: MeasuredBench) -> int:
    return int(bench.record.document.settings["candidates"])


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _two_digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"
