"""Evaluator and analyst of a recorded run: they look up what was measured, and run nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.records import from_record
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import RunStateError
from orchestrator.ports import AnalysisResult, Journal


class ReplayEvaluator:
    """`ports.Evaluator` over the verdicts of a journal."""

    def __init__(self, journal: Journal) -> None:
        """Index every candidate of the run."""
        self._records = _Recorded("verdict", _with_field(journal, "verdict"))

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:  # noqa: ARG002 - the port's
        """As `ports.Evaluator`.

        Raises:
            RunStateError: The run never evaluated these files.
        """
        return from_record(Verdict, self._records.find(payload, attempt_id))


class ReplayAnalyst:
    """`ports.Analyst` over the analyses of a journal."""

    def __init__(self, journal: Journal) -> None:
        """Index every analysis of the run."""
        self._records = _Recorded("analysis", _with_field(journal, "result"))

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:  # noqa: ARG002 - the port's
        """As `ports.Analyst`.

        Raises:
            RunStateError: The run never analysed these files.
        """
        return from_record(AnalysisResult, self._records.find(files, attempt_id))


class _Recorded:
    """Results by what was run; of several for equal files the one of the same attempt, else the first."""

    def __init__(self, what: str, entries: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        self._what = what
        self._first: dict[str, Mapping[str, Any]] = {}
        self._of_attempt: dict[tuple[str, str], Mapping[str, Any]] = {}
        for key, payload, result in entries:
            self._first.setdefault(payload, result)
            self._of_attempt[payload, _attempt_id(key)] = result

    def find(self, files: FileTree, attempt_id: str) -> Mapping[str, Any]:
        found = self._of_attempt.get((files.digest, attempt_id), self._first.get(files.digest))
        if found is None:
            msg = (
                f"the recorded run holds no {self._what} for {attempt_id} with files {files.digest}; "
                "it was made with other settings or by another version, and a replay runs nothing"
            )
            raise RunStateError(msg)
        return found


def _with_field(journal: Journal, field: str) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """(key, payload digest, result) of the records that have a payload and this field."""
    for key, record in journal.records():
        if isinstance(record.get("payload"), str) and isinstance(record.get(field), Mapping):
            yield key, record["payload"], record[field]


def _attempt_id(key: str) -> str:
    """`i1/commit/c07` as `i1-c07`, `i1/analysis/0007` as `i1-a0007`, and `initial` as itself."""
    match key.split("/"):
        case [island, "commit", number]:
            return f"{island}-{number}"
        case [island, "analysis", number]:
            return f"{island}-a{number}"
    return key
