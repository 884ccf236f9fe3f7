"""The experiments that a search's agents ran, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.records import from_record
from orchestrator.methods.agentic_evolve.history_records import record_of
from orchestrator.methods.agentic_evolve.island_records import island_records, key_of
from orchestrator.methods.agentic_evolve.workspace import ANALYSIS_FILE
from orchestrator.ports import AnalysisResult, Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnalysis:
    """One experiment."""

    island: int
    number: int
    """Of the analysis within its island, from 1."""
    commits_before: int
    """The island's commits by then, duplicates too."""
    script: bytes
    """`analysis.py`; untrusted."""
    result: AnalysisResult


def read_analyses(journal: Journal) -> Iterator[RecordedAnalysis]:
    """All experiments, in the order in which they were recorded.

    Raises:
        RunStateError: A record is damaged, or the journal lacks a script.
    """
    commits: dict[int, int] = {}
    for island, kind, name, record in island_records(journal):
        if kind == "commit":
            commits[island] = commits.get(island, 0) + 1
        elif kind == "analysis":
            with record_of(key_of(island, kind, name)):
                yield _analysis(island, int(name), commits.get(island, 0), record, journal)


def _analysis(
    island: int, number: int, commits_before: int, record: Mapping[str, Any], journal: Journal
) -> RecordedAnalysis:
    return RecordedAnalysis(
        island=island,
        number=number,
        commits_before=commits_before,
        script=journal.get_blob(record["files"][ANALYSIS_FILE]),
        result=from_record(AnalysisResult, record["result"]),
    )
