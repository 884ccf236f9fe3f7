"""The critic: judges queries by what the question's words demand, by what needs no reason, and by what running gave.

It writes no SQL. Its repairs are sentences of `demands`, which the generator understands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.llm.offline.sql.demands import Demand, demands_in
from orchestrator.llm.offline.sql.evidence import doubts
from orchestrator.llm.offline.sql.expectation import Expectation
from orchestrator.llm.offline.sql.expectations import expectations
from orchestrator.llm.offline.sql.profile import Profile, profile_of
from orchestrator.llm.offline.sql.reading import Reading

_FAILED = 1.0
_EMPTY = 2.5
_FAULTY = 7.0
_MAX_ISSUES = 5
_MAX_SUMMARY_LINES = 14
_GENERAL = frozenset(
    {
        "no-value",
        "use",
        "value",
        "column-value",
        "number",
        "order",
        "order-by",
        "descending",
        "ascending",
        "extreme",
        "group",
        "count-order",
        "having",
        "exclude",
        "no-exclude",
        "operator",
        "function",
        "no-limit",
        "join",
        "distinct",
    }
)
"""Kinds of demands that hold for every query on the question, and so belong into the summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A query as a prompt lists it."""

    index: int
    sql: str
    execution: Mapping[str, Any]
    critique: Mapping[str, Any]

    @property
    def status(self) -> str:
        """`ok` if it ran."""
        return str(self.execution.get("status", "ok" if not self.execution else "error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What the critic holds of one candidate."""

    score: float
    """0 to 10."""
    issues: tuple[Expectation, ...]
    assessment: str


def read_candidates(text: str) -> list[Candidate]:
    """The candidates of a section; what is malformed is left out."""
    try:
        listed: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = []
    for item in listed if isinstance(listed, list) else []:
        if not isinstance(item, dict) or not isinstance(item.get("index"), int):
            continue
        execution, critique = item.get("execution"), item.get("critique")
        found.append(
            Candidate(
                index=item["index"],
                sql=str(item.get("sql", "")),
                execution=execution if isinstance(execution, dict) else {},
                critique=critique if isinstance(critique, dict) else {},
            )
        )
    return found


def opinion_of(reading: Reading, expected: Sequence[Expectation], candidate: Candidate) -> Opinion:
    """The critic's opinion of one candidate."""
    profile = profile_of(candidate.sql, reading.schema)
    issues = [_nearest_first(expectation, profile) for expectation in expected if not expectation.holds(profile)]
    issues.extend(doubts(reading, profile, candidate.execution))
    issues.sort(key=lambda issue: -issue.weight)
    score = _score(reading, profile, candidate, issues)
    return Opinion(score=score, issues=tuple(issues[:_MAX_ISSUES]), assessment=_assessment(candidate))


def _nearest_first(issue: Expectation, profile: Profile) -> Expectation:
    """The issue with repairs first that need no further table."""
    there = set(profile.tables)

    def is_far(demand: Demand) -> bool:
        return demand.kind == "use" and demand.column is not None and demand.column.table not in there

    return replace(issue, demands=tuple(sorted(issue.demands, key=is_far)))


def _score(reading: Reading, profile: Profile, candidate: Candidate, issues: Sequence[Expectation]) -> float:
    """Halves from 0 to 10; 8 and more only without an issue."""
    if candidate.status != "ok" or not candidate.sql.strip():
        return _FAILED
    if issues:
        lost = sum(issue.weight for issue in issues)
        score = min(_FAULTY, max(0.5, 9.0 - lost))
    else:
        score = max(8.0, 10.0 - _roughness(reading, profile))
    if candidate.execution.get("row_count") == 0:
        score = min(score, _EMPTY)
    return round(2 * score) / 2


def _roughness(reading: Reading, profile: Profile) -> float:
    """How far the choices of a query without an issue are from the likeliest ones, 0 to 2."""
    rough = 0.0
    for number, mention in enumerate(reading.mentions):
        columns = [t for t in mention.of("column") if t.column is not None]
        if mention.kind != "column" or len(columns) < 2:
            continue
        fits = {t.column: t.score + reading.context(t.column, reading.owners[number]) for t in columns if t.column}
        used = [fit for column, fit in fits.items() if column in profile.columns]
        rough += min(1.0, max(fits.values()) - max(used, default=min(fits.values())))
    spoken = {t.table for m in reading.mentions for t in m.targets[:1]}
    rough += 0.4 * sum(table not in spoken for table in set(profile.tables))
    return min(2.0, rough)


def _assessment(candidate: Candidate) -> str:
    execution = candidate.execution
    if candidate.status != "ok":
        return f"It does not run: {str(execution.get('error', ''))[:200] or candidate.status}"
    count = execution.get("row_count")
    if count == 0:
        return "It runs, but no row comes."
    columns = execution.get("columns")
    width = len(columns) if isinstance(columns, list) else 0
    return f"It runs and gives {count} row{'s' if count != 1 else ''} of {width} column{'s' if width != 1 else ''}."


def judge(reading: Reading, candidates_text: str, summary: str, score_names: Sequence[str]) -> dict[str, Any]:
    """The critic's whole answer, as the prompt's form has it."""
    expected = expectations(reading)
    candidates = read_candidates(candidates_text)
    evaluations = []
    lessons: dict[str, None] = dict.fromkeys(str(demand) for demand in demands_in(summary, reading.schema))
    for candidate in candidates:
        opinion = opinion_of(reading, expected, candidate)
        evaluations.append(
            {
                "index": candidate.index,
                "scores": _scores(opinion, score_names),
                "issues": [_issue(issue) for issue in opinion.issues],
                "execution_assessment": opinion.assessment,
            }
        )
        for issue in opinion.issues:
            if issue.demands and issue.demands[0].kind in _GENERAL:
                lessons.setdefault(str(issue.demands[0]))
    return {"evaluations": evaluations, "cumulative_summary": "\n".join(list(lessons)[:_MAX_SUMMARY_LINES])}


def _issue(issue: Expectation) -> dict[str, str]:
    return {"problem": issue.problem, "repair": str(issue.demands[0]) if issue.demands else ""}


def _scores(opinion: Opinion, names: Sequence[str]) -> dict[str, float]:
    """The score under each name; an issue on its own side takes as much again."""
    scores = {}
    for name in names:
        own = sum(issue.weight for issue in opinion.issues if issue.side == name)
        lost = min(opinion.score, 0.5 * own) if name != "score" else 0.0
        scores[name] = round(2 * (opinion.score - lost)) / 2
    return scores


def choose(reading: Reading, candidates_text: str) -> tuple[int, str]:
    """The index of the best candidate, the earlier on ties, and why; 1 if there is none."""
    expected = expectations(reading)
    candidates = read_candidates(candidates_text)
    if not candidates:
        return 1, "There is nothing to compare."
    results = [json.dumps(c.execution.get("rows"), default=str) for c in candidates]
    scored = []
    for candidate, result in zip(candidates, results, strict=True):
        opinion = opinion_of(reading, expected, candidate)
        support = 0.1 * (results.count(result) - 1)
        scored.append((opinion.score + support, candidate, opinion))
    best = max(scored, key=lambda entry: entry[0])
    chosen = next(entry for entry in scored if entry[0] == best[0])
    issues = chosen[2].issues
    reason = f"Fewest faults; what remains: {issues[0].problem}." if issues else "No fault was found in it."
    return chosen[1].index, reason
