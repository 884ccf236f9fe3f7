"""A run as the data that its page's script reads: commits, experiments and answers, each list within a fixed size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from orchestrator.bootstrap.analyses import RecordedAnalysis
from orchestrator.bootstrap.report_records import Answers, ReportRecords
from orchestrator.bootstrap.shown_answers import ShownAnswer
from orchestrator.cli.history import RunView
from orchestrator.cli.report_page.markup import inert_json
from orchestrator.cli.report_page.texts import NOTHING, TextPool
from orchestrator.cli.terminal import one_line, visible
from orchestrator.cli.verdicts import failure_document, failure_text
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.history import ending_of

T = TypeVar("T")
_PROGRAM_CHARACTERS = 1 << 16
_PRINTED_CHARACTERS = 1 << 14
_LINE_CHARACTERS = 160
_PARENTS = 12


def run_data(view: RunView, records: ReportRecords, pool: TextPool, *, max_bytes: int) -> dict[str, Any]:
    """All lists of a run.

    Args:
        view: Of the run.
        records: Of it.
        pool: Receives its long texts.
        max_bytes: Of the lists together, as they stand in the page, without the texts.
    """
    header, quality = view.history.header, view.quality
    names = _metric_names(view)
    entries = _by_importance(view)
    lines = _answer_texts(records.answers, pool)
    commits, commits_left_out = _bounded(
        entries, lambda entry: _commit_row(view, entry, names, pool, lines), max_bytes // 2
    )
    analyses, analyses_left_out = _bounded(
        list(zip(records.analyses, records.analysis_texts, strict=True)),
        lambda pair: _analysis_row(view.run_id, *pair, pool),
        max_bytes // 4,
    )
    answers: list[Any] = []
    answers_left_out = 0
    if records.answers is not None:
        kept = records.answers
        answers, answers_left_out = _bounded(kept.log.answers, lambda one: _answer_row(one, kept), max_bytes // 4)
    best = view.best
    return {
        "run": view.run_id,
        "quality": quality.metric,
        "unit": quality.unit,
        "lower_is_better": quality.lower_is_better,
        "fitness": view.history.fitness,
        "features": list(header["task"]["features"]),
        "metrics": names,
        "best": None if best is None else best.id,
        "commits": sorted(commits, key=lambda row: (row[2], row[1])),
        "analyses": analyses,
        "answers": answers,
        "initial_cells": _initial_cells(records.answers),
        "left_out": {"commits": commits_left_out, "analyses": analyses_left_out, "answers": answers_left_out},
    }


def _bounded(items: Sequence[T], row_of: Callable[[T], list[Any]], max_bytes: int) -> tuple[list[list[Any]], int]:
    """(rows of the first items, how many were left out)."""
    rows: list[list[Any]] = []
    for item in items:
        row = row_of(item)
        max_bytes -= len(inert_json(row)) + 1
        if max_bytes < 0:
            break
        rows.append(row)
    return rows, len(items) - len(rows)


def _by_importance(view: RunView) -> list[Entry]:
    """The initial program, the best and its ancestors, and the elites; then everything else by age."""
    history = view.history
    every = {entry.id: entry for entry in ([history.initial] if history.initial else [])}
    every |= {entry.id: entry for entry in history.commits}
    best = [] if view.best is None else ancestry(view.best, every)
    elites = [entry for grid in history.grids().values() for entry in grid.elites]
    first = {entry.id: entry for entry in (*([history.initial] if history.initial else []), *best, *elites)}
    return list((first | every).values())


def ancestry(entry: Entry, every: dict[str, Entry]) -> list[Entry]:
    """A candidate and all candidates that it was made from, itself first."""
    found = {entry.id: entry}
    waiting = [entry]
    while waiting:
        for parent in waiting.pop().candidate.parents:
            if parent in every and parent not in found:
                found[parent] = every[parent]
                waiting.append(every[parent])
    return list(found.values())


def _metric_names(view: RunView) -> list[str]:
    """The quality first, then the fitness, then all others."""
    names = [view.quality.metric, view.history.fitness]
    names += [name for entry in view.history.candidates[:100] for name in entry.verdict.metrics or {}]
    return list(dict.fromkeys(names))


def _commit_row(view: RunView, entry: Entry, names: Sequence[str], pool: TextPool, lines: dict[str, int]) -> list[Any]:
    candidate, verdict = entry.candidate, entry.verdict
    whole = f"`evolvarium show {view.run_id} {entry.id}` prints all of it"
    failure = failure_text(failure_document(verdict.failure), verdict.outcome.detail)
    metrics = None if verdict.metrics is None else [verdict.metrics.get(name) for name in names]
    short = one_line(candidate.description, _LINE_CHARACTERS)
    files = [
        [visible(path), pool.add(content.decode(errors="replace"), most=_PROGRAM_CHARACTERS, whole=whole)]
        for path, content in candidate.payload.items()
    ]
    is_short = short == candidate.description
    return [
        entry.id,
        NOTHING if entry.island is None else entry.island,
        entry.number,
        metrics,
        ending_of(entry).value,
        None if failure is None else one_line(failure, 2 * _LINE_CHARACTERS),
        entry.duplicate_of,
        list(candidate.parents[:_PARENTS]),
        max(0, len(candidate.parents) - _PARENTS),
        short,
        NOTHING if is_short else pool.add(candidate.description, most=_PRINTED_CHARACTERS, whole=whole),
        files,
        lines.get(entry.id, NOTHING),
    ]


def _analysis_row(run_id: str, analysis: RecordedAnalysis, printed: str, pool: TextPool) -> list[Any]:
    whole = f"the journal of run {run_id} has all of it"
    outcome = analysis.result.outcome
    script = analysis.script.decode(errors="replace")
    first = next((line for line in printed.splitlines() if line.strip()), "")
    return [
        analysis.island,
        analysis.number,
        analysis.commits_before,
        outcome.ending.value,
        round(outcome.wall_seconds, 2),
        None if outcome.cpu_seconds is None else round(outcome.cpu_seconds, 2),
        one_line(first, _LINE_CHARACTERS),
        pool.add(script, most=_PROGRAM_CHARACTERS, whole=whole),
        pool.add(printed, most=_PRINTED_CHARACTERS, whole=whole),
    ]


def _answer_texts(answers: Answers | None, pool: TextPool) -> dict[str, int]:
    """By candidate, the number of a text of four lines: verdict, line, line as a migrant, budget."""
    if answers is None:
        return {}
    log = answers.log
    by_commit = {answer.commit: answer for answer in log.answers}
    numbers = {}
    for candidate, line in log.lines.items():
        answer = by_commit.get(candidate)
        parts = ("", "") if answer is None else (answer.verdict, answer.budget)
        together = "\n".join([parts[0], line, log.migrants.get(candidate, ""), parts[1]])
        numbers[candidate] = pool.add(together, most=_PROGRAM_CHARACTERS, whole="the journal has all of it")
    return numbers


def _answer_row(answer: ShownAnswer, answers: Answers) -> list[Any]:
    return [
        answer.commit,
        answer.best,
        "" if answer.elite is None else place_of(answer.elite[0]),
        None if answer.migration is None else list(answer.migration),
        answers.notices[answer.commit].value,
        answer.was_sent,
        answer.commit in answers.checked,
    ]


def _initial_cells(answers: Answers | None) -> list[str]:
    """By island, the initial program's cell; empty: it has none."""
    if answers is None:
        return []
    cells = [answers.log.initial[island] for island in sorted(answers.log.initial)]
    return ["" if cell is None else place_of(cell[0]) for cell in cells]


def place_of(cell: Iterable[int]) -> str:
    """A cell as text."""
    return ",".join(map(str, cell))
