"""Verdicts as JSON documents."""

from __future__ import annotations

from orchestrator.cli.documents import FailureDocument, OutcomeDocument, SplitVerdict
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.verdicts import Failure, Verdict

_BY_A_LIMIT = frozenset({Ending.TIMEOUT, Ending.MEMORY, Ending.PROCESSES, Ending.OUTPUT_LIMIT})


def metrics_of(verdict: Verdict) -> dict[str, float] | None:
    """Metrics; None: the candidate has no score."""
    return None if verdict.metrics is None else dict(verdict.metrics)


def failure_document(failure: Failure | None) -> FailureDocument | None:
    """Why a candidate has no score; None: it has one."""
    if failure is None:
        return None
    return FailureDocument(
        ending=failure.ending.value,
        exception=failure.exception,
        file=failure.file,
        line=failure.line,
        message=failure.message,
    )


def failure_text(failure: FailureDocument | None, detail: str) -> str | None:
    """Why a candidate has no score, on one line, for operators; None: it has one.

    Args:
        failure: None: it has a score.
        detail: Of the outcome; where a limit ended the container, it says which one and its value.
    """
    if failure is None:
        return None
    place = failure.file if failure.line is None else f"{failure.file}:{failure.line}"
    text = ", ".join(part for part in (failure.ending, failure.exception, place, failure.message) if part)
    return f"{text}: {detail}" if detail and failure.ending in _BY_A_LIMIT else text


def secrecy(*, secret: bool) -> str:
    """Whether a model could know the data that a program was measured on, in words."""
    return "secret data" if secret else "data that are not secret (from the public seed, or public files)"


def outcome_document(outcome: Outcome) -> OutcomeDocument:
    """How a container ended; what the code printed is withheld."""
    return OutcomeDocument(
        ending=outcome.ending.value,
        exit_code=outcome.exit_code,
        wall_seconds=outcome.wall_seconds,
        cpu_seconds=outcome.cpu_seconds,
        memory_peak_bytes=outcome.memory_peak_bytes,
        detail=outcome.detail,
    )


def split_verdict(candidate_id: str, verdict: Verdict) -> SplitVerdict:
    """One candidate on one split."""
    return SplitVerdict(
        id=candidate_id,
        split=verdict.split,
        metrics=metrics_of(verdict),
        failure=failure_document(verdict.failure),
        secret=verdict.secret,
    )
