"""Runs and candidates as JSON documents and as tables."""

from __future__ import annotations

from typing import Literal

from orchestrator.cli.documents import (
    CandidateDocument,
    FileDocument,
    InitialCandidate,
    IslandStop,
    RunDocument,
    ScoredCandidate,
    SplitVerdict,
)
from orchestrator.cli.history import RunView
from orchestrator.cli.ledger import dollars, ledger_lines, ledger_rows, token_row, usage_document
from orchestrator.cli.states import state_in_words
from orchestrator.cli.terminal import Rows
from orchestrator.cli.verdicts import failure_document, failure_text, metrics_of, secrecy, split_verdict
from orchestrator.methods.agentic_evolve import StopReason
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry
from orchestrator.search.final_choice import Rule
from orchestrator.search.reply_kinds import ReplyKind, in_words


def run_document(view: RunView, containers_left: int | None = None) -> RunDocument:
    """The one object that `run` and `resume` end with."""
    history = view.history
    result = history.result(view.run_id)
    outcomes = history.outcomes
    return RunDocument(
        run=result.run,
        task=result.task,
        method=result.method,
        model=result.model,
        seed=result.seed,
        state=_state(view),
        pause=view.pause,
        best=_scored(view.best),
        choice=view.rule.value,
        initial=InitialCandidate(metrics=None if history.initial is None else metrics_of(history.initial.verdict)),
        evaluations=result.evaluations,
        analyses=result.analyses,
        requests=result.requests,
        replies={kind.value: count for kind, count in outcomes.counts.items()},
        too_long=outcomes.too_long,
        usage=usage_document(result.usage),
        ledger=ledger_lines(view.ledger),
        endings=dict(result.endings),
        final=[split_verdict(candidate_id, verdict) for candidate_id, verdict in view.finals],
        stops=[IslandStop(island=island, reason=reason) for island, reason in result.stops.items()],
        containers_left=containers_left,
    )


def _state(view: RunView) -> Literal["done", "unfinished", "paused", "budget-spent"]:
    if not view.has_ended:
        return "unfinished" if view.pause is None else "paused"
    return "budget-spent" if StopReason.BUDGET_SPENT in view.history.stops.values() else "done"


def _scored(entry: Entry | None) -> ScoredCandidate | None:
    if entry is None or entry.verdict.metrics is None:
        return None
    return ScoredCandidate(id=entry.id, metrics=dict(entry.verdict.metrics))


def run_parts(view: RunView, document: RunDocument) -> list[Rows]:
    """A run as tables: scores on every split, what it took, its ledger, its commits."""
    return [score_rows(view, document), spent_rows(document), *ledger_rows(document.ledger), _commit_rows(view)]


def score_rows(view: RunView, document: RunDocument) -> Rows:
    """The initial program and the final candidate, on every split."""
    quality = view.quality
    rows: list[list[object]] = []
    for entry in {entry.id: entry for entry in (view.history.initial, view.best) if entry is not None}.values():
        rows.append([entry.id, *_score(split_verdict(entry.id, entry.verdict), quality.metric)])
    rows += [[verdict.id, *_score(verdict, quality.metric)] for verdict in document.final]
    unit = f" ({quality.unit})" if quality.unit else ""
    columns = ["candidate", "split", quality.metric + unit, "failure", "secret"]
    return Rows(title=f"Run {document.run}: {quality.label}", columns=columns, rows=rows)


def _score(verdict: SplitVerdict, metric: str) -> list[object]:
    failure = None if verdict.failure is None else verdict.failure.ending
    return [verdict.split, (verdict.metrics or {}).get(metric), failure, verdict.secret]


def spent_rows(document: RunDocument) -> Rows:
    """What a run took, and how it ended."""
    rows: list[list[object]] = [
        ["state", state_in_words(document.state, document.pause)],
        ["task", document.task],
        ["method", document.method],
        ["model", document.model],
        ["seed", document.seed],
        ["evaluations", document.evaluations],
        ["analyses", document.analyses],
        ["requests", document.requests],
        ["replies", ", ".join(f"{count} {kind}" for kind, count in document.replies.items()) or None],
        token_row(document.usage),
        ["US dollars", dollars(document.usage)],
        ["endings", ", ".join(f"{count} {ending}" for ending, count in document.endings.items()) or None],
        ["islands stopped for", ", ".join(f"{stop.island}: {stop.reason}" for stop in document.stops) or None],
    ]
    if document.choice != Rule.FITNESS:
        rows.insert(1, ["best chosen by", document.choice])
    if document.containers_left is not None:
        rows.append(["containers left", document.containers_left])
    return Rows(title="What it took", columns=["what", "value"], rows=rows)


