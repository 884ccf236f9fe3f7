"""Runs of one task side by side."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.documents import RunDocument
from orchestrator.cli.history import RunView
from orchestrator.cli.ledger import all_tokens, ledger_rows
from orchestrator.cli.report_documents import ComparedRun, ReadsDocument, ReportDocument, SplitDifference
from orchestrator.cli.summaries import run_document
from orchestrator.cli.terminal import Rows
from orchestrator.methods.agentic_evolve.statistics import cross_island_reads


def compared(view: RunView) -> ComparedRun:
    """One run as a column of the report."""
    reads = cross_island_reads(view.history)
    return ComparedRun(
        run=run_document(view),
        analysis=bool(view.history.header["settings"]["analysis"]),
        curve=view.curve(),
        cells={str(island): len(grid) for island, grid in view.history.grids().items()},
        cross_island_reads=ReadsDocument(
            offered=reads.offered,
            offered_and_read=reads.offered_and_read,
            commits_after_a_read=reads.commits_after_a_read,
            improved_island_best=reads.improved_island_best,
            improved_run_best=reads.improved_run_best,
            identical_to_a_read=reads.identical_to_a_read,
        ),
    )


def report_document(views: Sequence[RunView], columns: Sequence[ComparedRun], files: list[str]) -> ReportDocument:
    """The whole report."""
    quality = views[0].quality
    return ReportDocument(
        quality=quality.metric,
        lower_is_better=quality.lower_is_better,
        runs=list(columns),
        differences=[
            SplitDifference(run=other.run_id, split=split, points=quality.gain(first, value))
            for other in views[1:]
            for split, value in best_scores(other).items()
            if (first := best_scores(views[0]).get(split)) is not None
        ],
        files=files,
    )


def comparison_rows(views: Sequence[RunView], columns: Sequence[ComparedRun]) -> Rows:
    """One column for each run."""
    quality = views[0].quality
    initials, bests = [initial_scores(view) for view in views], [best_scores(view) for view in views]
    splits = list(dict.fromkeys(split for scores in bests for split in scores))
    documents = [column.run for column in columns]
    rows: list[list[object]] = [
        ["analyses allowed", *(column.analysis for column in columns)],
        ["model", *(document.model for document in documents)],
        ["seed", *(document.seed for document in documents)],
        ["state", *(document.state for document in documents)],
        ["hidden data are secret", *(_is_secret(view) for view in views)],
    ]
    for split in splits:
        rows.append([f"initial, {split}", *(scores.get(split) for scores in initials)])
        rows.append([f"best, {split}", *(scores.get(split) for scores in bests)])
    rows += [
        ["best candidate", *(None if document.best is None else document.best.id for document in documents)],
        ["evaluations", *(document.evaluations for document in documents)],
        ["analyses", *(document.analyses for document in documents)],
        ["requests", *(document.requests for document in documents)],
        ["tokens", *(all_tokens(document.usage) for document in documents)],
        ["US dollars", *(document.usage.usd for document in documents)],
        ["endings", *(_endings(document) for document in documents)],
        ["cells per island", *(", ".join(str(cells) for cells in column.cells.values()) for column in columns)],
        ["programs read across islands", *(column.cross_island_reads.offered_and_read for column in columns)],
    ]
    unit = f", {quality.unit}" if quality.unit else ""
    better = "lower is better" if quality.lower_is_better else "higher is better"
    title = f"{documents[0].task}: {quality.label}{unit} ({better})"
    return Rows(title=title, columns=["", *(document.run for document in documents)], rows=rows)


def spending_rows(columns: Sequence[ComparedRun]) -> list[Rows]:
    """The ledger of each run, by role, model and island."""
    return [rows for column in columns for rows in ledger_rows(column.run.ledger, column.run.run)]


def difference_rows(document: ReportDocument) -> list[Rows]:
    """How much better or worse the first run is than the others; nothing for a single run."""
    if not document.differences:
        return []
    rows = [[difference.run, difference.split, _sentence(difference.points)] for difference in document.differences]
    first = document.runs[0].run.run
    return [Rows(title=f"Run {first} compared with", columns=["run", "split", "it is"], rows=rows)]


def _sentence(points: float) -> str:
    if points == 0:
        return "equal"
    return f"{'better' if points > 0 else 'worse'} by {abs(points):.6g} points"


def initial_scores(view: RunView) -> dict[str, float]:
    """Quality of the initial program by split."""
    return scores_by_split(view, None if view.history.initial is None else view.history.initial.id)


def best_scores(view: RunView) -> dict[str, float]:
    """Quality of the run's best by split, the one that guides the search first."""
    return scores_by_split(view, None if view.best is None else view.best.id)


def _is_secret(view: RunView) -> bool | None:
    return None if view.history.initial is None else view.history.initial.verdict.secret


def scores_by_split(view: RunView, candidate_id: str | None) -> dict[str, float]:
    """Quality of a candidate by split; empty: there is no such, or it has no score."""
    verdicts = [entry.verdict for entry in view.history.candidates if entry.id == candidate_id]
    verdicts += [verdict for measured, verdict in view.finals if measured == candidate_id]
    return {verdict.split: verdict.metrics[view.quality.metric] for verdict in verdicts if verdict.metrics is not None}


def _endings(document: RunDocument) -> str | None:
    return ", ".join(f"{count} {ending}" for ending, count in document.endings.items()) or None
