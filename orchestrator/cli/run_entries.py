"""All runs, of whatever kind, in a line each."""

from __future__ import annotations

from orchestrator.bootstrap.pauses import pause_of
from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.bootstrap.runs import BATCH, EVOLUTION, SQL_BENCH, SQL_SWEEP, kind_of
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.bootstrap.sql.sweep_header import read_sweep_header
from orchestrator.bootstrap.sql.sweep_results import recorded_best, sweep_state
from orchestrator.cli.batch_summaries import batch_entry
from orchestrator.cli.documents import RunEntry, RunsDocument
from orchestrator.cli.evolution_summaries import EVOLVE, evolution_entry
from orchestrator.cli.history import read_view
from orchestrator.cli.sql_summaries import bench_entry
from orchestrator.cli.sql_sweep_summaries import sweep_entry
from orchestrator.cli.summaries import run_document
from orchestrator.cli.terminal import Rows
from orchestrator.errors import EvolvariumError
from orchestrator.storage.runs import RunInfo, RunStore


def run_entry(store: RunStore, info: RunInfo) -> RunEntry:
    """One run among others; one that cannot be read is listed as such."""
    try:
        with store.open(info.id, read_only=True) as journal:
            if kind_of(journal) == BATCH:
                return batch_entry(store, info, journal)
            if kind_of(journal) == SQL_BENCH:
                return bench_entry(read_bench(info.id, journal), info)
            if kind_of(journal) == SQL_SWEEP:
                header, state = read_sweep_header(info.id, journal), sweep_state(journal)
                return sweep_entry(header, state, recorded_best(journal), info, pause_of(journal))
            if kind_of(journal) == EVOLUTION:
                return evolution_entry(read_results(info.id, journal), info)
            view = read_view(info.id, journal, with_ledger=False)
            document = run_document(view)
    except EvolvariumError as error:
        return RunEntry(
            run=info.id,
            state="unreadable",
            created_at=info.created_at,
            bytes=info.size_bytes,
            owner_pid=info.owner_pid,
            problem=info.problem or str(error),
        )
    return RunEntry(
        run=info.id,
        task=document.task,
        method=document.method,
        model=document.model,
        seed=document.seed,
        state=document.state,
        pause=document.pause,
        created_at=info.created_at,
        evaluations=document.evaluations,
        best=document.best,
        quality=None if document.best is None else document.best.metrics[view.quality.metric],
        bytes=info.size_bytes,
        owner_pid=info.owner_pid,
    )


def runs_rows(document: RunsDocument) -> Rows:
    """All runs."""
    columns = ["run", "task", "method", "model", "seed", "state", "evaluations", "best", "quality", "begun (UTC)"]
    rows = [
        [
            entry.run,
            entry.task if entry.questions is None else f"{entry.task} ({_questions(entry.questions)})",
            entry.method if entry.methods is None else f"{entry.method}: {', '.join(entry.methods)}",
            entry.model,
            entry.seed,
            f"running as {entry.owner_pid}" if entry.owner_pid else entry.state,
            entry.evaluations,
            entry.accuracy_of if entry.best is None else entry.best.id,
            entry.quality if entry.accuracy is None else _accuracy(entry, entry.accuracy),
            (entry.created_at or "")[:19].replace("T", " ") or None,
        ]
        for entry in document.runs
    ]
    spare = ["model", "method", "seed", "evaluations", "begun (UTC)", "task"]
    return Rows(title="Runs", columns=columns, rows=rows, spare_columns=spare)


def _accuracy(entry: RunEntry, share: float) -> str:
    """The share, and how much there is to be said for it: a share of few questions looks like one of all."""
    answered, missed = entry.answered or 0, entry.not_reached or 0
    reached = f" (budget reached {answered - missed} of {answered})" if missed else ""
    if missed and missed == answered:
        return f"-{reached}"
    so_far = f" of {answered} of {entry.evaluable}" if entry.evaluable and answered < entry.evaluable else ""
    return f"{100 * share:.2f} % {'on selection' if entry.method == EVOLVE else 'strict'}{so_far}{reached}"


def _questions(count: int) -> str:
    return "1 question" if count == 1 else f"{count} questions"