def fruitless(document: RunDocument) -> list[str]:
    """What came instead of calls of tools, where that was most of what came."""
    said = in_words(document.replies, document.too_long, wanted=(ReplyKind.TOOLS,))
    return [" ".join(said)] if said else []


def unimproved(document: RunDocument) -> list[str]:
    """What it means when the initial program is still the best, by how the islands ended; nothing where it is not."""
    if document.best is None or document.best.id != INITIAL:
        return []
    none_came = "no new program was committed" if document.evaluations == 0 else "no candidate beat it"
    reasons = dict.fromkeys(stop.reason for stop in document.stops)
    return [" ".join([f"The best is the initial program: {none_came}.", *(_advice(one, document) for one in reasons)])]


def _advice(reason: str, document: RunDocument) -> str:
    """What may help after an island has stopped for this."""
    if reason == StopReason.REQUESTS:
        return "The requests ran out: more --requests may help, or a --model that needs fewer for a commit."
    if reason == StopReason.IDLE:
        return "The model stopped calling tools: ask another --model, one that is made to call them."
    if reason == StopReason.CONTEXT:
        return (
            "The model's context was too small for task and program: ask a --model with a longer one, or say in a "
            "--models file what it really takes (`context_tokens`)."
        )
    if reason == StopReason.BUDGET_SPENT:
        when = "before the first commit" if document.evaluations == 0 else "before all commits were made"
        return f"The budget was spent {when}: `evolvarium estimate run {document.task}` says what a run takes."
    return "More --commits, or another --seed, may find one."


def _commit_rows(view: RunView) -> Rows:
    metric = view.quality.metric
    rows = [
        [
            entry.id,
            (entry.verdict.metrics or {}).get(metric),
            failure_text(failure_document(entry.verdict.failure), entry.verdict.outcome.detail),
            entry.duplicate_of,
            entry.candidate.description,
        ]
        for entry in view.history.commits
    ]
    return Rows(title="Commits", columns=["id", metric, "failure", "duplicate of", "description"], rows=rows)


def candidate_document(view: RunView, entry: Entry, *, written_to: str | None) -> CandidateDocument:
    """One candidate; its files' text unless they were written somewhere."""
    candidate = entry.candidate
    return CandidateDocument(
        run=view.run_id,
        id=entry.id,
        digest=candidate.payload.digest,
        island=entry.island,
        description=candidate.description,
        parents=list(candidate.parents),
        duplicate_of=entry.duplicate_of,
        metrics=metrics_of(entry.verdict),
        failure=failure_document(entry.verdict.failure),
        files=[
            FileDocument(path=path, bytes=len(content), text=None if written_to else _text(content))
            for path, content in candidate.payload.items()
        ],
        written_to=written_to,
    )


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def candidate_rows(view: RunView, entry: Entry) -> Rows:
    """What is known of a candidate beside its files."""
    metrics = entry.verdict.metrics or {}
    rows: list[list[object]] = [
        ["description", entry.candidate.description],
        ["parents", ", ".join(entry.candidate.parents) or None],
        ["duplicate of", entry.duplicate_of],
        ["failure", failure_text(failure_document(entry.verdict.failure), entry.verdict.outcome.detail)],
        ["measured on", f"{entry.verdict.split}, {secrecy(secret=entry.verdict.secret)}"],
        *([name, value] for name, value in metrics.items()),
    ]
    title = f"Candidate {entry.id} of run {view.run_id}"
    return Rows(title=title, columns=["what", "value"], rows=rows, cell_characters=1000)


def file_texts(entry: Entry) -> list[str]:
    """The files of a candidate; names stand between them where there are several."""
    payload = entry.candidate.payload
    texts = {path: content.decode(errors="replace").rstrip("\n") for path, content in payload.items()}
    return list(texts.values()) if len(texts) == 1 else [f"--- {path}\n{text}" for path, text in texts.items()]
