"""How an answer was found, as a JSON document for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from orchestrator.methods.evosql.candidates import Candidate
from orchestrator.methods.evosql.solutions import Round, Solution
from orchestrator.search.memory import Entry


def explain(solution: Solution) -> dict[str, Any]:
    """Every round with its candidates, critiques, clusters and what followed from them.

    Results are named `r1`, `r2` and so on, in the order in which they first occurred.
    """
    names: dict[str, str] = {}
    for entry in solution.entries:
        names.setdefault(entry.outcome, f"r{len(names) + 1}")
    return {
        "question": solution.question.id,
        "method": solution.method,
        "ending": solution.ending.value,
        "answer": {"sql": solution.answer.sql, "result": names[solution.answer.execution.cluster]},
        "rounds": [_round(round_, solution.entries, names) for round_ in solution.rounds],
    }


def _round(round_: Round, entries: Sequence[Entry[Candidate]], names: dict[str, str]) -> dict[str, Any]:
    assessment = round_.assessment
    known = list(zip(entries, assessment.utilities, strict=False))  # the entries up to this round have one each
    top = Counter(names[entry.outcome] for entry in assessment.top)
    return {
        "round": round_.number,
        "candidates": [_entry(e, utility, names) for e, utility in known if e.round == round_.number],
        "clusters": dict(top.most_common()),
        "agreement": {
            "result": None if assessment.outcome is None else names[assessment.outcome],
            "share": assessment.share,
            "is_stable": assessment.is_stable,
        },
        "summary": round_.summary,
        "is_judged": round_.is_judged,
        "unreadable": round_.unreadable,
        "answer": {
            "sql": round_.answer.sql,
            "round": assessment.answer.round,
            "index": assessment.answer.index,
            "result": names[assessment.answer.outcome],
            "utility": next(utility for e, utility in known if e is assessment.answer),
            "confidence": assessment.answer.confidence,
        },
    }


def _entry(entry: Entry[Candidate], utility: float, names: dict[str, str]) -> dict[str, Any]:
    candidate = entry.content
    critique = candidate.critique
    return {
        "index": entry.index,
        "sql": candidate.sql,
        "execution": dict(candidate.execution.shown),
        "result": names[entry.outcome],
        "confidence": entry.confidence,
        "utility": utility,
        "critique": None
        if critique is None
        else {
            "scores": dict(critique.scores),
            "issues": [{"problem": issue.problem, "repair": issue.repair} for issue in critique.issues],
            "execution_assessment": critique.execution_assessment,
        },
    }
