"""A result looked at: whether its query stands, and which one takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.llm.offline.sql.briefed.briefing import Briefing
from orchestrator.llm.offline.sql.briefed.comparisons import ignore_case, like_values
from orchestrator.llm.offline.sql.briefed.effects import justified
from orchestrator.llm.offline.sql.critic import Candidate, opinion_of
from orchestrator.llm.offline.sql.demands import same_value
from orchestrator.llm.offline.sql.evidence import unfounded
from orchestrator.llm.offline.sql.expectation import Expectation
from orchestrator.llm.offline.sql.expectations import expectations
from orchestrator.llm.offline.sql.generator import draw, improve
from orchestrator.llm.offline.sql.pool import Derived
from orchestrator.llm.offline.sql.profile import profile_of
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rendering import Unconnected, render

Revision = tuple[str | None, str]
"""(the query that takes the place, None if none does; why)"""
_MISSING_NAME = re.compile(r"no such (?:column|table): ?(?P<name>[^\n]{1,200})", re.IGNORECASE)
_SUSPECT = 2.0
"""Nats against each condition that may be why no row comes."""
_CLEAR = 1.0
"""Points by which another query must have fewer faults to take the place."""
_SLIGHT = 0.5
"""The same where the rules say to doubt."""
_LOOSE = 2.5
"""Nats against a comparison made looser."""


def verified(
    briefing: Briefing,
    reading: Reading,
    rules: frozenset[str],
    pool: Sequence[Derived],
    *,
    seed: int,
    temperature: float,
    has_insight: bool,
) -> Revision:
    """None: the query stands, as far as question, query and result tell."""
    status = str(briefing.execution.get("status", "ok"))
    is_empty = status == "ok" and briefing.execution.get("row_count") == 0
    if status != "ok" or (is_empty and "keep-empty" not in rules):
        return repaired(briefing, reading, rules, pool, seed=seed, temperature=temperature)
    if is_empty or not has_insight or "keep-query" in rules:
        return None, ""
    return _doubted(briefing, reading, rules, pool, seed=seed, temperature=temperature)


def _doubted(
    briefing: Briefing,
    reading: Reading,
    rules: frozenset[str],
    pool: Sequence[Derived],
    *,
    seed: int,
    temperature: float,
) -> Revision:
    """The query that has fewer faults, if one comes near and was not tried before."""
    candidate = Candidate(index=1, sql=briefing.query, execution=briefing.execution, critique={})
    expected = expectations(reading)
    issues = _issues(reading, expected, rules, candidate)
    if not issues:
        return None, ""
    critique = {"issues": [_said(issue) for issue in issues]}
    sql, _ = improve(pool, reading, [replace(candidate, critique=critique)], "", seed=seed, temperature=temperature)
    if key(sql) in set(map(key, (briefing.query, *briefing.tried))):
        return None, ""
    left = _issues(reading, expected, rules, Candidate(index=2, sql=sql, execution={}, critique={}))
    gained = sum(issue.weight for issue in issues) - sum(issue.weight for issue in left)
    if gained < (_SLIGHT if "doubt-query" in rules else _CLEAR):
        return None, ""
    return sql, f"I doubted the query: {issues[0].problem}."


def _issues(
    reading: Reading, expected: Sequence[Expectation], rules: frozenset[str], candidate: Candidate
) -> list[Expectation]:
    """What speaks against a query, but for what the rules in force ask for."""
    allowed = justified(rules)
    issues = opinion_of(reading, expected, candidate).issues
    return [issue for issue in issues if not issue.demands or issue.demands[0].kind not in allowed]


def _said(issue: Expectation) -> dict[str, str]:
    return {"problem": issue.problem, "repair": str(issue.demands[0]) if issue.demands else ""}


def repaired(
    briefing: Briefing,
    reading: Reading,
    rules: frozenset[str],
    pool: Sequence[Derived],
    *,
    seed: int,
    temperature: float,
) -> Revision:
    """Another query that avoids the failure; the same one where rules allow an empty result or none is left."""
    status = str(briefing.execution.get("status", "ok"))
    if status == "ok" and "keep-empty" in rules and briefing.query:
        return briefing.query, "No row may be the right answer."
    tried = {key(sql) for sql in (briefing.query, *briefing.tried) if sql}
    options = [derived for derived in (*pool, *_looser(pool, reading)) if key(derived.sql) not in tried]
    if not options:
        return briefing.query or pool[0].sql, "I know no other query."
    suspects = unfounded(reading.schema, profile_of(briefing.query, reading.schema)) if status == "ok" else []
    scores = []
    for derived in options:
        profile = profile_of(derived.sql, reading.schema)
        score = derived.score
        for suspect in suspects:
            repeats = any(
                t.column == suspect.column and suspect.text in t.literals and t.op == "=" for t in profile.tests
            )
            score -= _SUSPECT * repeats
        forgets = sum(
            not any(same_value(suspect.text, literal) for literal in profile.literals) for suspect in suspects
        )
        scores.append(score - 2 * _SUSPECT * forgets)
    return options[draw(scores, seed, temperature)].sql, f"I looked for a query that avoids this: {_why(briefing)}"


def refused_names(briefing: Briefing) -> frozenset[str]:
    """Names, in lower case, of which the failure says that the database does not have them."""
    found = _MISSING_NAME.search(f"{briefing.failure}\n{briefing.execution.get('error', '')}")
    name = found["name"].strip().rpartition(".")[2].strip('"`[] ').lower() if found is not None else ""
    return frozenset([name] if name else [])


def _why(briefing: Briefing) -> str:
    return briefing.failure[:200] or str(briefing.execution.get("error", ""))[:200] or "it returned no rows."


def _looser(pool: Sequence[Derived], reading: Reading) -> Iterator[Derived]:
    """The likeliest queries with texts compared without regard to case, or as parts."""
    for derived in pool[:20]:
        for number, loosen in enumerate((ignore_case, like_values), 1):
            query = loosen(derived.query, reading)
            if query == derived.query:
                continue
            try:
                sql = render(query, reading.schema)
            except Unconnected:
                continue
            cost = _LOOSE * number / 2
            yield replace(derived, sql=sql, query=query, score=derived.score - cost, drawn=derived.drawn - cost)


def key(sql: str) -> str:
    """Equal for queries that differ in case, blanks and a last semicolon alone."""
    return re.sub(r"\s+", " ", sql.strip().rstrip("; ")).lower()
