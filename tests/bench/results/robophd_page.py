"""The measured evolution of Text-to-SQL packages as tables, and as its section of `docs/results.md`."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.cli.evolution_documents import AdvantageDocument, FinalScoreDocument
from orchestrator.cli.terminal import Rows
from tests.bench.results.page import Check, check_rows
from tests.bench.results.plan import PlannedRun
from tests.bench.results.records import EvolutionRecord, FinalRecord
from tests.bench.results.robophd_plan import MODELS, RobophdTargets

HEADING = "RoboPhD"
NAIVE = "naive"
_INTRODUCTION = """\
RoboPhD on the questions of Spider's and BIRD's development sets whose databases are at hand, dealt out by database:
most are for contests, three to choose the champion by, three for the figures below, which were scored once. Evolver and
answers are `offline`: rules and a grammar, no language model, so these figures say that a better package leads to
better answers, and nothing about any model. Nothing of the run was decided by the final databases; but the engine
itself was developed with questions of all these databases in view, so the level of accuracy is no forecast for others.
Accuracy is BIRD's execution accuracy.
"""
_INTERVALS = (
    "The advantage over the naive package is paired by question, with the 95 % interval of a bootstrap that resamples "
    "questions of equal gold queries together; it counts where it is more than half of the interval's width. *Hybrid* "
    "is the number of databases whose tool failed, so that a model analysed them, and the share of tokens this took."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEvolution:
    """`sql evolve`, and `final` on what came of it."""

    planned: PlannedRun
    record: EvolutionRecord
    planned_final: PlannedRun
    final: FinalRecord

    def score(self, package: str | None, model: str = MODELS[0]) -> FinalScoreDocument | None:
        """A final score; None: there is none."""
        scores = self.final.document.scores
        return next((one for one in scores if (one.package, one.model) == (package, model)), None)

    @property
    def advantage(self) -> AdvantageDocument | None:
        """Of the champion over the naive package under the run's model; None: it is the naive package."""
        champion = self.score(self.record.document.champion)
        return None if champion is None else _over_naive(champion)


def robophd_checks(measured: MeasuredEvolution, targets: RobophdTargets) -> list[Check]:
    """Every target."""
    document, found = measured.record.document, measured.advantage
    ended = sum(bool(one.accuracy) for one in document.iterations)
    points = None if found is None else 100 * found.difference
    needed = 0.0 if found is None else 100 * targets.half_widths * found.half_width
    minutes = measured.record.minutes
    return [
        Check(
            what="iterations that came to their end",
            target=f"{document.of_iterations}",
            figure=ended,
            is_reached=document.state == "done" and ended == document.of_iterations,
        ),
        Check(
            what="champion over the naive package, final databases",
            target=f"more than {needed:.2f} points, the half-width",
            figure=points,
            is_reached=points is not None and points > needed,
        ),
        Check(
            what="the evolution",
            target=f"at most {targets.minutes:g} min",
            figure=minutes,
            is_reached=minutes <= targets.minutes,
        ),
    ]


def score_rows(measured: MeasuredEvolution) -> Rows:
    """Table 1 of the paper: packages and answer models, accuracy and cost of each."""
    rows: list[list[object]] = []
    for one in measured.final.document.scores:
        found = _over_naive(one)
        cells = (
            [None, None, None]
            if found is None
            else [
                f"{100 * found.difference:+.2f}",
                f"{100 * found.low:+.2f} to {100 * found.high:+.2f}",
                f"{100 * found.half_width:.2f}",
            ]
        )
        share = "-" if one.hybrid_share is None else f"{100 * one.hybrid_share:.1f} %"
        rows.append(
            [
                one.package,
                one.model,
                f"{100 * one.accuracy:.2f}",
                f"{one.right}/{one.questions}",
                *cells,
                f"{one.hybrid_databases} of {len(one.databases)} ({share})",
                f"{one.tokens_per_question:.0f}",
                "unknown" if one.usd_per_question is None else f"{100 * one.usd_per_question:.3f}",
            ]
        )
    columns = [
        "package", "answer model", "accuracy", "right", "advantage (points)", "95 % interval", "half-width", "hybrid",
        "tokens a query", "cents a query",
    ]  # fmt: skip
    return Rows(title="Final databases", columns=columns, rows=rows)


def database_rows(measured: MeasuredEvolution) -> Rows:
    """Champion and naive package on each of the final databases."""
    champion, naive = measured.score(measured.record.document.champion), measured.score(NAIVE)
    rows: list[list[object]] = []
    for name in measured.final.document.databases:
        rows.append([name, *("-" if one is None else _of(one.databases.get(name)) for one in (naive, champion))])
    return Rows(title="Right answers by final database", columns=["database", "naive", "champion"], rows=rows)


def package_rows(measured: MeasuredEvolution) -> Rows:
    """All packages, the best rated first."""
    document = measured.record.document
    rows: list[list[object]] = [
        [
            f"{one.id} (champion)" if one.id == document.champion else one.id,
            round(one.rating),
            one.tests,
            f"{one.right}/{one.questions}",
            "-" if not one.select_questions else f"{one.select_right}/{one.select_questions}",
            ", ".join(one.parents) or None,
        ]
        for one in document.packages
    ]
    return Rows(title="Packages", columns=["package", "Elo", "contests", "right", "selection", "parents"], rows=rows)


def robophd_section(measured: MeasuredEvolution, targets: RobophdTargets, machine: str) -> str:
    """The text below its heading.

    Args:
        measured: The evolution and its final scores.
        targets: What the figures are held to.
        machine: Where they were measured, without any name.
    """
    document = measured.record.document
    versions = ", ".join(sorted({measured.record.version, measured.final.version}))
    split = [
        f"- {purpose}: {', '.join(document.databases[part])}"
        for part, purpose in (("evolve", "contests"), ("select", "selection"), ("final", "final figures"))
    ]
    how = (
        f"## How\n\nMeasured on {machine}, at {versions}; {measured.record.minutes:.1f} minutes for the evolution, "
        f"{measured.final.minutes:.1f} for the final figures.\n*DIR* holds the data sets, *RUN* is the evolution.\n"
    )
    commands = [measured.planned.command, measured.planned_final.command]
    return "\n".join(
        [
            _INTRODUCTION,
            check_rows(robophd_checks(measured, targets)).markdown(),
            f"{score_rows(measured).markdown()}\n{_INTERVALS}\n",
            database_rows(measured).markdown(),
            package_rows(measured).markdown(),
            "## Databases\n\n" + "\n".join(split) + "\n",
            how,
            "```\n" + "\n".join(commands) + "\n```\n",
        ]
    )


def _over_naive(score: FinalScoreDocument) -> AdvantageDocument | None:
    return next((one for one in score.advantages if one.over == NAIVE), None)


def _of(counts: list[int] | None) -> str:
    return "-" if counts is None else f"{counts[0]}/{counts[1]}"
