"""How one package of an evolution did on every database it was asked about, from the journal alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.bootstrap.robophd.header import read_header
from orchestrator.bootstrap.robophd.records import AnalysisRecord, EndRecord, SelectRecord, read, sound
from orchestrator.evaluation.sql_judge import GOLD, Standing, read_gold
from orchestrator.methods.robophd.run import select_key
from orchestrator.methods.robophd.standings import iteration_key
from orchestrator.ports import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseScore:
    """One package on one database."""

    name: str
    is_select: bool
    """Whether it is one of those that the champion is chosen by; otherwise it is for contests."""
    right: int
    """In all contests, or on selection."""
    questions: int
    tool: str
    """`ok`, how the tool failed, or `unknown`."""


def read_scores(run_id: str, journal: Journal, member_id: str) -> list[DatabaseScore]:
    """How a package did on every database it was asked about: contests first, then selection.

    Raises:
        RunStateError: As `read_results`.
    """
    header, _, settings, _ = read_header(run_id, journal)
    with sound(run_id):
        found: dict[str, DatabaseScore] = {}
        for number in range(1, settings.iterations + 1):
            end = read(EndRecord, journal, iteration_key(number, "end"))
            if end is not None and member_id in end.right:
                for name, ids in end.questions.items():
                    right = set(end.right[member_id])
                    now = _database_score(name, ids, right, end.analyses[member_id], is_select=False)
                    found[name] = _sum(found[name], now) if name in found else now
        selected = read(SelectRecord, journal, select_key(member_id))
        if selected is not None:
            asked: dict[str, list[str]] = {name: [] for name in selected.analyses}
            for key, id_, database in header["questions"]:
                gold = read_gold(journal, key + GOLD) if database in asked else None
                if gold is not None and gold.standing is Standing.EVALUABLE:
                    asked[database].append(id_)
            right = set(selected.right)
            for name, ids in asked.items():
                found[name] = _database_score(name, ids, right, selected.analyses, is_select=True)
        return list(found.values())


def _database_score(
    name: str, ids: Sequence[str], right: set[str], analyses: Mapping[str, AnalysisRecord], *, is_select: bool
) -> DatabaseScore:
    analysis = analyses.get(name)
    tool = "unknown" if analysis is None else analysis.failure or "ok"
    return DatabaseScore(
        name=name, is_select=is_select, right=len(right.intersection(ids)), questions=len(ids), tool=tool
    )


def _sum(before: DatabaseScore, now: DatabaseScore) -> DatabaseScore:
    return replace(before, right=before.right + now.right, questions=before.questions + now.questions)
